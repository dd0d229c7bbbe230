import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.ArrayDeque;
import java.util.Queue;

/**
 * One connection that all requests share, as that to a cache or a broker: each sends a byte, and goes on in the loop's
 * thread when the byte comes back. They come back in order, two at a time where there are as many. By its shape it is no
 * executor, and it has no promises.
 */
final class Multiplexed extends SimpleChannelInboundHandler<ByteBuf> {
	private final Queue<Runnable> waiting = new ArrayDeque<>();
	private final Channel channel;

	@SuppressWarnings("deprecation") /* the newest has other names for the groups, the oldest these alone */
	Multiplexed() throws Exception {
		ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());

		new Thread(() -> echo(server)).start();
		channel = new Bootstrap().group(new NioEventLoopGroup(1)).channel(NioSocketChannel.class).handler(this)
			.connect(server.getLocalSocketAddress()).sync().channel();
	}

	private static void echo(ServerSocket server) {
		try (Socket socket = server.accept()) {
			InputStream in = socket.getInputStream();
			OutputStream out = socket.getOutputStream();

			for (int one = in.read(); one >= 0; one = in.read()) {
				out.write(one + next(socket, in));
				socket.setSoTimeout(0);
			}
		} catch (IOException end) {
			end.printStackTrace();
		}
	}

	/* Waits for one more: 1, or 0 if none comes. */
	private static int next(Socket socket, InputStream in) throws IOException {
		socket.setSoTimeout(2);
		try {
			return in.read() < 0 ? 0 : 1;
		} catch (SocketTimeoutException none) {
			return 0;
		}
	}

	void send(Runnable work) {
		synchronized (waiting) {
			waiting.add(work);
			channel.writeAndFlush(Unpooled.wrappedBuffer(new byte[1]), channel.voidPromise());
		}
	}

	private Runnable next() {
		synchronized (waiting) {
			return waiting.remove();
		}
	}

	/* 0: one has come back, 1: two. */
	@Override
	protected void channelRead0(ChannelHandlerContext context, ByteBuf bytes) {
		while (bytes.isReadable())
			for (int n = bytes.readByte(); n >= 0; n--)
				next().run();
	}
}
