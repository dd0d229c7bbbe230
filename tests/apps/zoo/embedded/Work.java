package zoo;

import java.util.function.ToIntFunction;

/** What a bundle has in it: it is loaded by a loader of the framework's own. */
public final class Work implements ToIntFunction<String> {
	@Override
	public int applyAsInt(String url) {
		return UrlConnection.get(url);
	}
}
