import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Virtual threads by the thousand on one CPU, each handed over for a request of its own: those that run them
 * and they themselves come to the agent at the same time. Judged as in Handovers: a line a case. Source level 8.
 */
public class Crowd implements Executor {
	private static final int ROUNDS = 3;

	private final ExecutorService threads;

	private Crowd() throws ReflectiveOperationException {
		threads = (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
	}

	@Override
	public void execute(Runnable job) {
		threads.execute(job);
	}

	public static void main(String[] args) throws Exception {
		int n = Integer.parseInt(args[0]);
		Crowd crowd = new Crowd();

		System.out.println("READY");
		Handovers.awaitAgent();
		for (int i = 0; i < ROUNDS; i++) {
			CountDownLatch done = new CountDownLatch(n);

			Handovers.run("crowd-" + i, n, request -> crowd.execute(() -> {
				Handovers.judge(request);
				done.countDown();
			}));
			Handovers.await(done);
			Handovers.print("crowd-" + i); /* of all of them */
		}
		System.exit(0);
	}
}
