package tsunagi.agent.kotlin;

import kotlin.coroutines.AbstractCoroutineContextElement;
import kotlin.coroutines.CoroutineContext;
import kotlinx.coroutines.CopyableThreadContextElement;
import tsunagi.agent.Coroutine;

/**
 * A coroutine has this in its context: kotlinx.coroutines then says when it begins and ends to run on
 * a thread, and asks for a copy for each that is started in its scope.
 */
public final class ContextElement extends AbstractCoroutineContextElement
	implements CopyableThreadContextElement<Object> {
	final Coroutine coroutine;

	ContextElement(Coroutine coroutine) {
		super(ContextKey.KEY);
		this.coroutine = coroutine;
	}

	@Override
	public Object updateThreadContext(CoroutineContext context) {
		return coroutine.mount();
	}

	@Override
	public void restoreThreadContext(CoroutineContext context, Object before) {
		Coroutine.unmount(before);
	}

	@Override
	public CopyableThreadContextElement<Object> copyForChild() {
		return new ContextElement(coroutine.child());
	}

	/** The other one is of a coroutine that has lent its context: that one goes on by itself. */
	@Override
	public CoroutineContext mergeForChild(CoroutineContext.Element other) {
		return copyForChild();
	}
}
