package tsunagi.agent;

/**
 * Messages between Kotlin's coroutines: a receiver whose context is not its own goes on with what the
 * message was sent with, also if that is nothing. Values that are shared by their nature cannot tell;
 * for them the channel does, as long as all that was ever sent to it was sent for one request.
 */
public final class Channels {
	private Channels() {
	}

	public static void sent(Object message, Object channel) {
		try {
			if (!Context.isOn())
				return;
			if (Tasks.isShared(message))
				Stamps.mix(channel);
			else
				Stamps.pass(message);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	static long contextOf(Object message, Object channel) {
		return Tasks.isShared(message) ? Stamps.of(channel) : Stamps.take(message);
	}

	/* What functions of channels give instead of a message: "suspended", "closed", "empty". */
	private static boolean isMessage(Object value) {
		String name = value == null ? "" : value.getClass().getName();

		return !name.startsWith("kotlin")
		       || !name.startsWith("kotlin.coroutines.intrinsics.CoroutineSingletons")
				  && !name.startsWith("kotlinx.coroutines.channels.ChannelResult$")
				  && !name.equals("kotlinx.coroutines.internal.Symbol");
	}

	private static void adopt(long context) {
		Local local = Local.toTake(context);

		if (local != null && !local.isOwn)
			local.set(context, false);
	}

	/** A coroutine asks for the next message, and may have to wait for it. */
	public static void receiving(Object channel) {
		try {
			Local local = Context.isOn() ? Local.known() : null;

			if (local == null || local.coroutine == null)
				return;
			if (!local.coroutine.isLate())
				local.coroutine.source = channel;
			else if (!local.isOwn)
				local.set(0, false);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** Perhaps it need not wait. */
	public static void received(Object message, Object channel) {
		try {
			Local local;

			if (!Context.isOn() || !isMessage(message))
				return;
			local = Local.known();
			if (local != null && local.coroutine != null && !local.coroutine.isLate()) {
				if (local.coroutine.source == null)
					return; /* it waited, see Coroutine.resumed() */
				local.coroutine.source = null;
			}
			adopt(contextOf(message, channel));
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** A message that nobody waits for any more. */
	public static void got(Object message, Object channel) {
		try {
			if (Context.isOn() && isMessage(message))
				adopt(contextOf(message, channel));
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** Of which channel is not known. */
	public static void got(Object message) {
		got(message, null);
	}

	public static void iterator(Object iterator, Object channel) {
		try {
			Local local = Context.isOn() ? Local.known() : null;

			if (local != null && local.coroutine != null)
				local.coroutine.iterates(channel, iterator);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	public static void next(Object message, Object iterator) {
		try {
			Local local = Context.isOn() ? Local.known() : null;

			if (local == null || local.coroutine == null)
				got(message, null);
			else
				got(message, local.coroutine.iteratedBy(iterator));
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** A value of a flow that others get too. */
	public static void flowed(Object value, Object flow) {
		try {
			if (Context.isOn() && isMessage(value))
				adopt(Stamps.of(Tasks.isShared(value) ? flow : value));
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** Bytes come into a channel of bytes: of a connection, or those that are to be sent there. */
	public static void flushed(Object channel) {
		try {
			Local local = Context.isOn() ? Local.known() : null;

			if (local == null)
				return;
			if (local.coroutine != null && local.coroutine.isFollower())
				Coroutine.hand(channel);
			else
				Stamps.pass(channel);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** They are taken out, perhaps by who had no need to wait for them. */
	public static void drained(Object channel) {
		try {
			Local local = Context.isOn() ? Local.known() : null;
			long context;

			if (local == null)
				return;
			context = Stamps.take(channel, local.context);
			if (local.coroutine != null && local.coroutine.isFollower())
				local.set(context, true);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}
}
