package kotlin.coroutines;

public abstract class AbstractCoroutineContextElement implements CoroutineContext.Element {
	public AbstractCoroutineContextElement(CoroutineContext.Key<?> key) {
	}

	@Override
	public native <E extends CoroutineContext.Element> E get(CoroutineContext.Key<E> key);

	@Override
	public native CoroutineContext plus(CoroutineContext context);

	@Override
	public native CoroutineContext minusKey(CoroutineContext.Key<?> key);
}
