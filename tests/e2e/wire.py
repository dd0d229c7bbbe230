"""An HTTP/1 client on a plain socket, for cases that must control every byte; not traced itself.

Keeps a record of each request in the form of the load generator's log, so that the judge can take it as "load".
"""

import contextlib
import socket
import time

T1, S1 = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{T1}-{S1}-01"


class Wire:
    def __init__(self, port, records=None, source_port=0, timeout=10):
        self.records = {} if records is None else records
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if source_port:
            self.socket.bind(("127.0.0.1", source_port))
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.reader.close()
            self.socket.close()

    def send(self, data, cuts=()):
        """All bytes, in separate sends cut at the offsets."""
        edges = [0, *cuts, len(data)]
        for first, last in zip(edges, edges[1:]):
            self.socket.sendall(data[first:last])
            if last != len(data):
                time.sleep(0.0005)

    def response(self, method="GET"):
        """Status and body of the next response."""
        line = self.reader.readline()
        if not line:
            raise ConnectionError("the server closed the connection")
        length = 0
        while (header := self.reader.readline().strip().lower()) != b"":
            if header.startswith(b"content-length:"):
                length = int(header[15:])
        body = self.reader.read(length) if method != "HEAD" else b""
        return int(line.split()[1]), body

    def head(self, path, headers=(), method="GET"):
        lines = [f"{method} {path} HTTP/1.1", "Host: wire", *headers, "", ""]
        return "\r\n".join(lines).encode("latin-1")

    def request(self, path, headers=(), cuts=(), traceparent=""):
        """One exchange, recorded under the last part of the path; 'traceparent': what the server must continue."""
        start = time.time_ns()
        self.send(self.head(path, headers), cuts)
        status, _ = self.response()
        request = path.rsplit("/", 1)[1].split("?")[0]
        self.records["client", request] = {"id": request, "role": "client", "path": path, "status": status,
                                           "start": start, "end": time.time_ns(), "traceparent": traceparent}
        return status


def quiet_exchange(port, data, seconds=0.3):
    """Sends bytes that may be no HTTP at all and reads whatever comes back for a while; errors are expected."""
    with contextlib.suppress(OSError), Wire(port, timeout=seconds) as wire:
        wire.socket.sendall(data)
        with contextlib.suppress(OSError):
            wire.socket.shutdown(socket.SHUT_WR)
        while wire.socket.recv(65536):
            pass
