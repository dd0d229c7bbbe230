package tsunagi.agent;

/**
 * The JDK's asynchronous channels. A handler is called where its operation completes: in a thread of the
 * channel's group when the socket is ready, in one that the group asks to, or in the very call that began
 * the operation. It works for whom the socket works for: a server's, for the request that was read; a client's,
 * for whoever wrote there or connected last.
 */
public final class Async {
	private Async() {
	}

	/** Around what a channel does that is ready: it begins with nothing. */
	public static void event() {
		try {
			Local local = Local.current();

			local.push(null);
			local.set(0, false);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** Around a call that begins an operation: a handler that is called in there does not change what the caller works for. */
	public static void calling() {
		Context.push();
	}

	public static void called() {
		Context.pop();
	}

	/** With the future that the call gives, if it has no handler: the caller itself read or accepted, if that is done. */
	public static void called(Object future) {
		try {
			Local local = Local.current();
			long context = local.isOwn ? local.context : 0;

			local.pop();
			if (context != 0 && future != null
			    && future.getClass().getName().equals("sun.nio.ch.CompletedFuture"))
				Context.mount(context);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** An operation without a handler is complete: if it brought a request, that is of who waits for the future. */
	public static void completing(Object future) {
		try {
			Local local = Context.isOn() ? Local.known() : null;

			if (local != null && local.isOwn)
				Stamps.put(future, local.context);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	public static void awaited(Object future) {
		long context = Stamps.take(future);

		if (context != 0)
			Context.mount(context);
	}

	/** What its read brings is told by done() and ended(), which come before any handler is called. */
	public static void reading(Object channel) {
		Sockets.asyncReading(Native.asyncChannel(channel));
	}

	public static void done(Object channel) {
		Sockets.asyncRead(Native.asyncChannel(channel));
	}

	/** If it was not done there was nothing to read. */
	public static void ended() {
		Sockets.done(0);
	}

	public static void writing(Object channel) {
		Sockets.writing(Native.asyncChannel(channel));
	}

	/** A write that had to wait goes on, or a connection is made. */
	public static void goesOn(Object channel) {
		Sockets.asyncGoesOn(Native.asyncChannel(channel));
	}

	public static void writesOn(Object channel) {
		int fd = Native.asyncChannel(channel);

		Sockets.asyncGoesOn(fd);
		Sockets.asyncWritesOn(fd);
	}

	public static void connecting(Object channel) {
		Sockets.connecting(Native.asyncChannel(channel));
	}

	public static void accepted(Object channel) {
		if (channel != null)
			Sockets.accepted(Native.asyncChannel(channel));
	}

	public static void closing(Object channel) {
		Sockets.closing(Native.asyncChannel(channel));
	}

	/** A group of a fixed number of threads has a queue of its own for what they are to run. */
	public static void task(Object task) {
		try {
			if (Context.isOn() && task != null)
				Local.current().work(Stamps.ofRun(task, 0));
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}
}
