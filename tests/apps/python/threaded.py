"""A threaded HTTP server of the standard library: a thread for each connection, kept alive.

threaded.py [ADDRESS:]PORT LOG [[ADDRESS:]BACK_PORT [PAUSE_MS]]: with BACK_PORT (not 0) each request makes one call
there on its own thread. Addresses are 127.0.0.1 unless given; IPv6 ones, without brackets, and "::" also takes IPv4.
With PAUSE_MS a response takes so long to begin, and as long again between the halves of its body.
"""

import http.client
import http.server
import socket
import sys
import threading
import time

from requestlog import RequestLog, request_id, status_of


def place(text):
    address, _, port = text.rpartition(":")
    return address or "127.0.0.1", int(port)


LOG = RequestLog(sys.argv[2])
BACK = place(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[3] != "0" else None
PAUSE = int(sys.argv[4]) / 1000 if len(sys.argv) > 4 else 0
LOCAL = threading.local()


def call(path):
    start = time.time_ns()
    if not hasattr(LOCAL, "connection"):
        LOCAL.connection = http.client.HTTPConnection(*BACK)
    LOCAL.connection.request("GET", path)
    response = LOCAL.connection.getresponse()
    response.read()
    LOG.write("client", path, response.status, start, time.time_ns())
    return response.status


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        start = time.time_ns()
        if BACK:
            status = 200 if call("/back/" + request_id(self.path)) < 500 else 502
        else:
            status = status_of(self.path)
        if PAUSE:
            time.sleep(PAUSE)
        body = f"python {self.path}\n".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        LOG.write("server", self.path, status, start, time.time_ns())
        if PAUSE:
            self.wfile.write(body[:4])
            time.sleep(PAUSE)
            body = body[4:]
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


ADDRESS = place(sys.argv[1])
Server.address_family = socket.AF_INET6 if ":" in ADDRESS[0] else socket.AF_INET
server = Server(ADDRESS, Handler)
print("ready", flush=True)
server.serve_forever()
