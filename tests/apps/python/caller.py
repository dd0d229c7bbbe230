"""A traced client that does what it is told on its standard input, one command a line, each answered by a line.

caller.py LOG
    connect NAME PORT [SOURCE_PORT]   opens a connection and keeps it
    get NAME PATH                     one exchange on it, recorded like the other services do
    serve PORT                        answers HTTP on that port from a thread, so that both ends are in one process
Answers "ok ..." or "error ...".
"""

import http.client
import http.server
import sys
import threading
import time

from requestlog import RequestLog, status_of

LOG = RequestLog(sys.argv[1])
CONNECTIONS = {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        start = time.time_ns()
        status, body = status_of(self.path), b"caller\n"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        LOG.write("server", self.path, status, start, time.time_ns())
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def connect(name, port, source_port="0"):
    source = ("127.0.0.1", int(source_port)) if int(source_port) else None
    CONNECTIONS[name] = http.client.HTTPConnection("127.0.0.1", int(port), source_address=source, timeout=10)
    CONNECTIONS[name].connect()


def get(name, path):
    start = time.time_ns()
    CONNECTIONS[name].request("GET", path)
    response = CONNECTIONS[name].getresponse()
    response.read()
    LOG.write("client", path, response.status, start, time.time_ns())
    return response.status


def serve(port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()


COMMANDS = {"connect": connect, "get": get, "serve": serve}
print("ready", flush=True)
for line in sys.stdin:
    command, *arguments = line.split()
    try:
        print("ok", COMMANDS[command](*arguments), flush=True)
    except OSError as error:
        print("error", error, flush=True)
