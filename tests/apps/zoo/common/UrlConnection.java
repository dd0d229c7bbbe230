package zoo;

import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;

/** The JDK's oldest client. */
public final class UrlConnection {
	private UrlConnection() {
	}

	public static int get(String url) {
		try {
			HttpURLConnection connection = (HttpURLConnection) URI.create(url).toURL().openConnection();
			int status = connection.getResponseCode();

			try (InputStream in = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
				in.readAllBytes();
			}
			return status;
		} catch (IOException e) {
			throw new IllegalStateException(e);
		}
	}
}
