import java.io.IOException;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Loads classes and has them linked, which verifies them, without running them: those of the JDK's
 * modules whose names begin with one of the words, and of each jar that is named. Every MODULE|JAR...
 * A class that needs others that are not there is no error; one that does not verify is. Prints counts.
 */
public final class Every {
	private static int linked;
	private static int without;
	private static int broken;

	private Every() {
	}

	private static void link(String name, ClassLoader loader) {
		try {
			Class.forName(name, false, loader).getDeclaredMethods();
			linked++;
		} catch (VerifyError | ClassFormatError | UnsupportedOperationException e) {
			broken++;
			System.out.println("BROKEN " + name + ": " + String.valueOf(e).split("\n", 2)[0]);
		} catch (LinkageError | ClassNotFoundException | TypeNotPresentException e) {
			without++;
		}
	}

	private static void linkModule(String module) throws IOException {
		Path root = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("modules", module);
		List<Path> files;

		try (Stream<Path> all = Files.walk(root)) {
			files = all.filter(file -> file.toString().endsWith(".class")).collect(Collectors.toList());
		}
		for (Path file : files) {
			String name = root.relativize(file).toString().replace(".class", "").replace('/', '.');

			if (!name.endsWith("module-info"))
				link(name, ClassLoader.getSystemClassLoader());
		}
	}

	private static void linkJar(String path, URLClassLoader loader) throws IOException {
		List<String> names;

		try (JarFile jar = new JarFile(path)) {
			names = Collections.list(jar.entries()).stream().map(Object::toString)
				.filter(name -> name.endsWith(".class") && !name.startsWith("META-INF/"))
				.collect(Collectors.toList());
		}
		for (String name : names)
			if (!name.endsWith("module-info.class"))
				link(name.replace(".class", "").replace('/', '.'), loader);
	}

	private static List<String> modules(String prefix) throws IOException {
		try (Stream<Path> all = Files.list(FileSystems.getFileSystem(URI.create("jrt:/")).getPath("modules"))) {
			return all.map(path -> path.getFileName().toString()).filter(name -> name.startsWith(prefix))
				.sorted().collect(Collectors.toList());
		}
	}

	public static void main(String[] args) throws IOException {
		List<String> jars = new ArrayList<>();
		List<URL> urls = new ArrayList<>();

		for (String arg : args) {
			if (arg.endsWith(".jar")) {
				jars.add(arg);
				urls.add(Paths.get(arg).toUri().toURL());
				continue;
			}
			for (String module : modules(arg))
				linkModule(module);
		}
		try (URLClassLoader loader = new URLClassLoader(urls.toArray(new URL[0]))) {
			for (String jar : jars)
				linkJar(jar, loader);
		}
		System.out.println("LINKED " + linked + " " + without + " " + broken);
	}
}
