/** A Java agent that does nothing, for JVMs that are to look as if a tracer's were in them. */
public final class Premain {
	private Premain() {
	}

	public static void premain(String options) {
	}
}
