package zoo;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.function.ToIntFunction;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import org.apache.felix.framework.FrameworkFactory;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.osgi.framework.Bundle;
import org.osgi.framework.launch.Framework;

/**
 * What has threads, sockets and class loaders of its own, and is no HTTP framework: java zoo.Main PORT BACK_PORT LOG
 * WAY... Each way does its work for a request, and calls the back end. The server is the JDK's.
 */
public final class Main {
	private static final Map<String, ToIntFunction<Exchange>> WAYS = new HashMap<>();

	private Main() {
	}

	/** A way that may throw. */
	private interface Way {
		int call(Exchange one) throws Exception;
	}

	private static void way(String name, Way way) {
		WAYS.put(name, one -> {
			try {
				return way.call(one);
			} catch (Exception e) {
				throw new IllegalStateException(e);
			}
		});
	}

	private static void database() throws Exception {
		Connection open = DriverManager.getConnection("jdbc:h2:mem:zoo;DB_CLOSE_DELAY=-1");

		open.createStatement().execute("create table calls(path varchar primary key, status int)");
		way("database", one -> {
			try (Connection connection = DriverManager.getConnection("jdbc:h2:mem:zoo")) {
				PreparedStatement insert = connection.prepareStatement("insert into calls values(?, ?)");
				int status = UrlConnection.get(one.url());

				insert.setString(1, one.path());
				insert.setInt(2, status);
				insert.execute();
				return status;
			}
		});
	}

	private static void index() throws Exception {
		IndexWriter writer = new IndexWriter(new ByteBuffersDirectory(), new IndexWriterConfig());

		way("index", one -> {
			Document document = new Document();

			document.add(new StringField("path", one.path(), Field.Store.YES));
			writer.addDocument(document);
			try (DirectoryReader reader = DirectoryReader.open(writer)) {
				if (new IndexSearcher(reader).count(new TermQuery(new Term("path", one.path()))) != 1)
					return 599;
			}
			return UrlConnection.get(one.url());
		});
	}

	private static void add(JarOutputStream jar, Class<?> type) throws IOException {
		String name = type.getName().replace('.', '/') + ".class";

		jar.putNextEntry(new JarEntry(name));
		try (InputStream in = type.getClassLoader().getResourceAsStream(name)) {
			in.transferTo(jar);
		}
	}

	private static byte[] bundle() throws IOException {
		Manifest manifest = new Manifest();
		ByteArrayOutputStream bytes = new ByteArrayOutputStream();

		manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
		manifest.getMainAttributes().putValue("Bundle-ManifestVersion", "2");
		manifest.getMainAttributes().putValue("Bundle-SymbolicName", "work");
		try (JarOutputStream jar = new JarOutputStream(bytes, manifest)) {
			add(jar, Work.class);
			add(jar, UrlConnection.class);
		}
		return bytes.toByteArray();
	}

	@SuppressWarnings("unchecked")
	private static void osgi() throws Exception {
		Framework framework = new FrameworkFactory().newFramework(Map.of("org.osgi.framework.storage",
			Files.createTempDirectory("felix").toString()));

		framework.start();
		Bundle bundle = framework.getBundleContext().installBundle("work",
			new ByteArrayInputStream(bundle()));
		bundle.start();
		Class<?> type = bundle.loadClass("zoo.Work");
		if (type.getClassLoader() == Main.class.getClassLoader())
			throw new IllegalStateException("not the bundle's");
		ToIntFunction<String> work = (ToIntFunction<String>) type.getConstructor().newInstance();

		way("osgi", one -> work.applyAsInt(one.url()));
	}

	private static void handle(HttpExchange exchange) throws IOException {
		String path = exchange.getRequestURI().getPath();
		Exchange one = new Exchange(path);
		byte[] body = "front\n".getBytes();

		exchange.sendResponseHeaders(one.end(WAYS.get(path.split("/")[1]).applyAsInt(one)), body.length);
		exchange.getResponseBody().write(body);
		exchange.close();
	}

	public static void main(String[] args) throws Exception {
		HttpServer server;

		Zoo.begin(args);
		way("plain", one -> UrlConnection.get(one.url()));
		for (int i = 3; i < args.length; i++) {
			switch (args[i]) {
			case "database" -> database();
			case "index" -> index();
			case "osgi" -> osgi();
			default -> { }
			}
		}
		server = HttpServer.create(new InetSocketAddress("127.0.0.1", Zoo.port), 1024);
		server.createContext("/", Main::handle);
		server.setExecutor(Executors.newFixedThreadPool(16));
		server.start();
		Zoo.ready();
	}
}
