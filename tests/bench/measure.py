"""What the benchmarks measure with: CPU time of processes, load by wrk, the daemon switched on and off in turn.

Used by items.py. Starts everything through the harness of the end-to-end tests, so that it ends with the item.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import time
import urllib.error
import urllib.request

import apps
from harness import PATIENCE, Failure, expect, wait_until

HERE = pathlib.Path(__file__).resolve().parent
TICKS = os.sysconf("SC_CLK_TCK")
MB = 1 << 20
LOST = ("queue_full", "spans_refused", "spans_unreachable", "spans_shutdown")


@dataclasses.dataclass
class Row:
    """One figure. With 'off' it is a comparison, and off[i] was measured just before on[i]."""
    figure: str
    unit: str
    on: list
    off: list | None = None
    budget: float | None = None
    budget_of: str = "value"           # value | difference | percent | least (the value may not be smaller)
    note: str = ""

    def results(self):
        """What the budget speaks of, a value a round."""
        if self.budget_of == "percent":
            return [(on / off - 1) * 100 for off, on in zip(self.off, self.on)]
        if self.off:
            return [on - off for off, on in zip(self.off, self.on)]
        return self.on

    def within(self):
        """None: there is no budget."""
        if self.budget is None:
            return None
        result = statistics.median(self.results())
        return result >= self.budget if self.budget_of == "least" else result <= self.budget


def c_program(name):
    return apps.build(apps.CACHE / f"bench-{name}", [HERE / f"{name}.c"],
                      ["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread",
                       HERE / f"{name}.c", "-o", apps.CACHE / f"bench-{name}"])


def cpu_ns(pid):
    """CPU time of all threads, also of ended ones, to the nanosecond: what /proc/PID/stat has in ticks.

    The clock's number is what clock_getcpuclockid(3) makes of a pid (CPUCLOCK_SCHED of a process).
    """
    return time.clock_gettime_ns((~pid << 3) | 2)


def machine_ns():
    """User and system time of the whole machine without interrupts, and the time in software interrupts."""
    user, nice, system, _, _, _, softirq = (int(n) for n in pathlib.Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system) * 1_000_000_000 // TICKS, softirq * 1_000_000_000 // TICKS


def busy_percent(seconds=1.0):
    """How much of one CPU the machine uses without us."""
    begin, _ = machine_ns()
    time.sleep(seconds)
    return (machine_ns()[0] - begin) / seconds / 1e7


def quiet_log(run, *names):
    """Makes the services' own records go nowhere: a line a request is no part of what is measured."""
    for name in names:
        (run.apps / f"{name}.log").symlink_to("/dev/null")


def sink(run):
    """A collector that takes everything; returns its endpoint."""
    port = run.port()
    run.start("sink", [c_program("sink"), port])
    return f"http://127.0.0.1:{port}"


def status_of(daemon):
    return json.loads(daemon.control("--json", "status"))


def is_idle(pid):
    before = cpu_ns(pid)
    time.sleep(0.3)
    return cpu_ns(pid) - before < 3_000_000  # 1 % of it


@contextlib.contextmanager
def tracing(run, traced, endpoint=None, arguments=(), extra=""):
    """The daemon, once it has found so many processes of the run, and what it does once for the first Go program is
    done; ended after that. 'extra': of its configuration."""
    daemon = run.daemon(run.config(extra, endpoint=endpoint), arguments=arguments)
    wait_until(lambda: status_of(daemon)["processes"]["traced"] >= traced, 10, f"{traced} traced processes")
    wait_until(lambda: is_idle(daemon.pid), 10, "an end of what the daemon does at its start")
    try:
        yield daemon
        daemon.expect_running()
    finally:
        daemon.stop(15)


def spans_made(daemon):
    counters = daemon.counters()
    return counters["spans_server"] + counters["spans_client"]


def spans_settled(daemon):
    """Spans exported, once each span that was made is exported or counted as lost; without loss, or it fails."""
    def settled():
        counters = daemon.counters()
        made = counters["spans_server"] + counters["spans_client"]
        lost = {name: counters[name] for name in LOST if counters.get(name)}
        expect(not lost, f"spans were lost, so the figure is none: {lost}")
        return counters["spans_exported"] if made and counters["spans_exported"] == made else None
    time.sleep(1)
    return wait_until(settled, 10, "all spans exported", 0.3)


def get(url):
    """Status of a GET, whatever it is."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def path_of_success(port):
    """A path that the service answers with 200: its answers follow from the id at the end."""
    return next(path for path in (f"/x/r-{i}" for i in range(100)) if get(f"http://127.0.0.1:{port}{path}") == 200)


def wrk(port, path, connections, seconds):
    """Requests that were answered; all of them with success, or it fails."""
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", f"http://127.0.0.1:{port}{path}"],
                          capture_output=True, text=True, timeout=seconds * PATIENCE + 30, check=False)
    found = re.search(r"(\d+) requests in", done.stdout)
    if done.returncode != 0 or not found or re.search("Non-2xx|Socket errors", done.stdout):
        raise Failure(f"wrk: {done.stdout[-300:]} {done.stderr[-300:]}")
    return int(found[1])


def children_ns():
    """CPU time of the ended children: grows by what a wrk run took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((used.ru_utime + used.ru_stime) * 1e9)


def load_figures(load, servers, daemon=None, spans_a_request=1):
    """Puts load() on the servers and returns us of CPU a request by who spent it. load() returns the requests."""
    before = sum(cpu_ns(s.pid) for s in servers), daemon and cpu_ns(daemon.pid), machine_ns(), children_ns()
    made = spans_made(daemon) if daemon else 0
    begin = time.monotonic()
    requests = load()
    seconds = time.monotonic() - begin
    machine, softirq = (now - then for now, then in zip(machine_ns(), before[2]))
    figures = {"servers": sum(cpu_ns(s.pid) for s in servers) - before[0], "machine": machine, "softirq": softirq,
               "wrk": children_ns() - before[3]}
    if daemon:
        figures["daemon"] = cpu_ns(daemon.pid) - before[1]
    figures = {name: ns / 1000 / requests for name, ns in figures.items()}
    figures["rate"] = requests / seconds
    if daemon:
        time.sleep(0.3)
        figures["seen"] = (spans_made(daemon) - made) / (requests * spans_a_request) * 100
        expect(figures["seen"] > 90, f"only {figures['seen']:.1f} % of the spans were made: no true 'with'")
    return figures


def in_turn(run, rounds, measure, traced, endpoint=None):
    """measure(None) without and measure(daemon) with the daemon, in turn: two lists of what it returned.

    Each is first in every other round: what grows warm meanwhile is to the good of both.
    """
    off, on = [], []
    for n in range(rounds):
        for has_daemon in (n % 2 == 1, n % 2 == 0):
            if not has_daemon:
                off.append(measure(None))
                continue
            with tracing(run, traced, endpoint) as daemon:
                on.append(measure(daemon))
    return off, on


def column(figures, name):
    return [one[name] for one in figures]
