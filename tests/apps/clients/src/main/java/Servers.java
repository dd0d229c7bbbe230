import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.epoll.EpollEventLoopGroup;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.util.concurrent.DefaultEventExecutorGroup;
import io.netty.util.concurrent.EventExecutorGroup;
import io.netty.util.concurrent.GlobalEventExecutor;
import io.netty.util.concurrent.NonStickyEventExecutorGroup;
import io.netty.util.concurrent.UnorderedThreadPoolEventExecutor;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * jdk: the JDK's own, with a pool of threads; "-WAY": what does the request's work is handed over, see Ways. netty-nio, netty-epoll: Netty, where the request is handled "inline", by
 * the event loop that read it; "-pool", by a pool of threads; "-loop", by another event loop; "-delayed", by the same
 * one a millisecond later; "-executor", by a handler that has an executor of its own; "-global", by Netty's one thread
 * for everybody; "-ordered", by an executor whose tasks others run.
 */
final class Servers {
	private Servers() {
	}

	static void start(String name, int port, Handler handler) throws Exception {
		InetSocketAddress address = new InetSocketAddress("127.0.0.1", port);

		if (name.equals("jdk"))
			startJdk(address, handler);
		else if (name.startsWith("jdk-"))
			startJdk(address, handed(Ways.make(name.substring(4)), handler));
		else
			startNetty(name, address, handler);
	}

	private static byte[] body(String path) {
		return ("front " + path + "\n").getBytes(StandardCharsets.UTF_8);
	}

	/* --- the JDK's */

	private static void startJdk(InetSocketAddress address, Handler handler) throws IOException {
		HttpServer server = HttpServer.create(address, 1024);

		server.createContext("/", exchange -> handleJdk(exchange, handler));
		server.setExecutor(Executors.newFixedThreadPool(64));
		server.start();
	}

	private static Handler handed(Executor way, Handler handler) {
		return (path, answer) -> way.execute(() -> handler.handle(path, answer));
	}

	/* It waits: this server's exchange belongs to the thread. */
	private static void handleJdk(HttpExchange exchange, Handler handler) throws IOException {
		CountDownLatch isAnswered = new CountDownLatch(1);
		String path = exchange.getRequestURI().getPath();
		int[] status = new int[1];

		handler.handle(path, result -> {
			status[0] = result;
			isAnswered.countDown();
		});
		try {
			isAnswered.await();
		} catch (InterruptedException e) {
			throw new IOException(e);
		}
		byte[] body = body(path);

		exchange.sendResponseHeaders(status[0], body.length);
		exchange.getResponseBody().write(body);
		exchange.close();
	}

	/* --- Netty's */

	@SuppressWarnings("deprecation") /* the newest has other names for the groups, the oldest these alone */
	private static EventLoopGroup group(boolean isEpoll, int threads) {
		return isEpoll ? new EpollEventLoopGroup(threads) : new NioEventLoopGroup(threads);
	}

	private static Executor[] executors(String how, boolean isEpoll) {
		if (how.equals("pool"))
			return new Executor[] {Executors.newFixedThreadPool(64)};
		if (how.equals("global"))
			return new Executor[] {GlobalEventExecutor.INSTANCE};
		if (how.equals("ordered")) {
			EventExecutorGroup ordered = new NonStickyEventExecutorGroup(
				new UnorderedThreadPoolEventExecutor(4));

			return new Executor[] {ordered.next(), ordered.next(), ordered.next()};
		}
		if (!how.equals("loop"))
			return new Executor[] {Runnable::run};

		EventLoopGroup others = group(isEpoll, 2);

		return new Executor[] {others.next(), others.next()};
	}

	private static void startNetty(String name, InetSocketAddress address, Handler handler) throws Exception {
		boolean isEpoll = name.startsWith("netty-epoll");
		String how = name.substring(name.indexOf('-', 6) + 1);
		Executor[] executors = executors(how, isEpoll);
		DefaultEventExecutorGroup own = how.equals("executor") ? new DefaultEventExecutorGroup(4) : null;

		new ServerBootstrap()
			.group(group(isEpoll, 1), group(isEpoll, 4))
			.channel(isEpoll ? EpollServerSocketChannel.class : NioServerSocketChannel.class)
			.option(ChannelOption.SO_BACKLOG, 1024)
			.childOption(ChannelOption.TCP_NODELAY, true)
			.childHandler(new ChannelInitializer<SocketChannel>() {
				@Override
				protected void initChannel(SocketChannel channel) {
					channel.pipeline().addLast(new HttpServerCodec(), new HttpObjectAggregator(1 << 20));
					channel.pipeline().addLast(own, new Requests(handler, executors, how));
				}
			})
			.bind(address).sync();
	}

	private static final class Requests extends SimpleChannelInboundHandler<FullHttpRequest> {
		private final Handler handler;
		private final Executor[] executors;
		private final boolean isDelayed;
		private int next;

		Requests(Handler handler, Executor[] executors, String how) {
			this.handler = handler;
			this.executors = executors;
			this.isDelayed = how.equals("delayed");
		}

		@Override
		protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
			String path = request.uri();
			Runnable job = () -> handler.handle(path, status -> answer(context, path, status));

			if (isDelayed)
				context.executor().schedule(job, 1, TimeUnit.MILLISECONDS);
			else
				executors[next++ % executors.length].execute(job);
		}

		private static void answer(ChannelHandlerContext context, String path, int status) {
			ByteBuf body = Unpooled.wrappedBuffer(body(path));
			DefaultFullHttpResponse response = new DefaultFullHttpResponse(
				HttpVersion.HTTP_1_1, HttpResponseStatus.valueOf(status), body);

			response.headers().set(HttpHeaderNames.CONTENT_LENGTH, body.readableBytes());
			context.writeAndFlush(response);
		}

		@Override
		public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
			context.close();
		}
	}
}
