"""A server that takes every request and answers none, until it is told to: what is open at a time is up to its clients.

hold.py PORT LOG: one thread, any number of connections, pipelined requests without bodies. SIGUSR1: answers all that
is unanswered, in order, and from then on answers at once. The record of a request is written when it is answered.
"""

import selectors
import signal
import socket
import sys
import time

from requestlog import RequestLog, request_id

LOG = RequestLog(sys.argv[2])
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Connection:
    def __init__(self, accepted):
        self.socket = accepted
        self.received = bytearray()
        self.open = []  # (path, start)

    def read(self):
        """Returns False at the end of the connection."""
        data = self.socket.recv(1 << 20)
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            target = self.received[:end].split(b" ", 2)[1].decode()
            self.open.append((target.split("?", 1)[0], time.time_ns()))
            del self.received[:end + 4]
        return bool(data)

    def answer(self):
        for path, start in self.open:
            LOG.write("server", path, 200, start, time.time_ns())
            self.socket.sendall(RESPONSE)
        self.open.clear()


def serve(port):
    answering = []
    connections = set()
    signal.signal(signal.SIGUSR1, lambda *_: answering.append(True))
    selector = selectors.DefaultSelector()
    listener = socket.create_server(("127.0.0.1", port), backlog=1024)
    selector.register(listener, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, _ in selector.select(0.1):
            if key.fileobj is listener:
                connection = Connection(listener.accept()[0])
                connections.add(connection)
                selector.register(connection.socket, selectors.EVENT_READ, connection)
            elif not key.data.read():
                selector.unregister(key.fileobj)
                connections.discard(key.data)
                key.fileobj.close()
        if answering:
            for connection in connections:
                connection.answer()


serve(int(sys.argv[1]))
