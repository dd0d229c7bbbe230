import java.util.HashMap;
import java.util.Map;
import java.util.function.IntConsumer;

/**
 * A service with the server and the clients that are named: for each request, GET /CLIENT/ID, that client calls the
 * back end once.
 *
 * java Front PORT BACK_PORT LOG SERVER CLIENT...
 *
 * SERVER: see Servers; CLIENT: see Clients.
 */
public final class Front {
	private final RequestLog log;
	private final String back;
	private final Map<String, Client> clients = new HashMap<>();

	private Front(RequestLog log, String back) {
		this.log = log;
		this.back = back;
	}

	private void handle(String path, IntConsumer answer) {
		long start = RequestLog.now();
		String called = "/back/" + RequestLog.id(path);

		clients.get(path.split("/")[1]).get(back + called).whenComplete((status, failure) -> {
			int result = failure == null && status < 500 ? 200 : 502;

			if (failure != null)
				failure.printStackTrace();
			log.write("client", called, failure == null ? status : 0, start);
			log.write("server", path, result, start);
			answer.accept(result);
		});
	}

	public static void main(String[] args) throws Exception {
		Front front = new Front(new RequestLog(args[2]), "http://127.0.0.1:" + args[1]);

		for (int i = 4; i < args.length; i++)
			front.clients.put(args[i], Clients.make(args[i], Integer.parseInt(args[1])));
		Servers.start(args[3], Integer.parseInt(args[0]), front::handle);
		System.out.println("ready");
	}
}
