package tsunagi.agent;

/** A job of a library, with what it was handed over for. */
final class Wrapped implements Runnable {
	private final Runnable job;
	private final long context;

	Wrapped(Runnable job, long context) {
		this.job = job;
		this.context = context;
	}

	@Override
	public void run() {
		Context.push();
		try {
			Context.adopt(0);
			Context.mount(context);
			job.run();
		} finally {
			Context.pop();
		}
	}

	@Override
	public String toString() {
		return job.toString();
	}
}
