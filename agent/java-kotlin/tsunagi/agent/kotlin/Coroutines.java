package tsunagi.agent.kotlin;

import kotlin.coroutines.Continuation;
import kotlin.coroutines.CoroutineContext;
import kotlinx.coroutines.CoroutineName;
import kotlinx.coroutines.Job;
import tsunagi.agent.Coroutine;

/**
 * What the hooks of kotlinx.coroutines call where Kotlin's types are needed; defined beside Kotlin's
 * own classes. Each coroutine gets a ContextElement when it is started. Ktor's own that serve a connection
 * get none: they work for whoever sets them going, each time. Those that are older than the agent
 * have none either.
 *
 * A context or a continuation may be a class of the application's, and throw whatever it likes where it
 * is asked: that is caught here, what goes wrong in the agent itself is caught there.
 */
public final class Coroutines {
	private static final String[] FOLLOWERS = {"cio-from-nio", "cio-to-nio", "http-pipeline"};

	private Coroutines() {
	}

	private static boolean isFollower(CoroutineContext context) {
		CoroutineName named = context.get(CoroutineName.Key);
		String name = named == null ? null : named.getName();

		if (name == null)
			return false;
		for (String follower : FOLLOWERS)
			if (name.startsWith(follower))
				return true;
		return false;
	}

	/** The context of a coroutine that is being started. */
	public static CoroutineContext born(CoroutineContext context) {
		try {
			boolean isKnown;

			if (!Coroutine.isOn())
				return context;
			isKnown = context.get(ContextKey.KEY) != null;
			if (isFollower(context))
				return isKnown ? context.minusKey(ContextKey.KEY) : context;
			return isKnown ? context : context.plus(new ContextElement(Coroutine.born()));
		} catch (Throwable cause) {
			Coroutine.failForeign(cause);
			return context;
		}
	}

	/** A coroutine is about to go on, perhaps elsewhere. */
	public static void handed(Object continuation) {
		try {
			CoroutineContext context;

			if (!Coroutine.isOn() || !(continuation instanceof Continuation))
				return;
			context = ((Continuation<?>) continuation).getContext();
			if (context.get(ContextKey.KEY) == null && isFollower(context))
				Coroutine.hand(context.get(Job.Key));
		} catch (Throwable cause) {
			Coroutine.failForeign(cause);
		}
	}

	/** Around its turn, until Coroutine.end(). A ContextElement mounts itself in there. */
	public static void begin(Object task) {
		Coroutine.begin();
		try {
			CoroutineContext context;
			Job job;

			if (!Coroutine.isOn() || !(task instanceof Continuation))
				return;
			context = ((Continuation<?>) task).getContext();
			if (context.get(ContextKey.KEY) != null)
				return;
			job = context.get(Job.Key);
			if (job != null && isFollower(context))
				Coroutine.follow(job);
			else if (job != null)
				Coroutine.remember(job);
		} catch (Throwable cause) {
			Coroutine.failForeign(cause);
		}
	}

	/** A coroutine goes on with a value. */
	public static void resumed(Object value, Object continuation) {
		try {
			ContextElement element;

			if (!Coroutine.isOn())
				return;
			element = ((Continuation<?>) continuation).getContext().get(ContextKey.KEY);
			if (element != null)
				element.coroutine.resumed(value);
			else
				Coroutine.resumedLate(value);
		} catch (Throwable cause) {
			Coroutine.failForeign(cause);
		}
	}
}
