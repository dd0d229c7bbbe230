import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.math.BigInteger;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.LocalDate;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;

/**
 * A bit of everything in the JDK, the same each time, in several threads: tests/agent/rewrite compares
 * what it prints with and without every class rewritten under it.
 */
public final class Workload {
	private static final int ROUNDS = 12;

	private Workload() {
	}

	static native void rewrite();

	private static String text(int seed) {
		return IntStream.range(0, 400).mapToObj(i -> "word" + (i * 31 + seed) % 97)
			.collect(Collectors.joining(" "));
	}

	private static String collections(int seed) {
		Map<String, Integer> counts = new TreeMap<>();
		for (String word : Pattern.compile("\\s+").split(text(seed)))
			counts.merge(word, 1, Integer::sum);
		List<String> words = new ArrayList<>(counts.keySet());
		words.sort((a, b) -> b.compareTo(a));
		return String.format(Locale.ROOT, "%s %08x %.3f", words.get(seed % 7), counts.hashCode(), seed / 7.0);
	}

	private static String bytes(int seed) throws Exception {
		ByteArrayOutputStream packed = new ByteArrayOutputStream();
		try (GZIPOutputStream gzip = new GZIPOutputStream(packed)) {
			gzip.write(text(seed).getBytes(StandardCharsets.UTF_8));
		}
		byte[] plain;
		try (GZIPInputStream gzip = new GZIPInputStream(new ByteArrayInputStream(packed.toByteArray()))) {
			plain = gzip.readAllBytes();
		}
		CRC32 crc = new CRC32();
		crc.update(plain);
		byte[] hash = MessageDigest.getInstance("SHA-256").digest(plain);
		return crc.getValue() + " " + new BigInteger(1, hash).toString(36);
	}

	private static String objects(int seed) throws Exception {
		ByteArrayOutputStream out = new ByteArrayOutputStream();
		try (ObjectOutputStream objects = new ObjectOutputStream(out)) {
			objects.writeObject(new ArrayList<>(Arrays.asList(seed, "x" + seed, LocalDate.of(2000, 1, 1 + seed % 28))));
		}
		try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(out.toByteArray()))) {
			return in.readObject() + " "
				+ LocalDate.of(2020, 1, 1).plusDays(seed).format(DateTimeFormatter.ISO_WEEK_DATE);
		}
	}

	private static String errors(int seed) {
		StringBuilder said = new StringBuilder();
		List<Callable<Object>> bad = Arrays.asList(() -> Integer.parseInt("x" + seed),
			() -> Arrays.asList(1, 2).get(seed + 5), () -> BigInteger.ONE.divide(BigInteger.ZERO),
			() -> Files.readAllBytes(Path.of("/nowhere/" + seed)), () -> LocalDate.parse("no"));
		for (Callable<Object> call : bad) {
			try {
				call.call();
			} catch (Exception e) {
				said.append(e.getClass().getSimpleName()).append(':').append(e.getMessage()).append(';');
			}
		}
		return said.toString();
	}

	private static String socket(int seed) throws Exception {
		try (ServerSocket server = new ServerSocket(0)) {
			CompletableFuture<String> got = CompletableFuture.supplyAsync(() -> {
				try (Socket peer = server.accept()) {
					return new String(peer.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
				} catch (Exception e) {
					throw new IllegalStateException(e);
				}
			});
			try (Socket client = new Socket(server.getInetAddress(), server.getLocalPort())) {
				client.getOutputStream().write(collections(seed).getBytes(StandardCharsets.UTF_8));
			}
			return got.thenApply(String::length).get() + "";
		}
	}

	private static String round(int seed) throws Exception {
		ConcurrentHashMap<Integer, Integer> map = new ConcurrentHashMap<>();
		IntStream.range(0, 2000).parallel().forEach(i -> map.merge(i % 50, i * seed, Integer::sum));
		return collections(seed) + "|" + bytes(seed) + "|" + objects(seed) + "|" + errors(seed) + "|"
			+ socket(seed) + "|" + new TreeMap<>(map).hashCode();
	}

	public static void main(String[] args) throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(4);
		boolean isRewriting = args.length > 0;
		List<Future<String>> results = new ArrayList<>();
		round(0); // what is to be rewritten must be loaded
		for (int i = 0; i < ROUNDS; i++) {
			int seed = i;
			results.add(pool.submit(() -> round(seed)));
		}
		if (isRewriting)
			rewrite();
		for (int i = ROUNDS; i < 3 * ROUNDS; i++) {
			int seed = i;
			results.add(pool.submit(() -> round(seed)));
		}
		for (Future<String> result : results)
			System.out.println(result.get());
		pool.shutdown();
	}
}
