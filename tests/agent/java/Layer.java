import java.lang.module.Configuration;
import java.lang.module.ModuleFinder;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Collections;

/**
 * Runs a program whose library is a module in a layer of its own, as plug-in systems have it: such a
 * module reads no other loader's classes by itself. Source level 9.
 *
 * Layer MODULE LIBRARY.jar:... CLASSES PROGRAM ARGUMENT...
 */
public class Layer {
	public static void main(String[] args) throws Exception {
		ModuleFinder found = ModuleFinder.of(Arrays.stream(args[1].split(":")).map(Paths::get)
							  .toArray(java.nio.file.Path[]::new));
		Configuration modules = ModuleLayer.boot().configuration().resolve(
			found, ModuleFinder.of(), Collections.singleton(args[0]));
		ModuleLayer layer = ModuleLayer.boot().defineModulesWithOneLoader(
			modules, ClassLoader.getSystemClassLoader());
		URL[] classes = {Paths.get(args[2]).toUri().toURL()};
		ClassLoader loader = new URLClassLoader(classes, layer.findLoader(args[0]));

		loader.loadClass(args[3]).getMethod("main", String[].class).invoke(
			null, (Object) Arrays.copyOfRange(args, 4, args.length));
	}
}
