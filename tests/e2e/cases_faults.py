"""What goes wrong around the daemon: overload, SIGKILL, hostile bytes, bad collectors. Nothing dies, all is counted."""

import collections
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import threading
import time

import apps
import judge
from cases_chains import chain_hops, go_chain, java_chain, need
from harness import Daemon, Failure, Jaeger, expect, expect_true, scaled, wait_until
from judge import Hop, expand
from wire import Wire, quiet_exchange

# Each lost span is counted by exactly one of these; all other counters tell of something else.
LOSS_COUNTERS = ("lost_request_server", "lost_request_client", "no_state", "kernel_pipeline_full",
                 "spans_no_memory", "spans_no_process", "heads_bad", "heads_partial", "connections_full",
                 "open_bytes_full", "pipeline_full")
KILLS = 50


def losses(counters):
    return sum(counters.get(name, 0) for name in LOSS_COUNTERS)


def ring_overload(run, front, back, requests, connections):
    """Load while the daemon is stopped again and again; served = spans + named losses, and no span is wrong."""
    daemon = run.daemon(run.config(extra="limits: {ring_bytes: 64KB}\n"))
    load = run.load_start(front.port, requests, connections)
    while load.running():
        daemon.popen.send_signal(signal.SIGSTOP)
        time.sleep(0.15)
        daemon.popen.send_signal(signal.SIGCONT)
        time.sleep(0.1)
    expect(load.wait(10) == 0, f"load: {load.stdout}")
    time.sleep(2)
    counters = daemon.counters()
    run.stop_apps()
    spans = daemon.finish()
    expected = expand(chain_hops(front, back), run.read_logs())
    for one in expected:
        one.may_be_unseen = one.may_lack_parent = True
    verdict = run.judge(spans, expected)
    named = {name: counters[name] for name in LOSS_COUNTERS if counters.get(name)}
    false = [problem for problem in verdict.problems if not problem.startswith("missing")]
    expect(not verdict.wrong and not verdict.extra, f"{verdict}; {false[:5]}; {named}")
    expect(verdict.missing > 0, "nothing was lost: this was no overload")
    expect(verdict.missing == losses(counters), f"{verdict.missing} of {len(expected)} spans missing, counted: {named}")
    return f"{len(expected)} served = {verdict.right} exported + {verdict.missing} lost by {named}"


def case_ring_overload(run):
    """A ring of 64 KB under overload: requests served = spans + named losses, exactly; none wrong."""
    need("go")
    return ring_overload(run, *go_chain(run), scaled(30_000), 64)


def case_ring_overload_two_writes(run):
    """The same with services that send head and body apart, so that ends are lost on their own."""
    need("java", "javac")
    return ring_overload(run, *java_chain(run), scaled(15_000), 64)


def bpftool(kind):
    listed = subprocess.run(["bpftool", "-j", kind, "show"], capture_output=True, text=True, check=False,
                            env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})
    return json.loads(listed.stdout or "[]")


def held_by(pid):
    """Ids of the BPF objects that a process has descriptors of, as (kind, id); none once it has ended."""
    held = set()
    with contextlib.suppress(OSError):
        for fd in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
            with contextlib.suppress(OSError):
                held |= set(re.findall(r"^(prog|map|link)_id:\t(\d+)$", fd.read_text(), re.MULTILINE))
    return {(kind, int(number)) for kind, number in held}


def bpf_objects(run):
    """Programs, maps and links of the host as sets of (kind, id, name), without those that somebody else
    holds: by a descriptor, or by a link's program or a program's maps."""
    listed = {kind: bpftool(kind) for kind in ("link", "prog", "map")}
    foreign = set().union(*(held_by(pid) for pid in other_holders(run)))
    foreign |= {("prog", link.get("prog_id")) for link in listed["link"] if ("link", link["id"]) in foreign}
    foreign |= {("map", number) for program in listed["prog"] if ("prog", program["id"]) in foreign
                for number in program.get("map_ids", [])}
    return {(kind, one["id"], one.get("name", "")) for kind, found in listed.items() for one in found
            if (kind, one["id"]) not in foreign}


def files_of(*directories):
    """Files of the folders, without those of other cases; on a machine with other users, only what has our name."""
    paths = [path for directory in directories for path in pathlib.Path(directory).iterdir()]
    return {str(path) for path in paths if not path.name.startswith("tsunagi-e2e-") and
            (os.environ.get("CI") or "tsunagi" in path.name)}


def other_holders(run):
    """Processes that this run did not start and that have descriptors of BPF objects: somebody else's daemons and
    tests, whose objects come and go as they like."""
    found = set()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(os.readlink(fd).startswith("anon_inode:bpf") for fd in process.joinpath("fd").iterdir()):
                found.add(int(process.name))
    return found - run.pids()


def expect_bpf_objects(run, before):
    """Nothing in the kernel that was not there before; it is freed a little after its owner's end."""
    left = set()

    def is_as_before():
        left.clear()
        left.update(bpf_objects(run) - before)
        return not left

    try:
        wait_until(is_as_before, 10, "BPF objects as before", 0.2)
    except Failure:
        raise Failure(f"BPF objects left: {sorted(left)[:5]}") from None


def has_proc_open(daemon):
    for fd in pathlib.Path(f"/proc/{daemon.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(fd) == "/proc":
                return True
    return False


def stop_in_pass(daemon):
    """Stops it in the middle of its pass over /proc. False: it was through before that was seen."""
    while "Ready" not in daemon.stderr:
        daemon.expect_running()
        if has_proc_open(daemon):
            os.kill(daemon.pid, signal.SIGSTOP)
            time.sleep(0.002)
            if has_proc_open(daemon):
                return True
            os.kill(daemon.pid, signal.SIGCONT)
    return False


def case_sigkill(run):
    """SIGKILL 50 times under load, also while loading and in the pass over /proc: no failed request, nothing left in the
    kernel or in files."""
    need("java", "javac", "go")
    front, _ = java_chain(run)
    program = apps.go_chain()
    hello = run.app("hello", [program, "hello", "{port}", "{log}"])
    before_files = files_of("/run", "/tmp")
    before = bpf_objects(run)
    loads = [run.load_start(front.port, 1_000_000, 8, name="load-java", rate=300, seconds=200),
             run.load_start(hello.port, 1_000_000, 8, name="load-go", rate=600, seconds=200)]
    killed = collections.Counter()
    for round_ in range(KILLS):
        daemon = Daemon(run, run.config(), name=f"killed-{round_}")
        in_pass = False
        if round_ % 3 == 0:
            daemon.wait_ready()
            time.sleep(random.uniform(0, 0.2))
        elif round_ % 3 == 1:
            in_pass = stop_in_pass(daemon)
        else:
            time.sleep(random.uniform(0, 0.3))  # somewhere in its start
        expect(daemon.running(), f"the daemon ended by itself: {daemon.stderr[-300:]}")
        killed["pass over /proc" if in_pass else "ready" if "Ready" in daemon.stderr else "start"] += 1
        daemon.kill()
    expect(len(killed) == 3 and min(killed.values()) >= KILLS // 10, f"killed: {dict(killed)}")
    for load in loads:
        load.expect_running()
    expect_bpf_objects(run, before)
    last = run.daemon()
    time.sleep(1)
    last.finish()
    for load in loads:
        status = load.stop()
        expect(status == 0 and json.loads(load.stdout)["failed"] == 0, f"requests failed: {load.stdout} {load.stderr[-200:]}")
    done = sum(json.loads(load.stdout)["requests"] for load in loads)
    expect_bpf_objects(run, before)
    left = files_of("/run", "/tmp") - before_files
    expect(not left, f"files left: {sorted(left)[:5]}")
    runtime = run.directory / "run"
    expect(not runtime.exists() or not list(runtime.iterdir()), f"left in the runtime directory: {runtime}")
    times = ", ".join(f"{where} {n}" for where, n in killed.items())
    return f"{KILLS} kills ({times}), {done} requests, 0 failed, nothing left"


def hostile_requests(rng):
    """Bytes for a server's port that are no request, or only half of one."""
    yield b""
    yield b"\r\n\r\n"
    yield b"GET"
    yield b"GET / HTTP/1.1\r\nHost: a\r\n"  # no end
    yield b"GET /half HTTP/1.1\r\nHost"
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(500)  # a TLS hello
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("0000007f01") + b"\xff" * 60
    yield b"*1\r\n$4\r\nPING\r\n" * 100
    yield bytes.fromhex("000000080004d2162f") * 20  # a database's start-up message
    yield b"SSH-2.0-OpenSSH_9.2\r\n"
    yield b"GET /nul\0byte HTTP/1.1\r\n\r\n"
    yield b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n"
    yield b"GET /long/header HTTP/1.1\r\nCookie: " + b"c" * 1_000_000 + b"\r\n\r\n"
    yield b"GET /many/headers HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n"
    yield b"POST /length HTTP/1.1\r\nContent-Length: 18446744073709551616\r\n\r\n"
    yield b"POST /length HTTP/1.1\r\nContent-Length: -1\r\n\r\nabc"
    yield b"POST /length HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde"
    yield b"GET /version HTTP/9.9\r\n\r\n"
    yield b"GET /smuggle HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nGET /x"
    for _ in range(60):
        yield rng.randbytes(rng.randint(1, 5000))
    for _ in range(60):  # a true head with some bytes turned
        head = bytearray(b"GET /mutated/x HTTP/1.1\r\nHost: a\r\ntraceparent: 00-" + b"ab" * 16 + b"-" + b"cd" * 8 +
                         b"-01\r\nContent-Length: 5\r\n\r\nhello")
        for _ in range(rng.randint(1, 6)):
            head[rng.randrange(len(head))] = rng.randrange(256)
        yield bytes(head)


HOSTILE_CHUNKS = (b"7fffffffffffffff\r\nA", b"FFFFFFFFFFFFFFFFF\r\nA", b"-1\r\nA", b"5;ext=1\r\nhello\r\n0\r\n\r\n",
                  b" 5\r\nhello\r\n0\r\n\r\n", b"0\r\nTrailer: x\r\n\r\n", b"zz\r\n", b"5\nhello\n0\n\n")


def hostile_responses(rng):
    """Bytes that a server answers a true request with."""
    for chunks in HOSTILE_CHUNKS:
        yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
    for length in (b"18446744073709551616", b"-1", b"0x10", b"3, 3", b"", b"99999999999999999999999999"):
        yield b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\nabc"
    yield b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"
    yield b"HTTP/1.1 20\r\n\r\n"
    yield b"HTTP/1.1 100 Continue\r\n\r\n" * 500
    yield b"HTTP/1.1 200" + b"O" * 200_000 + b"\r\n\r\n"
    for _ in range(40):
        yield rng.randbytes(rng.randint(1, 400))


def case_bad_input(run):
    """Random bytes, half heads, 1 MB header lines, other protocols: the daemon lives, and true requests stay true."""
    rng = random.Random(20)
    raw = run.start("raw", apps.python("raw.py", port := run.port(), run.apps / "raw"))
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon()
    records = {}
    for i, data in enumerate(hostile_requests(rng)):
        quiet_exchange(port, data, 0.08)
        with contextlib.suppress(ConnectionError), Wire(back.port, timeout=0.1) as wire:
            wire.socket.sendall(data)  # the real server sees it too
        if i % 10 == 0:
            with Wire(back.port, records) as wire:
                wire.request(f"/true/{i}")
    for reply in hostile_responses(rng):
        # hexadecimal doubles it; what raw.py cannot take in one head it echoes
        quiet_exchange(port, b"GET /hostile/reply HTTP/1.1\r\nX-Reply: " + reply.hex().encode() + b"\r\n\r\n", 0.08)
    with Wire(back.port, records) as wire:
        for i in range(50):
            wire.request(f"/true/last-{i}")
    time.sleep(1.5)
    daemon.expect_running()
    raw.expect_running()
    counters = daemon.counters()
    run.stop_apps()
    spans = [span for span in daemon.finish() if judge.span_path(span).startswith("/true/")]
    noticed = {name: n for name, n in counters.items() if n and name in
               ("heads_bad", "heads_truncated", "heads_partial", "not_http", "head_truncated", "out_of_step",
                "exchanges_not_observed")}
    expect(noticed, f"no counter noticed anything: {counters}")
    expect((counters["records_bad"], counters["parent_mismatch"]) == (0, 0), f"the two sides disagree: {counters}")
    logs = {"back": judge.read_log(run.logs["back"], "/true/"), "load": records}
    return expect_true(spans, expand([Hop("server", "/true/{id}", outer="load", inner="back", pid=back.pid)], logs),
                       least=len(records)) + f"; noticed {noticed}"


class Sink:
    """A collector of our own that misbehaves: answers garbage, never answers, or refuses."""

    def __init__(self, behave):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port = self.listener.getsockname()[1]
        self.behave = behave
        self.held = []
        self.connections = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                self.held.append(connection)
                threading.Thread(target=self.one, args=(connection,), daemon=True).start()

    def one(self, connection):
        with contextlib.suppress(OSError):
            self.behave(connection)

    def close(self):
        self.listener.close()
        for connection in self.held:
            connection.close()


def answer_garbage(connection):
    connection.recv(65536)
    connection.sendall(random.randbytes(300))
    connection.close()


def answer_half(connection):
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nabc")
    connection.close()


def refuse(connection):
    while connection.recv(1 << 20):
        connection.sendall(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")


def never_answer(connection):
    while connection.recv(1 << 20):
        pass


def collector_case(run, endpoint, requests=3_000):
    """Load with a bad collector: requests unhurt, memory bounded, a clean end in time, every span accounted for."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    config = run.config(endpoint=endpoint, extra="export: {queue_spans: 1024, timeout: 2s}\n")
    daemon = run.daemon(config, arguments=())
    run.load(back.port, scaled(requests), 8)
    time.sleep(3)
    daemon.expect_running()
    resident = int(pathlib.Path(f"/proc/{daemon.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    expect(resident < 80 << 20, f"{resident >> 20} MB resident")
    counters = daemon.counters()
    begin = time.monotonic()
    expect(daemon.stop(15) == 0, f"exit status {daemon.popen.returncode}: {daemon.stderr[-300:]}")
    expect(time.monotonic() - begin < 6.5, "more than 5 s to end")
    made = counters["spans_server"] + counters["spans_client"]
    expect(made == scaled(requests), f"{made} spans made of {scaled(requests)} requests")
    lost = {name: counters[name] for name in ("queue_full", "spans_refused", "spans_unreachable") if counters.get(name)}
    expect(sum(lost.values()) > 0 and counters["spans_exported"] == 0, f"losses: {lost}, exported {counters['spans_exported']}")
    return f"{made} spans made, at that moment lost: {lost}"


def case_collector_unreachable(run):
    """Nobody listens at the endpoint."""
    return collector_case(run, f"http://127.0.0.1:{run.port()}")


def sink_case(run, behave):
    sink = Sink(behave)
    try:
        return collector_case(run, f"http://127.0.0.1:{sink.port}")
    finally:
        sink.close()


def case_collector_garbage(run):
    """The endpoint answers random bytes."""
    return sink_case(run, answer_garbage)


def case_collector_half_answer(run):
    """The endpoint's answers end in the middle."""
    sink = Sink(answer_half)
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon(run.config(endpoint=f"http://127.0.0.1:{sink.port}"), arguments=())
    run.load(back.port, 500, 4)
    time.sleep(2)
    daemon.expect_running()
    expect(daemon.stop(15) == 0, "no clean end")
    sink.close()
    return f"{sink.connections} connections"


def case_collector_refuses(run):
    """The endpoint answers 503 to everything."""
    return sink_case(run, refuse)


def case_collector_never_answers(run):
    """The endpoint takes everything and never answers."""
    return sink_case(run, never_answer)


def case_flush_at_the_end(run):
    """SIGTERM right after the last response: every span is in Jaeger."""
    jaeger = Jaeger(run)
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon(run.config(endpoint=jaeger.endpoint))
    run.load(back.port, 1_000, 8)
    daemon.finish()
    run.stop_apps()
    hops = [Hop("server", "/x/{id}", outer="load", inner="back", pid=back.pid)]
    expected = expand(hops, run.read_logs())
    with contextlib.suppress(Failure):
        wait_until(lambda: len(jaeger.spans()) >= len(expected), 5, "all spans in Jaeger", 0.2)
    return expect_true(jaeger.spans(), expected)
