"""HTTP over a Unix socket, which is not followed; and Unix sockets that carry something else.

unixhttp.py NAME serve SOCKET | call SOCKET | other: NAME is not used, by it a process is selected. Prints "ready". For
each line that it reads, a number, a caller makes so many calls, and 'other' so many exchanges; then it prints "done".
"""

import http.client
import http.server
import socket
import socketserver
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = b"GET is what was asked for\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(b"It: ")
        self.wfile.write(body[4:])

    def address_string(self):
        return "unix"

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.host)


def call(place, n):
    connection = Connection(place)
    for i in range(n):
        connection.request("GET", f"/unix/{i}")
        connection.getresponse().read()


def other(n):
    here, there = socket.socketpair(socket.AF_UNIX)
    for i in range(n):
        here.sendall(f"give {i}: GET / HTTP/1.1\r\n".encode())
        there.sendall(there.recv(100))
        here.recv(100)


def main():
    mode = sys.argv[2]
    if mode == "serve":
        server = Server(sys.argv[3], Handler)
        print("ready", flush=True)
        server.serve_forever()
    print("ready", flush=True)
    for line in sys.stdin:
        if mode == "call":
            call(sys.argv[3], int(line))
        else:
            other(int(line))
        print("done", flush=True)


main()
