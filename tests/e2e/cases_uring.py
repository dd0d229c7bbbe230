"""io_uring: where the tap sees what it receives, spans as for ordinary calls; elsewhere no invented status, a counter,
and the process named. The cases ask the daemon which tap it uses, so they hold on every kernel."""

import json
import subprocess
import time

import apps
import judge
from containers import status_field
from harness import Skip, expect, expect_true
from judge import Expected, interval

WAYS = ("plain", "ring", "message", "zerocopy", "multishot", "sqpoll")


class Pair:
    """A client and a server process, each with its way of calling."""

    def __init__(self, run, client, server):
        self.client, self.server = client, server
        self.group = f"{client}-to-{server}"
        self.log = run.apps / f"{self.group}.log"
        self.process = run.start(self.group, [apps.c_program("uring"), run.port(), self.log, self.group, client, server],
                                 stdin=subprocess.PIPE)
        _, client_pid, server_pid = self.process.stdout.split()
        self.client_pid, self.server_pid = int(client_pid), int(server_pid)

    def go(self):
        """False: this kernel has not this way."""
        self.process.popen.stdin.write(b"go\n")
        self.process.popen.stdin.flush()
        status = self.process.wait(30)
        expect(status in (0, 77), f"{self.group} failed: {self.process.stderr}")
        return status == 0

    def expected(self, sees_ring):
        """Both ends of every exchange, as far as the tap can see them."""
        logs = {name: judge.read_log(f"{self.log}.{name}") for name in ("client", "server")}
        found = []
        for (_, request), called in logs["client"].items():
            served = logs["server"]["server", request]
            is_seen = sees_ring or self.client == "plain"
            call = Expected(request=request, kind="client", pid=self.client_pid, path=called["path"],
                            status=called["status"] if is_seen else None, error_types=("not_observed",),
                            outer=interval(called) if is_seen else None, inner=interval(served) if is_seen else None)
            found.append(call)
            if sees_ring or self.server == "plain":
                found.append(Expected(request=request, kind="server", pid=self.server_pid, path=called["path"],
                                      status=called["status"], outer=interval(called), inner=interval(served),
                                      parent=call))
        return found


def judge_pairs(run, ways):
    pairs = [Pair(run, client, server) for client, server in ways]
    daemon = run.daemon()
    tap = json.loads(daemon.control("status", "--json"))["tap"]["name"]
    sees_ring = tap != "tracepoint"
    expected, refused = [], []
    for pair in pairs:
        before = daemon.counters()["io_uring"]
        if not pair.go():
            refused.append(pair.group)
            continue
        uses_ring = (pair.client, pair.server) != ("plain", "plain")
        counted = daemon.counters()["io_uring"] - before
        expect((counted > 0) == (uses_ring and not sees_ring), f"{pair.group}: io_uring counted {counted}")
        expected += pair.expected(sees_ring)
    if not expected:
        raise Skip(f"this kernel refuses io_uring: {refused}")
    time.sleep(1.5)
    spans = [s for s in daemon.finish() if not any(judge.span_path(s).startswith(f"/uring/{g}-") for g in refused)]
    # the witness does not see when io_uring works
    text = expect_true(spans, expected, may_be_loose=sees_ring)
    return f"{tap}: {text}" + (f"; refused: {refused}" if refused else "")


def case_uring_server(run):
    """Servers on io_uring, in five ways, called by ordinary calls."""
    return judge_pairs(run, [("plain", way) for way in WAYS])


def case_uring_client(run):
    """Clients on io_uring, in five ways, that call an ordinary server: their status is true or not claimed."""
    return judge_pairs(run, [(way, "plain") for way in WAYS])


def case_uring_both(run):
    """Both ends on io_uring."""
    return judge_pairs(run, [(way, way) for way in WAYS])


def case_uring_named(run):
    """A process whose receives the tap cannot read is named by tsunagictl; where it can, it is as any other."""
    script = run.apps / "ring.py"
    script.write_text(
        "import ctypes, http.server, sys\n"
        "libc = ctypes.CDLL(None)\n"
        "if libc.syscall(425, 8, ctypes.create_string_buffer(256)) < 0:\n"  # io_uring_setup, on all architectures
        "    sys.exit(77)\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(204)\n"
        "        self.end_headers()\n"
        "    def log_message(self, *_):\n"
        "        pass\n"
        "server = http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler)\n"
        "print('ready', flush=True)\n"
        "server.serve_forever()\n")
    server = run.start("ring", [apps.PYTHON, "-B", script, port := run.port()], ready=None)
    while "ready" not in server.stdout:
        if not server.running():
            raise Skip("this kernel refuses io_uring")
        time.sleep(0.02)
    expect(status_field(server.pid, "Threads") == ["1"], "not one thread")
    daemon = run.daemon()
    tap = json.loads(daemon.control("status", "--json"))["tap"]["name"]
    done = subprocess.run(["curl", "-s", "-o", "/dev/null", f"http://127.0.0.1:{port}/ring/1"], check=False)
    expect(done.returncode == 0, "curl failed")
    time.sleep(1.2)
    seen = json.loads(daemon.control("processes", str(server.pid), "--json"))["processes"][0]["seen"]
    spans = daemon.finish()
    expect(("io_uring" in seen) == (tap == "tracepoint"), f"{tap}: seen '{seen}'")
    expect(len(spans) == (0 if tap == "tracepoint" else 1), f"{tap}: {len(spans)} spans")
    return f"{tap}: {seen}"
