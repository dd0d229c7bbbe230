"""The items of the benchmark, item_*: each gets a Run and the number of rounds and returns its rows."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import time
import urllib.error

import apps
import harness
from cases_chains import go_chain, java_chain, need
from cases_images import Box, image_of
from cases_jvm_attach import await_agent
from harness import Daemon, Failure, Skip, expect, wait_until
from measure import (MB, Row, c_program, column, cpu_ns, get, in_turn, load_figures, path_of_success, quiet_log, sink,
                     spans_settled, status_of, tracing, wrk)
from wire import Wire

LOAD_SECONDS = int(os.environ.get("TSUNAGI_BENCH_SECONDS", 5))  # shorter where the clock is slow (tests/vm/cost)
WARM_SECONDS = 2 * LOAD_SECONDS    # of a JVM, until its code is compiled
SPAN_RATE, SPAN_SECONDS = 10_000, 5
MEMORY_REQUESTS = 100_000
PING_SLICES, PING_ROUNDS = 10 * LOAD_SECONDS, 2_000 * LOAD_SECONDS
EXECS_A_ROUND = 3
JAEGER_REQUESTS_A_ROUND = 3
ATTACH_SECONDS = 4
CONTAINERS = 50


def go_hello(run, name="hello", port=None, **options):
    """The hello server of the Go services; its command line has the run's folder, by which it is selected."""
    quiet_log(run, name)
    return run.app(name, [apps.go_chain(), "hello", "{port}", "{log}"], port=port, **options)


def cpu_rows(off, on, budget, budget_of):
    """The rows of a service under load, from the figures of both sides."""
    return [Row("CPU of the services a request", "us", column(on, "servers"), column(off, "servers"), budget,
                budget_of),
            Row("CPU of the machine a request, without interrupts", "us", column(on, "machine"),
                column(off, "machine"), note="also the daemon, wrk, and what else ran"),
            Row("CPU in software interrupts a request", "us", column(on, "softirq"), column(off, "softirq")),
            Row("CPU of wrk a request", "us", column(on, "wrk"), column(off, "wrk")),
            Row("CPU of the daemon a request", "us", column(on, "daemon")),
            Row("requests a second", "/s", column(on, "rate"), column(off, "rate")),
            Row("spans made of those that should be", "%", column(on, "seen"))]


def served(run, rounds, servers, front, connections, spans_a_request, budget, budget_of):
    path = path_of_success(front.port)
    wrk(front.port, path, connections, 1)
    endpoint = sink(run)
    off, on = in_turn(run, rounds, lambda daemon: load_figures(
        lambda: wrk(front.port, path, connections, LOAD_SECONDS), servers, daemon, spans_a_request),
        len(servers), endpoint)
    return cpu_rows(off, on, budget, budget_of)


def item_go_hello(run, rounds):
    """CPU a request of the Go hello server at 64 connections."""
    need("go", "wrk")
    hello = go_hello(run)
    return served(run, rounds, [hello], hello, 64, 1, 2.0, "difference")


def item_go_chain(run, rounds):
    """CPU a request of the Go front and back together, at 64 connections."""
    need("go", "wrk")
    quiet_log(run, "front", "back")
    front, back = go_chain(run)
    return served(run, rounds, [front, back], front, 64, 3, 6.0, "percent")


def item_go_insert(run, rounds):
    """CPU a request of the Go front and back, with the daemon in both cases: without and with propagation."""
    need("go", "wrk")
    quiet_log(run, "front", "back")
    front, back = go_chain(run)
    path, endpoint = path_of_success(front.port), sink(run)
    wrk(front.port, path, 64, 1)
    off, on = [], []
    for _ in range(rounds):
        for figures, extra in ((off, "propagate: off\n"), (on, "propagate: on\n")):
            with tracing(run, 2, endpoint, extra=extra) as daemon:
                # connections that are there already are taken in, and their first requests go without
                wrk(front.port, path, 64, 1)
                figures.append(load_figures(lambda: wrk(front.port, path, 64, LOAD_SECONDS), [front, back], daemon, 3))
                inserted = daemon.counters()["inserted"]
                expect(bool(inserted) == (figures is on), f"{inserted} headers with '{extra.strip()}'")
    return cpu_rows(off, on, 1.5, "difference")


def item_java_chain(run, rounds):
    """CPU a request of the two thread-per-request Java services together, at 32 connections."""
    need("java", "wrk")
    quiet_log(run, "front", "back")
    front, back = java_chain(run)
    wrk(front.port, path_of_success(front.port), 32, WARM_SECONDS)
    return served(run, rounds, [front, back], front, 32, 3, None, "percent")


def ktor(run, name, back_port, log, options=()):
    """A Ktor service on Netty that calls by OkHttp; traced if its log is in the run's folder."""
    port = run.port()
    process = run.start(name, ["java", "-Xms256m", "-Xmx256m", "-XX:+AlwaysPreTouch", *options, "-jar", apps.ktor(),
                               port, back_port, log, "netty-nio", "okhttp"])
    process.port = port
    wait_until(lambda: is_answered(port), 30, f"{name} answers")
    return process


def is_answered(port):
    try:
        return get(f"http://127.0.0.1:{port}/direct/first") == 200
    except OSError:
        return False


def ktor_figures(process, seconds=LOAD_SECONDS, daemon=None):
    return load_figures(lambda: wrk(process.port, "/direct/x-1", 16, seconds), [process], daemon, 2)


@contextlib.contextmanager
def agent_used(run, process, endpoint):
    """The daemon, once the agent of the process is in use."""
    with tracing(run, 1, endpoint, extra="jvm:\n  agent: auto\n") as daemon:
        await_agent(daemon, process)
        yield daemon


def item_jvm_agent(run, rounds):
    """CPU a request of a Ktor service on Netty with OkHttp, at 16 connections: JVMs with and without the agent."""
    need("java", "mvn", "go", "wrk")
    endpoint, unlogged = sink(run), "/dev/null"
    quiet_log(run, "traced")
    back_port = run.port()
    run.start("back", [apps.go_chain(), "back", back_port, unlogged])
    never, traced = ktor(run, "never", back_port, unlogged), ktor(run, "traced", back_port, run.apps / "traced.log")
    apart, figures = [], {"never": [], "traced": [], "ended": []}
    for process in (never, traced, never, traced):
        wrk(process.port, "/direct/x-1", 16, WARM_SECONDS)
    for n in range(rounds):
        order = (never, traced) if n % 2 else (traced, never)
        both = {process.name: ktor_figures(process)["servers"] for process in order}
        apart.append((both["never"], both["traced"]))
    with agent_used(run, traced, endpoint):
        wrk(traced.port, "/direct/x-1", 16, 2 * WARM_SECONDS)  # what was rewritten is compiled again
    for n in range(rounds):
        for what in sorted(figures, reverse=n % 2):
            if what == "traced":
                with agent_used(run, traced, endpoint) as daemon:
                    figures[what].append(ktor_figures(traced, daemon=daemon))
            else:
                figures[what].append(ktor_figures(never if what == "never" else traced))
    off = column(figures["never"], "servers")
    return [Row("CPU of the service a request, traced, to one that never had the agent", "us",
                column(figures["traced"], "servers"), off, 3.0, "percent"),
            Row("CPU of the service a request after the daemon's end, to one that never had the agent", "us",
                column(figures["ended"], "servers"), off, 1.0, "percent"),
            Row("the same two before there was an agent", "us", [b for _, b in apart], [a for a, _ in apart]),
            Row("CPU of the machine a request, without interrupts", "us", column(figures["traced"], "machine"),
                column(figures["never"], "machine")),
            Row("requests a second", "/s", column(figures["traced"], "rate"), column(figures["never"], "rate")),
            Row("spans made of those that should be", "%", column(figures["traced"], "seen"))]


def rss_mb(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)[1]) / 1024


def stops_ms(log):
    """How long the JVM stood still for each rewriting of classes, getting there included."""
    stops = re.findall(r'Safepoint "(?:Redefine|Retransform)\w*".*Total: +(\d+) ns', log.read_text())
    return [int(ns) / 1e6 for ns in stops]


def item_jvm_agent_attach(run, rounds):
    """What loading the agent takes in a Ktor service that has served 5,000 requests; a JVM of its own each time."""
    need("java", "mvn", "go", "wrk")
    endpoint, back_port, grown, stops = sink(run), run.port(), [], []
    run.start("back", [apps.go_chain(), "back", back_port, "/dev/null"])
    for n in range(rounds):
        log = run.directory / f"safepoints-{n}"
        with idle(run, f"service{n}", back_port, [f"-Xlog:safepoint:file={log}"]) as process:
            before = rss_mb(process)
            with agent_used(run, process, endpoint):
                time.sleep(2)
                after = rss_mb(process)
        stops.append(max(stops_ms(log)))
        with idle(run, f"other{n}", back_port) as process:
            alone = rss_mb(process)
            time.sleep(4)
            grown.append((rss_mb(process) - alone, after - before))
    return [Row("longest stop of the JVM for rewriting classes", "ms", stops, budget=50.0),
            Row("growth of the JVM's resident memory in some seconds", "MB", [b for _, b in grown],
                [a for a, _ in grown], 4.0, "difference")]


@contextlib.contextmanager
def idle(run, name, back_port, options=()):
    """A Ktor service that has had 5,000 requests."""
    quiet_log(run, name)
    process = ktor(run, name, back_port, run.apps / f"{name}.log", options)
    run.load(process.port, 5_000, 16, name=f"load-{name}", prefix="/direct/", id=name)
    time.sleep(2)
    yield process
    process.stop()


HANDOVERS = {"executeJob": "a job handed to a pool's thread, and run", "passMessage": "a message through a queue",
             "yieldVirtual": "a virtual thread's unmount and mount"}


def jmh(run, home, agent):
    """ns an operation, by name, as JMH has them: with this library in the JVM, or "none"."""
    folder, source = apps.CACHE / "jmh", pathlib.Path(__file__).parent / "jmh"
    apps.build(folder / "classes/handovers/Handover.class", [source / "pom.xml", source / "src/handovers/Handover.java"],
               apps.mvn(folder, "process-classes"), cwd=source, env={**os.environ, "JAVA_HOME": str(home)})
    result = run.directory / "jmh.json"
    done = subprocess.run([home / "bin/java", "-cp", f"{folder}/classes:{folder}/libs/*", "org.openjdk.jmh.Main",
                           "-rf", "json", "-rff", result, "-p", f"agent={agent}"], capture_output=True, text=True,
                          timeout=180, check=False)
    expect(done.returncode == 0, f"JMH: {done.stdout[-500:]} {done.stderr[-500:]}")
    return {one["benchmark"].split(".")[-1]: one["primaryMetric"]["score"] for one in json.loads(result.read_text())}


def item_jvm_handover(run, rounds):
    """What a hand-over takes in a JVM with the agent, switched on and in a request's context, and without it (JMH)."""
    home = apps.java25_home()
    if not home or not shutil.which("mvn"):
        raise Skip("no Java 25, or no Maven")
    off, on = [], []
    for _ in range(rounds):
        off.append(jmh(run, home, "none"))
        on.append(jmh(run, home, harness.BIN.parent / "lib/tsunagi-agent.so"))
    return [Row(text, "ns", column(on, name), column(off, name), 10.0 if name == "yieldVirtual" else None, "difference")
            for name, text in HANDOVERS.items()]


def item_go_containers(run, rounds):
    """CPU a request of a Go front and back in one container, alone and beside 49 others of its image."""
    need("go", "wrk")
    endpoint, rows = sink(run), []
    with image_of(run) as image:
        box = Box(run, image, "box")
        quiet_log(run, "front", "back")
        back = box.app("back", "{port}", "{log}", name="back")
        front = box.app("front", "{port}", "{log}", back.port, name="front")
        path = path_of_success(front.port)
        for others, how in ((0, "alone"), (CONTAINERS - 1, f"beside {CONTAINERS - 1} others")):
            for i in range(others):
                Box(run, image, f"other{i}").app("hello", "{port}", "{log}")
            off, on = in_turn(run, rounds, lambda daemon: load_figures(
                lambda: wrk(front.port, path, 64, LOAD_SECONDS), [front, back], daemon, 3), others + 2, endpoint)
            rows.append(Row(f"CPU of the services a request, {how}", "us", column(on, "servers"),
                            column(off, "servers"), 6.0, "percent"))
    return rows


STATISTICS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")


def programs(daemon):
    """id → (name, ns, runs) of the daemon's programs."""
    held = {int(number) for file in pathlib.Path(f"/proc/{daemon.pid}/fdinfo").iterdir()
            for number in re.findall(r"^prog_id:\t(\d+)", file.read_text(), re.MULTILINE)}
    shown = json.loads(subprocess.run(["bpftool", "--json", "prog", "show"], capture_output=True, check=True).stdout)
    return {one["id"]: (one.get("name", "?"), one.get("run_time_ns", 0), one.get("run_cnt", 0)) for one in shown
            if one["id"] in held}


def item_programs(run, rounds):
    """What each program takes for a request to the Go hello server, by the kernel's statistics of programs."""
    need("go", "wrk", "bpftool")
    hello, spent = go_hello(run), {}
    quiet = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        with tracing(run, 1, sink(run)) as daemon:
            for _ in range(rounds):
                before = programs(daemon)
                requests = wrk(hello.port, path_of_success(hello.port), 64, LOAD_SECONDS)
                for number, (name, ns, runs) in programs(daemon).items():
                    _, ns_before, runs_before = before.get(number, (name, 0, 0))
                    if runs > runs_before:
                        spent.setdefault(name, []).append(((ns - ns_before) / requests, (runs - runs_before) / requests))
            tap = status_of(daemon)["tap"]["name"]
    finally:
        STATISTICS.write_text(quiet)
    return [Row(f"{tap}: {name}, {statistics.median(runs for _, runs in taken):.2f} runs", "ns", [ns for ns, _ in taken])
            for name, taken in sorted(spent.items(), key=lambda one: -sum(ns for ns, _ in one[1]))]


def ping(_daemon):
    done = subprocess.run([c_program("pingpong"), str(PING_SLICES), str(PING_ROUNDS)], capture_output=True, text=True,
                          timeout=120, check=False)
    expect(done.returncode == 0, f"pingpong: {done.stderr}")
    return json.loads(done.stdout)


def item_unselected(run, rounds):
    """A send or a receive of 64 bytes by a process that is not traced, while another one is."""
    go_hello(run)
    off, on = in_turn(run, rounds, ping, 1)
    return [Row("a send or a receive, median of the slices", "ns", column(on, "median"), column(off, "median"), 60.0,
                "difference"),
            Row("a send or a receive, the fastest slice", "ns", column(on, "min"), column(off, "min"))]


def item_daemon_span(run, rounds):
    """CPU of the daemon a span at 10,000 requests a second, sent to a collector that takes everything."""
    hello, endpoint = go_hello(run), sink(run)
    cost, rates = [], []
    for _ in range(rounds):
        with tracing(run, 1, endpoint) as daemon:
            before = cpu_ns(daemon.pid)
            load = run.load(hello.port, SPAN_RATE * SPAN_SECONDS, 64, rate=SPAN_RATE)
            spans = spans_settled(daemon)
            cost.append((cpu_ns(daemon.pid) - before) / 1000 / spans)
            rates.append(load["requests"] / load["seconds"])
            expect(spans >= load["requests"], f"{spans} spans of {load['requests']} requests")
    return [Row("CPU of the daemon a span", "us", cost, budget=3.0), Row("requests a second", "/s", rates)]


def item_memory(run, rounds):
    """Memory of the daemon and of its maps: with one Go service traced, before and after 100,000 requests."""
    hello, endpoint = go_hello(run), sink(run)
    idle, loaded, peaks = [], [], []
    for _ in range(rounds):
        with tracing(run, 1, endpoint) as daemon:
            time.sleep(2)
            idle.append(status_of(daemon))
            run.load(hello.port, MEMORY_REQUESTS, 64)
            spans_settled(daemon)
            loaded.append(status_of(daemon))
            peak_kb = re.search(r"VmHWM:\s*(\d+)", pathlib.Path(f"/proc/{daemon.pid}/status").read_text())
            peaks.append(int(peak_kb[1]) / 1024)

    def megabytes(statuses, name):
        return [status["memory"][name] / MB for status in statuses]
    return [Row("resident, idle", "MB", megabytes(idle, "rss_bytes"), budget=20.0),
            Row("resident, after 100,000 requests", "MB", megabytes(loaded, "rss_bytes")),
            Row("resident, peak", "MB", peaks),
            Row("maps, idle", "MB", megabytes(idle, "map_bytes"), budget=32.0),
            Row("maps, after 100,000 requests", "MB", megabytes(loaded, "map_bytes"), budget=32.0),
            Row("links", "", [status["links"] for status in idle], budget=42.0)]


def first_start_ns(spans, pid):
    starts = [span["start_unix_nano"] for span in spans if span["pid"] == pid]
    if not starts:
        raise Failure("no span of the process at all")
    return min(starts)


def start_once(run, hello):
    """The daemon starts while requests come all the time."""
    load = run.load_start(hello.port, 20_000, 4, rate=1_000)
    time.sleep(0.2)
    daemon = Daemon(run, run.config())
    wait_until(lambda: "Ready" in daemon.stderr or not daemon.running(), 20, "'Ready'", 0.001)
    ready = time.time_ns()
    wait_until(lambda: daemon.stdout or not daemon.running(), 10, "the first span", 0.002)
    printed = time.time_ns()
    load.stop()
    first = first_start_ns(daemon.finish(), hello.pid)
    return [(moment - daemon.spawned_ns) / 1e6 for moment in (ready, first, printed)]


def exec_once(run, name):
    """A server is started and called in a tight loop from the moment it listens; (pid, exec, first answer)."""
    port = run.port()
    begin = time.time_ns()
    hello = go_hello(run, name, port, ready=None)
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            wire = Wire(port)
            break
        expect(time.time_ns() - begin < 5e9, "the server does not listen")
    with wire:
        wire.request(f"/first/{name}")
        answered = time.time_ns()
        for i in range(1_000_000):
            if time.time_ns() - answered > 3e8:
                break
            wire.request(f"/new/{name}-{i}")
    hello.stop()
    return hello.pid, begin, answered


def exec_rows(run, rounds):
    started, daemon = [], run.daemon()
    for i in range(rounds * EXECS_A_ROUND):
        started.append(exec_once(run, f"new{i}"))
    time.sleep(0.5)
    spans = daemon.finish()
    captured = [(first_start_ns(spans, pid) - begin) / 1e6 for pid, begin, _ in started]
    return [Row("exec of a process to its first captured request", "ms", captured, budget=100.0),
            Row("exec of a process to its first answer", "ms", [(end - begin) / 1e6 for _, begin, end in started])]


def in_jaeger(jaeger, trace_id):
    with contextlib.suppress(urllib.error.HTTPError):
        return jaeger.get(f"/api/traces/{trace_id}")["data"]
    return None


def jaeger_rows(run, hello, rounds):
    jaeger = harness.Jaeger(run)
    visible = []
    with tracing(run, 1, jaeger.endpoint), Wire(hello.port) as wire:
        for i in range(rounds * JAEGER_REQUESTS_A_ROUND):
            trace_id = os.urandom(16).hex()
            wire.request(f"/seen/{i}", [f"traceparent: 00-{trace_id}-00f067aa0ba902b7-01"])
            answered = time.monotonic()
            wait_until(lambda: in_jaeger(jaeger, trace_id), 10, "the span in Jaeger", 0.01)
            visible.append((time.monotonic() - answered) * 1000)
    return [Row("response to its span visible in Jaeger", "ms", visible, budget=2000.0)]


def item_start(run, rounds):
    """How long until spans: from the daemon's start, from a new process, from a response to Jaeger."""
    need("go")
    hello = go_hello(run)
    ready, first, printed = zip(*(start_once(run, hello) for _ in range(rounds)))
    rows = [Row("start to Ready", "ms", list(ready)),
            Row("start to the first captured request", "ms", list(first), budget=1000.0,
                note="the request's start; 1,000 come a second"),
            Row("start to the first span printed", "ms", list(printed))]
    rows += exec_rows(run, rounds)
    try:
        rows += jaeger_rows(run, hello, rounds)
    except Skip as reason:
        rows.append(Row("response to its span visible in Jaeger", "ms", [], budget=2000.0, note=f"skipped: {reason}"))
    return rows


def attach_once(run, binary):
    """CPU of the daemon in ms, in a time without and in one with a large Go program that it sees for the first time."""
    daemon = run.daemon(f"discover:\n  include: [{{exe: {binary}}}]\n")
    links = status_of(daemon)["links"]
    spent, program = [], None
    for start in (False, True):
        time.sleep(0.5)
        before = cpu_ns(daemon.pid)
        until = time.monotonic() + ATTACH_SECONDS
        if start:
            program = harness.Jaeger(run, binary)
            wait_until(lambda: status_of(daemon)["links"] > links, 10, "probes in the program", 0.1)
        time.sleep(max(0, until - time.monotonic()))
        spent.append((cpu_ns(daemon.pid) - before) / 1e6)
    daemon.stop(15)
    program.stop()
    return spent


def item_attach(run, rounds):
    """CPU of the daemon for a large Go program (Jaeger): it is found, its image is read, its probes are attached."""
    binary = run.directory / "large"  # its own name is one that is left alone
    shutil.copy(harness.Jaeger.binary(), binary)
    off, on = zip(*(attach_once(run, binary) for _ in range(rounds)))
    return [Row("CPU of the daemon for a Go program that is new to it", "ms", list(on), list(off), budget=50.0,
                budget_of="difference", note=f"{binary.stat().st_size / MB:.0f} MB; off: as long without one")]


def item_offline(_run, rounds):
    """Recorded events to encoded spans on one core: decode, stitch, encode."""
    program = harness.BIN / "bench_offline"
    if not program.exists():
        raise Skip(f"no {program.name} beside the daemon: build the target bench_offline")
    rates = []
    for _ in range(rounds):
        done = subprocess.run([program], capture_output=True, text=True, timeout=120, check=False)
        found = re.match(r"(\d+) spans/s", done.stdout)
        expect(done.returncode == 0 and found, f"{program.name}: {done.stdout} {done.stderr}")
        rates.append(float(found[1]))
    return [Row("decode, stitch and encode on one core", "spans/s", rates, budget=1e6, budget_of="least",
                note="each round is the median of five of the program's own")]
