package tsunagi.agent;

import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;

/** An entry of Stamps, in one of its chains. */
final class Stamp extends WeakReference<Object> {
	final int hash;
	final boolean isMade;
	long context;
	int losses; /* of its lock, when it was stamped */
	int queued; /* hand-overs to executors that take back what they were given, and have not yet */
	Stamp next;

	Stamp(Object object, ReferenceQueue<Object> queue, int hash, boolean isMade) {
		super(object, queue);
		this.hash = hash;
		this.isMade = isMade;
	}
}
