import java.util.concurrent.BlockingQueue;

/**
 * What an executor may put its jobs into: something that carries the application's own from thread to thread, and
 * knows no executor. Used by Own. Source level 8.
 */
final class Carried implements Runnable {
	private final Runnable job;

	private Carried(Runnable job) {
		this.job = job;
	}

	static Runnable object(Runnable job) {
		return new Carried(job);
	}

	static Runnable lambda(Runnable job) {
		return () -> job.run();
	}

	@Override
	public void run() {
		job.run();
	}

	/** In a method that runs something, the thread takes what comes next. */
	static Handovers.Message next(BlockingQueue<Handovers.Message> queue, Runnable before)
		throws InterruptedException {
		before.run();
		return queue.take();
	}
}
