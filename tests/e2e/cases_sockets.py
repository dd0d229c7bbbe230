"""Sockets of every kind, and processes that inherit, pass or reuse what others had: spans have the true process."""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import apps
import judge
from cases_chains import chain_hops, need
from containers import descendant
from harness import Skip, expect, expect_true, scaled, wait_until
from judge import Expected, Hop, expand
from wire import Wire

LAST_PID = pathlib.Path("/proc/sys/kernel/ns_last_pid")
IDLE = 6
RECEIVES = {"0", "19", "45", "47", "299"}  # read, readv, recvfrom, recvmsg, recvmmsg of x86-64


def ask_pid(wire, path):
    """One exchange with a server that answers with its pid."""
    start = time.time_ns()
    wire.send(wire.head(path))
    status, body = wire.response()
    expect(status == 200, f"{path}: status {status}")
    return Expected(request=path, kind="server", path=path, pid=int(body), outer=(start, time.time_ns()))


def workers_case(run, mode, connections, requests=3):
    """Each connection's requests, judged by the process that says it served them."""
    master = run.app("workers", apps.python("workers.py", mode, "{port}", "{log}"), log=False)
    daemon = run.daemon()
    expected = []
    for i in range(connections):
        with Wire(master.port) as wire:
            expected += [ask_pid(wire, f"/{mode}/{i}-{j}") for j in range(requests)]
    time.sleep(1.2)
    spans = daemon.finish()
    return spans, expected, daemon


def case_fork_for_each_connection(run):
    """A child for each connection, forked after accept(): every request is a span of the child that served it."""
    spans, expected, _ = workers_case(run, "fork", 20)
    return expect_true(spans, expected) + f"; {len({e.pid for e in expected})} processes"


def case_connections_passed(run):
    """A connection served by one process, then handed to another (SCM_RIGHTS): each span is of who served."""
    spans, expected, _ = workers_case(run, "pass", 10)
    expect(len({e.pid for e in expected}) == 2, "not two processes")
    return expect_true(spans, expected)


def case_sockets_duplicated(run):
    """A connection read by a dup'ed descriptor in another thread."""
    spans, expected, _ = workers_case(run, "dup", 10)
    return expect_true(spans, expected)


def case_exec_with_sockets(run):
    """A server that executes another program and leaves it listener and connection: spans before and after are
    of one pid, each of the program that served."""
    server = run.app("exec", apps.python("workers.py", "exec", "{port}", "{log}"), log=False)
    daemon = run.daemon(run.config(extra='services:\n  - {match: {cmd: "*again-*"}, name: second-program}\n'))
    with Wire(server.port) as wire:
        expected = [ask_pid(wire, "/exec/first")]
        wait_until(lambda: b"again-" in pathlib.Path(f"/proc/{server.pid}/cmdline").read_bytes(), 5, "the exec")
        time.sleep(0.5)  # a process is looked at 30 ms after its exec
        expected += [ask_pid(wire, f"/exec/second-{i}") for i in range(5)]
    with Wire(server.port) as wire:
        expected += [ask_pid(wire, f"/exec/third-{i}") for i in range(5)]
    time.sleep(1.2)
    spans = daemon.finish()
    expect({e.pid for e in expected} == {server.pid}, "not one pid")
    for span in spans:
        right = "workers" if judge.span_path(span) == "/exec/first" else "second-program"
        expect(span["service"] == right, f"{judge.span_path(span)}: service {span['service']}, expected {right}")
    return expect_true(spans, expected)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("unix")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def case_unix_socket(run):
    """HTTP over a Unix socket is not TCP: no span, nothing counted as lost, and the process stays traced, and says so."""
    server = run.app("unix", apps.python("workers.py", "unix", "{port}", "{log}"), log=False)
    daemon = run.daemon()
    before = daemon.counters()
    connection = UnixConnection(f"{server.log}.socket")
    for i in range(20):
        connection.request("GET", f"/unix/{i}")
        expect(connection.getresponse().read() == str(server.pid).encode(), "not served")
    connection.close()
    time.sleep(1.2)
    found = json.loads(daemon.control("processes", str(server.pid), "--json"))["processes"][0]
    after = daemon.counters()
    spans = daemon.finish()
    expect(not spans, f"{len(spans)} spans")
    expect((found["state"], found["seen"]) == ("traced", "HTTP over Unix sockets is not followed"),
           f"{found['state']}, {found['seen']}")
    noticed = [name for name in ("not_http", "out_of_step", "gap", "no_content", "orphan_response")
               if after[name] != before[name]]
    expect(not noticed, f"counted: {noticed}")
    return "no span, no counter"


def case_addresses(run):
    """IPv4, IPv6 and IPv4 on an IPv6 socket: joined, and addresses as people write them."""
    backs = [run.app(name, apps.python("threaded.py", f"{address}:{run.port()}", "{log}"))
             for name, address in (("four", "127.0.0.1"), ("six", "::1"), ("mapped", "::"))]
    daemon = run.daemon()
    expected = []
    for name, back, target, shown in (("four", backs[0], "127.0.0.1", "127.0.0.1"), ("six", backs[1], "::1", "::1"),
                                      ("mapped", backs[2], "127.0.0.1", "127.0.0.1"),
                                      ("mapped-six", backs[2], "::1", "::1")):
        port = back.popen.args[-2].rpartition(":")[2]
        front = run.app(f"front-{name}", apps.python("threaded.py", "{port}", "{log}", f"{target}:{port}"))
        run.load(front.port, 25, 2, name=f"load-{name}", id=name)
        expected.append((name, front, back, shown))
    run.stop_apps()
    spans, logs, truths = daemon.finish(), run.read_logs(), []
    for name, front, back, shown in expected:
        own = {"load": logs[f"load-{name}"], "front": logs[f"front-{name}"], "back": logs[back.name]}
        for one in expand(chain_hops(front, back), own):
            if one.kind == "client":
                one.attributes = {"network.peer.address": shown, "server.address": shown}
            elif one.pid == back.pid:
                one.attributes = {"network.peer.address": shown, "client.address": shown}
            truths.append(one)
    return expect_true(spans, truths)


def start_with_pid(run, pid, name, argv):
    """Starts a program as the next process of that number; None when others were faster too often."""
    for _ in range(200):
        LAST_PID.write_text(str(pid - 1))
        process = run.start(name, argv, ready=None)
        if process.pid == pid:
            return process
        process.kill()
        run.processes.remove(process)
    return None


def case_pid_reuse(run):
    """A pid that is given to another program at once, again and again: each request is of who served it."""
    if not LAST_PID.exists():
        raise Skip("this kernel has no ns_last_pid")
    port, named = run.port(), run.apps / "reuse"
    copies = [named.with_name(f"reuse_{i}.py") for i in range(2)]
    for copy in copies:
        copy.write_text(apps.SOURCES.joinpath("python/workers.py").read_text())
    daemon = run.daemon()
    first = run.start("first", [apps.PYTHON, "-B", copies[0], "dup", port, named])
    expected, services, pid = [], {}, first.pid
    process = first
    for i in range(scaled(6, 3)):
        with Wire(port) as wire:
            expected.append(ask_pid(wire, f"/reuse/{i}"))
        services[f"/reuse/{i}"] = f"reuse_{i % 2}"
        process.kill()
        process = start_with_pid(run, pid, f"life-{i}", [apps.PYTHON, "-B", copies[(i + 1) % 2], "dup", port, named])
        if not process:
            raise Skip("the pid was always taken by others")
        process.wait_for("ready")
        time.sleep(0.2)
    time.sleep(1.2)
    spans = daemon.finish()
    expect({e.pid for e in expected} == {pid}, "not one pid")
    for span in spans:
        right = services[judge.span_path(span)]
        expect(span["service"] == right, f"{judge.span_path(span)}: service {span['service']}, expected {right}")
    # Killed right behind its answer, a process may not have written down when it had sent that.
    return expect_true(spans, expected, may_be_loose=True) + f"; pid {pid}"


def case_exec_chain(run):
    """sh → sh → a server, by exec and as a child: the server has the spans, and is named by itself."""
    need("go")
    program = apps.go_chain()
    daemon = run.daemon()
    shapes = {"exec": 'exec /bin/sh -c \'exec "$@"\' sh "$@"', "child": '/bin/sh -c \'"$@"; true\' sh "$@"; true'}
    expected = []
    for name, shape in shapes.items():
        for runtime, argv in (("go", [program, "hello", "{port}", "{log}"]),
                              ("python", apps.python("threaded.py", "{port}", "{log}"))):
            service = run.app(f"{name}-{runtime}", ["/bin/sh", "-c", shape, "sh", *argv], log=False)
            records = {}
            time.sleep(0.3)  # looked at when it listens, or 30 ms after its exec
            with Wire(service.port, records) as wire:
                for i in range(3):
                    wire.request(f"/{name}/{name}-{runtime}-{i}")
            pid = descendant(service.pid)
            expect((pid == service.pid) == (name == "exec"), f"{name}: {pid} and {service.pid}")
            expected += [Expected(request=request, kind="server", path=record["path"], pid=pid, status=record["status"])
                         for (_, request), record in records.items()]
            os.kill(pid, signal.SIGTERM)
    time.sleep(1.2)
    spans = daemon.finish()
    names = {span["service"] for span in spans}
    expect(names == {"chain", "threaded"}, f"names {sorted(names)}")
    return expect_true(spans, expected)


def idle_connections(run, arguments, name):
    """Threads of a service wait in blocking receives on idle connections when the daemon comes; then two requests on each."""
    server = run.app(name, arguments)
    records, wires = {}, [Wire(server.port) for _ in range(IDLE)]
    for i, wire in enumerate(wires):
        wire.request(f"/before/{name}-{i}")
        wire.records = records
    wait_until(lambda: len(receiving_threads(server.pid)) == IDLE, 10, "all threads wait for a request")
    return server, wires, records


def receiving_threads(pid):
    """Threads that are in a system call which receives from a socket."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        number, first, *_ = [*(task / "syscall").read_text().split(), "", ""]
        if number in RECEIVES and os.readlink(f"/proc/{pid}/fd/{int(first, 16)}").startswith("socket:"):
            found.append(task.name)
    return found


def case_idle_connections(run):
    """The daemon starts while threads wait in blocking receives on idle connections: their next requests have spans."""
    need("java", "javac")
    groups = [idle_connections(run, apps.java("Blocking", "{port}", "{log}"), "java"),
              idle_connections(run, apps.python("threaded.py", "{port}", "{log}"), "python")]
    daemon = run.daemon()
    status = json.loads(daemon.control("--json", "status"))
    for i in range(2):
        for server, wires, _ in groups:
            for j, wire in enumerate(wires):
                wire.request(f"/idle/{server.name}-{j}-{i}")
    if status["tap"]["name"] == "fentry":
        wait_until(lambda: json.loads(daemon.control("--json", "status"))["links"] == status["links"] - 1, 10,
                   "nobody waits any more, and a program is detached", 0.3)
    run.stop_apps()
    logs, expected = run.read_logs(), []
    for server, wires, records in groups:
        for wire in wires:
            wire.close()
        expected += expand([Hop("server", "/idle/{id}", outer="load", inner=server.name, pid=server.pid)],
                           {**logs, "load": records})
    return expect_true(daemon.finish(), expected, least=4 * IDLE)


def case_unix_http(run):
    """HTTP over a Unix socket is not followed: both ends are named as such and their messages counted, nobody else."""
    place, n = run.directory / "socket", 7

    def start(mode, *more):
        process = run.start(mode, apps.python("unixhttp.py", run.apps / mode, mode, *more), stdin=subprocess.PIPE)
        process.wait_for("ready")
        return process

    processes = {mode: start(mode, *more) for mode, more in
                 (("serve", (place,)), ("call", (place,)), ("other", ()))}
    daemon = run.daemon()
    for mode in ("call", "other"):
        expect(processes[mode].command(n) == "done", f"'{mode}' did not do what it was to")
    seen = {mode: json.loads(daemon.control("--json", "processes", str(process.pid)))["processes"][0]["seen"]
            for mode, process in processes.items()}
    counted = daemon.counters().get("unix_http", 0)
    named = "HTTP over Unix sockets is not followed"
    expect(seen == {"serve": named, "call": named, "other": "no request yet"}, f"seen: {seen}")
    expect(counted == 2 * n, f"counted {counted} messages of {n} exchanges")
    run.stop_apps()
    spans = daemon.finish()
    expect(not spans, f"spans: {spans[:2]}")
    return f"{counted} messages counted; {named}"
