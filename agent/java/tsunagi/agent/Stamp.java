package tsunagi.agent;

import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;

/** An entry of Stamps, in one of its chains. */
final class Stamp extends WeakReference<Object> {
	static final int MANY = 2; /* results that it waits for */

	final int hash;
	final boolean isMade;
	int result; /* what it waits for, by its hash, which is odd; 0: it is no waiter's */
	long context;
	int losses; /* of its lock, when it was stamped */
	int queued; /* hand-overs to executors that take back what they were given, and have not yet */
	Stamp next;

	Stamp(Object object, ReferenceQueue<Object> queue, int hash, boolean isMade, int result) {
		super(object, queue);
		this.hash = hash;
		this.isMade = isMade;
		this.result = result;
	}

	/* What is handed over may wait for a result as well: that is another stamp. */
	boolean is(Object object, int hash, boolean isWaiter) {
		return this.hash == hash && get() == object && (result != 0) == isWaiter;
	}
}
