import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.epoll.EpollEventLoopGroup;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.pool.AbstractChannelPoolHandler;
import io.netty.channel.pool.FixedChannelPool;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpClientCodec;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.util.AttributeKey;
import io.netty.util.concurrent.Future;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.concurrent.CompletableFuture;

/** Netty's bare HTTP client on loops of its own, with Netty's pool of at most eight connections. */
final class NettyClient implements Client {
	private static final AttributeKey<CompletableFuture<Integer>> RESULT = AttributeKey.valueOf("result");

	private final FixedChannelPool pool;

	@SuppressWarnings("deprecation") /* the newest has other names for the groups, the oldest these alone */
	NettyClient(int port, boolean isEpoll) {
		EventLoopGroup group = isEpoll ? new EpollEventLoopGroup(2) : new NioEventLoopGroup(2);
		Bootstrap bootstrap = new Bootstrap()
			.group(group)
			.channel(isEpoll ? EpollSocketChannel.class : NioSocketChannel.class)
			.remoteAddress(new InetSocketAddress("127.0.0.1", port));

		pool = new FixedChannelPool(bootstrap, new AbstractChannelPoolHandler() {
			@Override
			public void channelCreated(Channel channel) {
				channel.pipeline().addLast(new HttpClientCodec(), new HttpObjectAggregator(1 << 20), new Responses());
			}
		}, 8);
	}

	@Override
	public CompletableFuture<Integer> get(String url) {
		CompletableFuture<Integer> result = new CompletableFuture<>();

		pool.acquire().addListener((Future<Channel> acquired) -> {
			if (acquired.isSuccess())
				send(acquired.getNow(), url, result);
			else
				result.completeExceptionally(acquired.cause());
		});
		return result;
	}

	private static void send(Channel channel, String url, CompletableFuture<Integer> result) {
		DefaultFullHttpRequest request = new DefaultFullHttpRequest(
			HttpVersion.HTTP_1_1, HttpMethod.GET, URI.create(url).getPath());

		request.headers().set(HttpHeaderNames.HOST, "127.0.0.1");
		channel.attr(RESULT).set(result);
		channel.writeAndFlush(request).addListener(sent -> {
			if (!sent.isSuccess())
				result.completeExceptionally(sent.cause());
		});
	}

	private final class Responses extends SimpleChannelInboundHandler<FullHttpResponse> {
		@Override
		protected void channelRead0(ChannelHandlerContext context, FullHttpResponse response) {
			CompletableFuture<Integer> result = context.channel().attr(RESULT).getAndSet(null);
			int status = response.status().code();

			pool.release(context.channel());
			result.complete(status);
		}

		@Override
		public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
			CompletableFuture<Integer> result = context.channel().attr(RESULT).getAndSet(null);

			if (result != null)
				result.completeExceptionally(cause);
			context.close();
		}
	}
}
