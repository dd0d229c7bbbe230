"""A TCP server that reads anything and answers anything: the bytes after "X-Reply: " in hexadecimal, else an echo.

raw.py PORT: a thread for each connection; a request ends at an empty line, after 50 ms of silence or at the end.
"""

import contextlib
import re
import socketserver
import sys


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.settimeout(0.05)
        received = b""
        with contextlib.suppress(OSError):
            while b"\r\n\r\n" not in received[-8192:]:
                chunk = self.request.recv(8192)
                if not chunk:
                    break
                received += chunk
        reply = re.search(rb"X-Reply: ([0-9a-f]+)", received[:65536])
        with contextlib.suppress(OSError):
            self.request.sendall(bytes.fromhex(reply[1].decode()) if reply else received[:65536])


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256


server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()
