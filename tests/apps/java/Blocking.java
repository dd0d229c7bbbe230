/*
 * A server without a selector: a thread for each connection, which waits for the next request in a blocking read.
 * The answer's status is always 200.
 *
 * java Blocking PORT LOG
 */
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

public final class Blocking {
	private final RequestLog log;

	private Blocking(String file) throws IOException {
		log = new RequestLog(file);
	}

	private void serve(Socket connection) {
		try (Socket socket = connection) {
			BufferedReader in = new BufferedReader(
				new InputStreamReader(socket.getInputStream(), StandardCharsets.ISO_8859_1));
			OutputStream out = socket.getOutputStream();
			String start;

			socket.setTcpNoDelay(true);
			while ((start = in.readLine()) != null) {
				long begin = RequestLog.now();

				while (!in.readLine().isEmpty())
					continue;
				String path = start.split(" ")[1];
				byte[] body = ("blocking " + path + "\n").getBytes(StandardCharsets.UTF_8);
				byte[] head = ("HTTP/1.1 200 OK\r\nContent-Length: " + body.length + "\r\n\r\n")
					.getBytes(StandardCharsets.UTF_8);

				out.write(head);
				log.write("server", path, 200, begin, RequestLog.now());
				out.write(body);
			}
		} catch (IOException gone) {
			return; // so is the connection
		}
	}

	public static void main(String[] args) throws IOException {
		Blocking server = new Blocking(args[1]);

		try (ServerSocket listener = new ServerSocket(Integer.parseInt(args[0]), 64,
				InetAddress.getByName("127.0.0.1"))) {
			System.out.println("ready");
			while (true) {
				Socket connection = listener.accept();

				new Thread(() -> server.serve(connection)).start();
			}
		}
	}
}
