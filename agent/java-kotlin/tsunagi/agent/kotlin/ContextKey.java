package tsunagi.agent.kotlin;

import kotlin.coroutines.CoroutineContext;

/** The key of ContextElement. */
final class ContextKey implements CoroutineContext.Key<ContextElement> {
	static final ContextKey KEY = new ContextKey();

	private ContextKey() {
	}
}
