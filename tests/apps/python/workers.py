"""A server whose connections end up in other processes than the one that accepts, or called, HTTP in all of them.

workers.py MODE PORT LOG
    fork       a child for each connection, forked after accept(), which serves it
    pass       one worker that is handed each connection (SCM_RIGHTS) after the first request on it was served
    prefork    four workers that accept from one listener
    daemonize  the same, forked by a child of the process that listens, which ends
    dup        the accepted socket is dup'ed, the first descriptor closed, and a second thread reads by another one
    exec       serves one request, then executes itself as "exec-again": listener and connection are inherited
    unix       serves the Unix socket LOG.socket; PORT is not used
The body of a response is the pid of the process that served it.
"""

import os
import signal
import socket
import sys
import threading

MODE, PORT, LOG = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def serve(connection, requests=1 << 30):
    """Requests of one connection, as often as there are any; its end at 0 bytes."""
    while requests and connection.recv(8192):
        body = str(os.getpid()).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        requests -= 1


def fork(listener):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            serve(connection)
            os._exit(0)
        connection.close()


def pass_on(listener):
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        while True:
            _, fds, _, _ = socket.recv_fds(theirs, 1, 1)
            with socket.socket(fileno=fds[0]) as connection:
                serve(connection)
    while True:
        connection, _ = listener.accept()
        serve(connection, 1)
        socket.send_fds(ours, [b"x"], [connection.fileno()])
        connection.close()


def prefork(listener):
    for _ in range(4):
        if os.fork() == 0:
            while True:
                serve(listener.accept()[0])
    signal.pause()


def daemonize(listener):
    if os.fork():
        os._exit(0)
    prefork(listener)


def dup(listener):
    while True:
        connection, _ = listener.accept()
        other = socket.socket(fileno=os.dup(connection.fileno()))
        connection.close()
        thread = threading.Thread(target=serve, args=(other,))
        thread.start()
        thread.join()
        other.close()


def execute(listener):
    connection, _ = listener.accept()
    serve(connection, 1)
    for inherited in (listener, connection):
        inherited.set_inheritable(True)
    os.execv(sys.executable, [sys.executable, "-B", sys.argv[0], f"again-{listener.fileno()}-{connection.fileno()}",
                              str(PORT), LOG])


def again(numbers):
    listener, connection = (socket.socket(fileno=int(number)) for number in numbers)
    serve(connection)
    while True:
        connection, _ = listener.accept()
        serve(connection)


def main():
    if MODE.startswith("again-"):
        again(MODE.split("-")[1:])
    if MODE == "unix":
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{LOG}.socket")
        listener.listen(16)
        print("ready", flush=True)
        while True:
            serve(listener.accept()[0])
    listener = socket.create_server(("127.0.0.1", PORT), backlog=64)
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    print("ready", flush=True)
    {"fork": fork, "pass": pass_on, "prefork": prefork, "daemonize": daemonize, "dup": dup, "exec": execute}[MODE](listener)


main()
