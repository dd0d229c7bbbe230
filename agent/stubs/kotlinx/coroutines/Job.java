package kotlinx.coroutines;

import kotlin.coroutines.CoroutineContext;

public interface Job extends CoroutineContext.Element {
	final class Key implements CoroutineContext.Key<Job> {
	}

	Key Key = null;
}
