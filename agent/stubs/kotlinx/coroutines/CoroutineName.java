package kotlinx.coroutines;

import kotlin.coroutines.CoroutineContext;

public abstract class CoroutineName implements CoroutineContext.Element {
	public static final class Key implements CoroutineContext.Key<CoroutineName> {
	}

	public static final Key Key = null;

	public final native String getName();
}
