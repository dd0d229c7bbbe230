package kotlinx.coroutines;

import kotlin.coroutines.CoroutineContext;

public interface CopyableThreadContextElement<S> extends CoroutineContext.Element {
	S updateThreadContext(CoroutineContext context);

	void restoreThreadContext(CoroutineContext context, S before);

	CopyableThreadContextElement<S> copyForChild();

	CoroutineContext mergeForChild(CoroutineContext.Element other);
}
