package zoo;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;

/** Tomcat, whose threads wait for the rest of a request while its poller selects: java zoo.Main PORT BACK_PORT LOG */
public final class Main {
	private static final Logger SLOW = Logger.getLogger("org.apache.catalina.util.SessionIdGeneratorBase");

	private Main() {
	}

	/** At /body, once the request's body was read, and at /own, before that. */
	private static final class Servlet extends HttpServlet {
		@Override
		protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
			Exchange one = new Exchange(request.getRequestURI());
			boolean isFirst = request.getRequestURI().startsWith("/own/");
			int status;

			if (!isFirst)
				request.getInputStream().readAllBytes();
			status = UrlConnection.get(one.url());
			if (isFirst)
				request.getInputStream().readAllBytes();
			response.setStatus(one.end(status));
			response.getOutputStream().print("front\n");
		}
	}

	public static void main(String[] args) throws Exception {
		Zoo.begin(args);

		/* It says so where its source of random numbers is slow, once a run perhaps. */
		SLOW.setLevel(Level.SEVERE);

		Path folder = Files.createTempDirectory("zoo");
		Tomcat tomcat = new Tomcat();
		Context context;

		tomcat.setBaseDir(folder.toString());
		tomcat.setHostname("127.0.0.1");
		tomcat.setPort(Zoo.port);
		tomcat.getConnector().setProperty("address", "127.0.0.1");
		context = tomcat.addContext("", folder.toString());
		Tomcat.addServlet(context, "zoo", new Servlet());
		context.addServletMappingDecoded("/*", "zoo");
		tomcat.start();
		Zoo.ready();
		tomcat.getServer().await();
	}
}
