"""The cases of scale; each returns the rows of the table (what, bound, measured) and fails where a bound does not hold.

A case is a function case_* of (run, short): with 'short' it is over in seconds and proves less.
"""

import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import resource
import signal
import statistics
import subprocess
import time

import apps
import judge
from cases_chains import chain_hops, java_chain, need
from cases_faults import LOSS_COUNTERS, losses
from cases_insert import need_propagation
from harness import Failure, expect, expect_true, wait_until
from judge import Hop, expand
from measure import busy_percent, sink
from watch import Held, entries, kernel_bytes, maps, resident, says_what_is_used, status
from wire import Wire

HERE = pathlib.Path(__file__).resolve().parent
MB = 1 << 20
RSS_MAX = 40 * MB
MAPS_MAX = 32 * MB
SERVERS = {True: (60, 12), False: (500, 600)}  # and seconds, by 'short'
STARTS_A_SECOND = 20
SENDING = ("queue_full", "spans_refused", "spans_unreachable", "spans_shutdown")
PADDING = "x" * 1000


def crowd():
    return apps.build(apps.CACHE / "crowd", [HERE / "crowd.c"],
                      ["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread",
                       HERE / "crowd.c", "-o", apps.CACHE / "crowd"])


def ask(port, path):
    """One request on a connection of its own; None while nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        return response.status
    except ConnectionRefusedError:
        return None
    finally:
        connection.close()


class Hello:
    """The small Go service, started directly: hundreds of them need no output files."""

    alive = set()

    def __init__(self, run, name, port, padded=False):
        self.port = port
        environment = {**os.environ, "GOMAXPROCS": "1", "GOGC": "off"}
        if padded:  # 64 KB
            environment.update({f"PADDING_{n}": PADDING for n in range(64)})
        self.popen = subprocess.Popen([apps.go_chain(), "hello", str(port), "/dev/null", str(run.apps / name)],
                                      env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        Hello.alive.add(self)

    def ask(self, path, seconds=10):
        deadline = time.monotonic() + seconds
        while True:
            answered = ask(self.port, path)
            if answered:
                return answered
            expect(time.monotonic() < deadline, f"no answer on port {self.port}")
            time.sleep(0.01)

    def end(self, signal_number):
        self.popen.send_signal(signal_number)
        self.popen.wait()
        Hello.alive.discard(self)

    @classmethod
    def end_all(cls):
        """What a case that failed has left."""
        for one in list(cls.alive):
            one.end(signal.SIGKILL)


def short_life(run, n, port):
    """A process with a large environment answers one request; every other one is killed. Returns whether it answered."""
    hello = Hello(run, "short", port, padded=True)
    try:
        return hello.ask(f"/short/{n}") == 200
    except (Failure, OSError):  # somebody else has taken the port
        return False
    finally:
        hello.end(signal.SIGKILL if n % 2 else signal.SIGTERM)


class Starts:
    """Process starts at a steady rate from threads, until stopped."""

    def __init__(self, run):
        self.run, self.n, self.answered = run, 0, 0
        self.ports = [run.port() for _ in range(64)]
        self.pool = concurrent.futures.ThreadPoolExecutor(16)
        self.futures = []

    def until(self, now, begin):
        """Starts what is due by now."""
        while self.n < (now - begin) * STARTS_A_SECOND:
            self.futures.append(self.pool.submit(short_life, self.run, self.n, self.ports[self.n % 64]))
            self.n += 1
        while self.futures and self.futures[0].done():
            self.answered += self.futures.pop(0).result()

    def stop(self):
        self.pool.shutdown()
        while self.futures:
            self.answered += self.futures.pop().result()


def start_servers(run, n):
    servers = [Hello(run, "long", run.port(1100, 31000)) for _ in range(n)]
    for server in servers:
        server.ask("/before")
    return servers


def mean_resident(samples, first, last):
    """Mean of the samples taken in [first, last) seconds."""
    return statistics.mean(size for at, size in samples if first <= at < last)


def settle(daemon, before, seconds, processes=0):
    """Until nothing is more than before."""
    text = [""]

    def is_back():
        text[0] = Held.by(daemon.pid).more_than(before, processes)
        return not text[0]
    with contextlib.suppress(Failure):
        wait_until(is_back, seconds, "", 1)
    expect(not text[0], f"not as before: {text[0]}")


def case_processes(run, short):
    """500 Go servers, each called once a minute, and 20 short-lived processes a second for 10 minutes."""
    n, seconds = SERVERS[short]
    daemon = run.daemon()
    for first in start_servers(run, 1):  # what the daemon loads when it meets a Go process stays
        need_propagation(daemon)
        first.end(signal.SIGKILL)
    time.sleep(2)
    empty = Held.by(daemon.pid)
    servers = start_servers(run, n)
    samples, asked, called = [], 0, {}
    starts = Starts(run)
    try:
        wait_until(lambda: status(daemon)["processes"]["traced"] == n, 30, f"{n} traced processes", 0.2)
        time.sleep(0.5)  # what was asked before is over
        full = Held.by(daemon.pid)
        expect(full.entries["procs"] == n, f"{full.entries} with {n} servers")
        begin = time.monotonic()
        while (now := time.monotonic()) < begin + seconds:
            starts.until(now, begin)
            if asked <= (now - begin) * n / 60:
                server = servers[asked % n]
                expect(server.ask(f"/long/{asked}") == 200, f"no answer of {server.popen.pid} on port {server.port}")
                called[f"/long/{asked}"] = server.popen.pid
                asked += 1
            if not samples or now - begin >= samples[-1][0] + 1:
                samples.append((now - begin, resident(daemon.pid)))
            time.sleep(0.005)
        starts.stop()
        settle(daemon, full, 45)  # an ended process is kept for 30 s
    finally:
        starts.stop()
    for server in servers:
        server.end(signal.SIGKILL)
    settle(daemon, empty, 10)
    highest = max(size for _, size in samples)
    counters = daemon.counters()
    daemon_cpu = sum(int(field) for field in pathlib.Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2]
                     .split()[11:13]) / os.sysconf("SC_CLK_TCK")
    spans = [span for span in daemon.finish() if judge.span_path(span).startswith("/long/")]
    found = {judge.span_path(span): span["pid"] for span in spans}
    expect(found == called and len(spans) == asked, f"{asked} requests to {n} servers, {len(spans)} spans")
    expect(starts.answered >= seconds * STARTS_A_SECOND * 0.9,
           f"{starts.n} processes were started, only {starts.answered} answered")
    expect(highest <= RSS_MAX, f"{highest / MB:.1f} MB resident")
    rows = [("servers, and short-lived processes started", f"{n}, {STARTS_A_SECOND}/s", f"{n}, {starts.answered}"),
            ("requests to the servers = spans", "equal", f"{asked} = {len(spans)}"),
            ("resident memory, the most", "40 MB", f"{highest / MB:.1f} MB"),
            ("CPU of the daemon a process start", "", f"{daemon_cpu / (starts.n + n) * 1000:.2f} ms"),
            ("processes_full, processes_gone", "0, any", f"{counters['processes_full']}, {counters['processes_gone']}"),
            ("fds, links, maps, entries afterwards", "as before", "as before")]
    expect(counters["processes_full"] == 0, f"processes_full {counters['processes_full']}")
    if short:
        grown = samples[-1][1] - samples[len(samples) // 3][1]
        rows.append(("resident memory, grown in the last two thirds", "4 MB", f"{grown / MB:.1f} MB"))
        expect(grown <= 4 * MB, f"{grown / MB:.1f} MB more than after a third of the time")
    else:
        early, late = mean_resident(samples, 120, 180), mean_resident(samples, seconds - 60, seconds)
        rows.append(("resident memory, last minute to the third", "±2 %", f"{(late / early - 1) * 100:+.2f} %"))
        expect(abs(late / early - 1) <= 0.02, f"resident {early / MB:.2f} MB in minute 3, {late / MB:.2f} MB at the end")
    return rows


def case_restarts(run, short):
    """A traced Go server is restarted again and again: links and descriptors stay as after the first start."""
    n = 20 if short else 200
    daemon = run.daemon()
    port, pids, first = run.port(), set(), None
    for round_ in range(n):
        server = Hello(run, "restarted", port)
        server.ask("/first")
        wait_until(lambda: status(daemon)["processes"]["traced"] == 1, 10, "a traced server", 0.01)
        expect(server.ask(f"/restart/{round_}") == 200, "a request failed")
        if first is None:
            first = Held.by(daemon.pid)
        pids.add(server.popen.pid)
        server.end(signal.SIGKILL if round_ % 2 else signal.SIGTERM)
        wait_until(lambda: status(daemon)["processes"]["traced"] == 0, 10, "the end of it", 0.01)
    settle(daemon, first, 10, processes=-1)
    spans = {judge.span_path(span) for span in daemon.finish()} & {f"/restart/{i}" for i in range(n)}
    expect(len(spans) == n, f"{len(spans)} of {n} requests have a span")
    return [("restarts, each with a span", str(n), str(len(spans))),
            ("links, fds, maps and entries", "as after the first", f"{first.links} links, {first.fds} fds")]


def made(counters):
    return counters["spans_server"] + counters["spans_client"]


def named_losses(now, before):
    return {name: now[name] - before.get(name, 0) for name in LOSS_COUNTERS if now.get(name, 0) > before.get(name, 0)}


def wait_closed(daemon):
    """Until no connection is known any more but those whose end was lost, counted, in a ring that was full."""
    try:
        wait_until(lambda: status(daemon)["connections"] <= daemon.counters()["lost_close"], 30, "", 0.3)
    except Failure:
        states = subprocess.run(["ss", "-tanH"], capture_output=True, text=True, check=False).stdout.splitlines()
        count = collections.Counter(line.split()[0] for line in states)
        raise Failure(f"{status(daemon)['connections']} connections are left; the host has {dict(count)}") from None


def crowd_round(run, daemon, kind, total, many):
    """Opens and closes so many connections between two traced programs; every request has its two spans or a counter."""
    port = run.port()
    before = Held.by(daemon.pid)
    server = run.start(f"crowd-{kind}-{total}", [crowd(), kind, port, run.apps / "crowd"])
    counters = daemon.counters()
    client = run.start("crowd-client", [crowd(), "client", port, run.apps / "crowd", total, many],
                       stdin=subprocess.PIPE)
    wait_until(lambda: status(daemon)["processes"]["traced"] == 2, 10, "two traced processes")
    client.popen.stdin.write(b"\n")
    client.popen.stdin.flush()
    highest, open_bytes = 0, 0
    while client.running():
        highest = max(highest, resident(daemon.pid))
        open_bytes = max(open_bytes, status(daemon)["memory"]["open_bytes"])
        time.sleep(0.2)
    done = json.loads(client.stdout.splitlines()[-1])
    expect(done["connections"] == total and done["failed"] == 0, f"{done}: {client.stderr[-200:]}")
    wait_closed(daemon)
    now = daemon.counters()
    spans, lost = made(now) - made(counters), losses(now) - losses(counters)
    named = named_losses(now, counters)
    expect(server.stop() == 0 and int(server.stdout.split()[-1]) == total, "the server counted something else")
    settle(daemon, before, 10)
    expect(spans + lost == 2 * total, f"{spans} spans, {lost} lost by {named} of {2 * total}")
    return spans, lost, highest, open_bytes


def case_connections(run, short):
    """100,000 connections opened and closed, as many at a time as fit: maps and memory as before."""
    many = min(25_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 100)
    total = 20_000 if short else 100_000
    daemon = run.daemon(arguments=())
    rows = []
    for kind, total, many in (("server", total, many), ("threads", total // 10, 400)):
        spans, lost, highest, open_bytes = crowd_round(run, daemon, kind, total, many)
        name = f"{total:,} connections, {min(many, total):,} at a time" + (", a thread each" if kind == "threads" else "")
        rows += [(name + ": spans + counted losses", f"{2 * total}", f"{spans} + {lost}"),
                 ("resident memory, the most; for connections", "40 MB; 16 MB", f"{highest / MB:.1f} MB; {open_bytes / MB:.1f} MB")]
        expect(highest <= RSS_MAX, f"{highest / MB:.1f} MB resident")
    rows.append(("entries of the maps afterwards", "as before", "as before"))
    return rows


def hold_requests(run, hold, n, records):
    """Opens so many connections with a request each that is not answered yet."""
    wires = []
    for i in range(n):
        wire = Wire(hold.port, records, timeout=30)
        records["client", f"h-{i}"] = {"id": f"h-{i}", "role": "client", "path": f"/hold/h-{i}", "status": 200,
                                       "start": time.time_ns(), "end": 0, "traceparent": ""}
        wire.send(wire.head(f"/hold/h-{i}"))
        wires.append(wire)
    return wires


def case_connections_full(run, short):
    """limits.connections is reached: the newest are refused and counted, what is open stays and is true."""
    n, most = (300, 100) if short else (3_000, 1_000)
    hold = run.app("hold", apps.python("hold.py", "{port}", "{log}"))
    daemon = run.daemon(run.config(extra=f"limits: {{connections: {most}}}\n"))
    records = {}
    wires = hold_requests(run, hold, n, records)
    # Of the tables of that size in the daemon and, with some taps, in the kernel the latter is full first.
    names = ("connections_full", "no_state")
    wait_until(lambda: sum(daemon.counters()[name] for name in names) >= n - most, 10, "refused connections")
    hold.popen.send_signal(signal.SIGUSR1)
    for i, wire in enumerate(wires):
        expect(wire.response()[0] == 200, "a request was not answered")
        records["client", f"h-{i}"]["end"] = time.time_ns()
        wire.close()
    later = {}
    for i in range(50):
        with Wire(hold.port, later) as wire:
            wire.request(f"/hold/later-{i}")
    time.sleep(1.2)
    counters = daemon.counters()
    run.stop_apps()
    spans = daemon.finish()
    logs = {"hold": judge.read_log(run.logs["hold"]), "load": {**dict(list(records.items())[:most]), **later}}
    text = expect_true(spans, expand([Hop("server", "/hold/{id}", outer="load", inner="hold", pid=hold.pid)], logs))
    by_kernel, refused = counters["no_state"], counters["connections_full"]
    counted = by_kernel >= n - most if by_kernel else refused == n - most  # the kernel counts each send and receive
    expect(counted and losses(counters) == by_kernel + refused and not (by_kernel and refused),
           f"counted {named_losses(counters, {})}")
    return [("open at a time, of that followed", f"{n}, {most}", text),
            ("refused and counted", str(n - most), f"{by_kernel} sends and receives" if by_kernel else str(refused))]


def case_requests_full(run, short):
    """limits.open_requests is reached: every request has its span, parents are right or absent, each absence counted."""
    need("java", "javac")
    front, back = java_chain(run)
    daemon = run.daemon(run.config(extra="limits: {open_requests: 8}\n"))
    run.load(front.port, 2_000 if short else 20_000, 64, traceparent=20)
    time.sleep(1.5)
    counters = daemon.counters()
    left = entries(daemon.pid)
    run.stop_apps()
    hops = chain_hops(front, back, client_may_lack_parent=True)
    hops[2].may_lack_parent = True
    spans = [span for span in daemon.finish() if span["pid"] in run.pids()]
    verdict = run.judge(spans, expand(hops, run.read_logs()))
    full = {name: counters.get(name, 0) for name in ("requests_full", "units_full", "joins_full")}
    expect(verdict.ok, f"{verdict}; {verdict.problems[:4]}; {full}")
    expect(verdict.absent_allowed > 0 and sum(full.values()) > 0, f"nothing was full: {full}")
    expect(left["requests"] == left["joins"] == 0, f"left in the maps: {left}")
    return [("spans of a Java chain at 64 connections, 8 requests in the tables", "0 wrong, 0 missing", str(verdict)),
            ("tables full", "counted", ", ".join(f"{name} {n}" for name, n in full.items())),
            ("requests and joins left in the tables", "0", "0")]


def case_requests_a_second(run, short):
    """20,000 requests a second, or what the machine gives: requests = spans exported + counted losses, exactly."""
    need("go")
    rate, seconds = 20_000, 5 if short else 60
    hello = run.app("hello", [apps.go_chain(), "hello", "{port}", "/dev/null", run.apps / "hello"], log=False)
    daemon = run.daemon(run.config(endpoint=sink(run)), arguments=())
    load = run.load_start(hello.port, rate * seconds, 64, rate=rate, seconds=seconds + 1)
    expect(load.wait(seconds * 3 + 20) == 0, f"load: {load.stdout} {load.stderr[-200:]}")
    done = json.loads(load.stdout)
    named = SENDING + tuple(LOSS_COUNTERS)
    with contextlib.suppress(Failure):
        wait_until(lambda: (c := daemon.counters())["spans_exported"] + sum(c.get(name, 0) for name in named)
                   == done["requests"], 10, "all spans", 0.3)
    counters = daemon.counters()
    lost = {name: counters[name] for name in named if counters.get(name)}
    exported, got = counters["spans_exported"], done["requests"] / done["seconds"]
    expect(exported + sum(lost.values()) == done["requests"], f"{done}: {exported} exported, lost {lost}")
    highest = resident(daemon.pid)
    expect(highest <= RSS_MAX * 2, f"{highest / MB:.1f} MB resident")
    return [("requests a second", f"{rate:,}, or what the machine gives", f"{got:,.0f}"),
            ("requests = spans exported + counted losses", str(done["requests"]), f"{exported} + {lost or 0}"),
            ("resident memory", "80 MB", f"{highest / MB:.1f} MB")]


def case_map_memory(run, short):
    """The memory of the maps is what the configuration says, and no map drops its oldest entry to make room."""
    rows = []
    for text, ring in (("", 2 * MB), ("limits: {ring_bytes: 8MB, processes: 64, open_requests: 256}\n", 8 * MB)):
        before = kernel_bytes()
        daemon = run.daemon(run.config(extra=text), arguments=(), name=f"maps-{ring // MB}")
        grown, mine, told = kernel_bytes() - before, maps(daemon.pid), status(daemon)
        daemon.end()
        evicting = [name for name, one in mine.items() if "lru" in one["type"]]
        expect(not evicting, f"maps that drop entries when they are full: {evicting}")
        sizes = {name: one["bytes_memlock"] for name, one in mine.items()}
        said, total, what = told["memory"]["map_bytes"], sum(sizes.values()), "all maps"
        expect(abs(said - total) < MB, f"{total} bytes: {sizes}; status says {said}")
        if says_what_is_used():
            expect(ring <= sizes["ring"] <= ring + MB // 4, f"the ring takes {sizes['ring']} bytes")
        else:
            total, what = grown, "all maps and programs, by what the kernel has less"
        rows.append((f"{what}, {told['tap']['name']} tap, {text.strip() or 'defaults'}", f"{MAPS_MAX // MB} MB",
                     f"{total / MB:.1f} MB"))
        expect(total <= MAPS_MAX, f"{total} bytes ({grown} by what the kernel has less): {sizes}")
    return rows
