import java.util.function.IntConsumer;

/**
 * A service with the server and the client that are named: it calls the back end once for each request.
 *
 * java Front PORT BACK_PORT LOG SERVER CLIENT
 *
 * SERVER: see Servers; CLIENT: see Clients.
 */
public final class Front {
	private final RequestLog log;
	private final String back;
	private final Client client;

	private Front(RequestLog log, String back, Client client) {
		this.log = log;
		this.back = back;
		this.client = client;
	}

	private void handle(String path, IntConsumer answer) {
		long start = RequestLog.now();
		String called = "/back/" + RequestLog.id(path);

		client.get(back + called).whenComplete((status, failure) -> {
			int result = failure == null && status < 500 ? 200 : 502;

			if (failure != null)
				failure.printStackTrace();
			log.write("client", called, failure == null ? status : 0, start);
			log.write("server", path, result, start);
			answer.accept(result);
		});
	}

	public static void main(String[] args) throws Exception {
		Client client = Clients.make(args[4], Integer.parseInt(args[1]));
		Front front = new Front(new RequestLog(args[2]), "http://127.0.0.1:" + args[1], client);

		Servers.start(args[3], Integer.parseInt(args[0]), front::handle);
		System.out.println("ready");
	}
}
