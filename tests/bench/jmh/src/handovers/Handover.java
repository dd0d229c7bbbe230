package handovers;

import com.sun.tools.attach.VirtualMachine;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What is handed over in the name of a request: with the agent's library loaded into this JVM ("agent", and switched
 * on), or without it ("none", the library's path is not looked at). Each thread works for a request that it has read,
 * as far as the agent knows.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 4, time = 1)
@Measurement(iterations = 3, time = 1)
@Fork(value = 1, jvmArgsAppend = {"-Djdk.attach.allowAttachSelf=true", "-XX:+EnableDynamicAgentLoading",
				  "--add-modules=jdk.attach"})
public class Handover {
	private static final int MANY = 1000;

	@Param({"none"})
	public String agent;

	private final ExecutorService pool = Executors.newSingleThreadExecutor();
	private final ExecutorService virtual = Executors.newVirtualThreadPerTaskExecutor();
	private final BlockingQueue<Object> queue = new ArrayBlockingQueue<>(16);
	private final Object[] messages = new Object[MANY];

	@Setup(Level.Trial)
	public void load() throws Exception {
		for (int i = 0; i < MANY; i++)
			messages[i] = new Object();
		if (agent.equals("none"))
			return;
		VirtualMachine self = VirtualMachine.attach(Long.toString(ProcessHandle.current().pid()));

		self.loadAgentPath(agent);
		self.detach();
	}

	@Setup(Level.Iteration)
	public void mount() throws Exception {
		if (!agent.equals("none"))
			Class.forName("tsunagi.agent.Context", false, null).getMethod("mount", long.class).invoke(null, 1L << 40);
	}

	@TearDown
	public void end() {
		pool.shutdownNow();
		virtual.shutdownNow();
	}

	/** A virtual thread gives way and goes on: one unmount, one mount. */
	@Benchmark
	@OperationsPerInvocation(MANY)
	public void yieldVirtual() throws Exception {
		Future<?> done = virtual.submit(() -> {
			for (int i = 0; i < MANY; i++)
				Thread.yield();
		});

		done.get();
	}

	/** A job is handed to a pool's thread and run there. */
	@Benchmark
	@OperationsPerInvocation(MANY)
	public void executeJob() throws Exception {
		CountDownLatch done = new CountDownLatch(MANY);

		for (int i = 0; i < MANY; i++)
			pool.execute(() -> done.countDown());
		done.await();
	}

	/** A message goes through a queue, and comes out in the same thread. */
	@Benchmark
	@OperationsPerInvocation(MANY)
	public Object passMessage() throws Exception {
		Object last = null;

		for (int i = 0; i < MANY; i++) {
			queue.put(messages[i]);
			last = queue.take();
		}
		return last;
	}
}
