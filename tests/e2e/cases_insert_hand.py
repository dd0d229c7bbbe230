"""Connections with insertion that come into other hands: passed on, kept across an exec, and tried again."""

import array
import fcntl
import json
import re
import select
import socket
import subprocess
import sys
import termios
import threading
import time

import apps
from cases_chains import go_chain, need
from cases_insert import ON, header_of, need_propagation, process_state
from harness import Daemon, expect, scaled, wait_until
from judge import span_path

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
LINE = re.compile(rb"traceparent: 00-[0-9a-f]{32}-[0-9a-f]{16}-03\r\n")
# What a Go program becomes: sends a request, and says how many bytes of the answer wait.
SUCCESSOR = """
import array, fcntl, select, socket, sys, termios, time
conn = socket.socket(fileno=int(sys.argv[-1]))
sys.stdin.readline()
conn.sendall(b"GET /executed HTTP/1.1\\r\\nHost: peer\\r\\n\\r\\n")
select.select([conn], [], [], 10)
time.sleep(0.1)
waiting = array.array("i", [0])
fcntl.ioctl(conn, termios.FIONREAD, waiting)
print("waiting", waiting[0], len(conn.recv(1000)), flush=True)
sys.stdin.readline()
"""


class Peer:
    """Reads heads on the connections that are made to it, answers each, and keeps them."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.heads = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            conn, _ = self.listener.accept()
            threading.Thread(target=self.answer, args=(conn,), daemon=True).start()

    def answer(self, conn):
        got = b""
        while data := conn.recv(65536):
            got += data
            while b"\r\n\r\n" in got:
                head, _, got = got.partition(b"\r\n\r\n")
                self.heads.append(head + b"\r\n\r\n")
                self.work(head)
                conn.sendall(ANSWER)

    def work(self, head):
        """What it does before it answers."""

    def newest(self, path, lines):
        """The newest request must be this one, with so many lines and else as it was sent."""
        head = self.heads[-1]
        expect(LINE.sub(b"", head) == f"GET {path} HTTP/1.1\r\nHost: peer\r\n\r\n".encode(), f"{path}: came as {head}")
        expect(len(LINE.findall(head)) == lines, f"{path}: {len(LINE.findall(head))} lines, not {lines}")


def pass_on(client, listener):
    """The client's connection, which it keeps."""
    expect("<nil>" in client.command("pass"), f"not passed on: {client.stdout}")
    conn, _ = listener.accept()
    with conn:
        _, fds, _, _ = socket.recv_fds(conn, 1, 1)
    return socket.socket(fileno=fds[0])


def case_insert_hand(run):
    """A connection that is passed on to a process which is not traced, and kept across an exec: what those send is not
    touched, nor what the first one sends later; and FIONREAD says the truth again behind the exec."""
    need("go")
    daemon = run.daemon(config=run.config(ON))
    peer = Peer()
    name = run.apps / "passed"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(name))
        listener.listen()
        client = run.start("client", [apps.go_hand(), peer.port, name, sys.executable, "-c", SUCCESSOR],
                           stdin=subprocess.PIPE, cwd=run.apps)
        wait_until(lambda: process_state(daemon, client.pid) == "traced", 20, "a client that is traced")
        need_propagation(daemon)
        for i in range(3):
            client.command(f"request /own-{i}")
            peer.newest(f"/own-{i}", 1)
        with pass_on(client, listener) as conn:
            for i in range(3):
                conn.sendall(f"GET /passed-{i} HTTP/1.1\r\nHost: peer\r\n\r\n".encode())
                expect(conn.recv(1000) == ANSWER, "another answer")
                peer.newest(f"/passed-{i}", 0)
            time.sleep(0.5)
            conn.sendall(b"GET /passed-on HTTP/1.1\r\nHost: peer\r\n\r\n")
            select.select([conn], [], [], 10)
            time.sleep(0.1)
            waiting = array.array("i", [0])
            fcntl.ioctl(conn, termios.FIONREAD, waiting)
            expect(waiting[0] == len(conn.recv(1000)) == len(ANSWER), f"passed on: {waiting[0]} bytes wait")
        client.command("request /later")
        peer.newest("/later", 0)
    client.popen.stdin.write(b"exec\n")
    client.popen.stdin.flush()
    wait_until(lambda: process_state(daemon, client.pid) != "traced", 20, "another program")
    told = client.command("go")
    peer.newest("/executed", 0)
    expect(told == f"waiting {len(ANSWER)} {len(ANSWER)}", f"after the exec: {told}")
    counters = daemon.counters()
    expect(counters["inserted"] == 3, f"{counters['inserted']} lines")
    return f"{len(peer.heads)} requests"


def case_insert_retry(run):
    """A call that the transport makes again, as the connection was closed: each attempt has the id of its own span."""
    need("go")
    front, back = go_chain(run, ["retry"])
    daemon = run.daemon(config=run.config(ON))
    need_propagation(daemon)
    n = scaled(500, 50)
    run.load(front.port, n, 8)
    run.stop_apps()
    attempts = {}
    for span in sorted(daemon.finish(), key=lambda span: span["start_unix_nano"]):
        if span["pid"] == front.pid and span["kind"] == "client":
            attempts.setdefault(span_path(span), []).append(header_of(span))
    logs = run.read_logs()["back"]
    for (role, request), record in logs.items():
        if role != "server" or not request.startswith("drop-"):
            continue
        got = [logs["dropper", request]["headers"], record["headers"]]
        expect(got == attempts[record["path"]] and got[0] != got[1], f"{request}: {got}, spans {attempts[record['path']]}")
    tried = sum(len(headers) == 2 for headers in attempts.values())
    expect(tried == n, f"only {tried} of {n} were tried twice")
    return f"{n} calls that were tried twice"


class Service(Peer):
    """One that takes its time for what begins with /slow."""

    def work(self, head):
        if head.startswith(b"GET /slow"):
            time.sleep(0.6)


def expect_as_without(client, peer, name, is_blocking):
    """C's connection is what it would be without the daemon."""
    told = client.command(f"ask /{name}")
    peer.newest(f"/{name}", 0)
    expect(told == f"waiting {len(ANSWER)} {len(ANSWER)}", f"{name}: {told}")
    if is_blocking:
        told = client.command(f"wait /slow-{name}")
        peer.newest(f"/slow-{name}", 0)
        expect(told == f"came {len(ANSWER)}", f"{name}, a receive with a signal in it: {told}")


def case_insert_cgo(run):
    """C in a Go process: its connections, blocking or not, made before or later, are none of the daemon's; Go's are."""
    need("go", "gcc")
    peer = Service()
    clients = []
    for form in ("plain", "pie", "static"):
        for kind in ("blocking", "free"):
            client = run.start(f"{form}-{kind}", [apps.go_cgo(form), peer.port, run.apps / "none"], stdin=subprocess.PIPE,
                               cwd=run.apps)
            client.command(f"open {kind}")
            clients.append((client, kind))
    daemon = run.daemon(config=run.config(ON))
    need_propagation(daemon)
    for client, older in clients:
        wait_until(lambda pid=client.pid: process_state(daemon, pid) == "traced", 20, "a client that is traced")
        expect_as_without(client, peer, "older", older == "blocking")
        for i in range(3):
            client.command(f"go /go-{i}")
            peer.newest(f"/go-{i}", 1)
        for kind in ("blocking", "free"):
            expect(client.command(f"open {kind}") == "opened true", "cannot connect")
            expect_as_without(client, peer, kind, kind == "blocking")
        client.command("go /go-later")
        peer.newest("/go-later", 1)
    counters = daemon.counters()
    expect(counters["insert_not_go"] == 2 * len(clients), f"{counters['insert_not_go']} connections of C")
    expect(counters["propagation_connections_not_go"] == len(clients), "not all older connections were seen")
    return f"{counters['inserted']} lines, {counters['insert_not_go']} connections of C"


def case_insert_rights(run):
    """Without the right to copy descriptors a connection could not be taken out: nothing is inserted, and it says why."""
    need("go", "setpriv")
    peer = Peer()
    dropped = "-sys_ptrace"
    daemon = Daemon(run, run.config(ON), before=("setpriv", "--bounding-set", dropped, "--inh-caps", dropped)).wait_ready()
    expect("No CAP_SYS_PTRACE" in daemon.stderr and "not carry 'traceparent'" in daemon.stderr, f"said: {daemon.stderr}")
    features = json.loads(daemon.control("doctor", "--json"))["features"]
    reason = next(one["reason"] for one in features if one["name"] == "traceparent in requests of Go processes")
    expect("CAP_SYS_PTRACE" in (reason or ""), f"doctor: {reason}")
    client = run.start("client", [apps.go_hand(), peer.port, run.apps / "none"], stdin=subprocess.PIPE, cwd=run.apps)
    time.sleep(1)
    client.command("request /one")
    peer.newest("/one", 0)
    return reason
