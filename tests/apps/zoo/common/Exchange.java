package zoo;

/** One request to a service and the call that is made for it. */
public final class Exchange {
	private final long start = Zoo.now();
	private final String path;
	private final String called;

	public Exchange(String path) {
		this.path = path;
		this.called = "/back/" + path.substring(path.lastIndexOf('/') + 1);
	}

	public Exchange(String way, String id) {
		this("/" + way + "/" + id);
	}

	/** What is to be called. */
	public String path() {
		return called;
	}

	public String url() {
		return Zoo.back() + called;
	}

	/** The back end's answer is there; the status that the service is to give. */
	public int end(int status) {
		int result = status < 500 ? 200 : 502;

		Zoo.write("client", called, status, start);
		Zoo.write("server", path, result, start);
		return result;
	}
}
