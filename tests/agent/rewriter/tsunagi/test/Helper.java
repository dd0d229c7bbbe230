package tsunagi.test;

/** What every method calls, from the boot loader: it must not call anything itself. */
public final class Helper {
	private Helper() {
	}

	public static void nothing() {
	}

	public static void nothing(Object object) {
	}
}
