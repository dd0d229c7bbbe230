package kotlin.coroutines;

public interface CoroutineContext {
	interface Key<E extends Element> {
	}

	interface Element extends CoroutineContext {
	}

	<E extends Element> E get(Key<E> key);

	CoroutineContext plus(CoroutineContext context);

	CoroutineContext minusKey(Key<?> key);
}
