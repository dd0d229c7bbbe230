"""Cases that change the whole machine, its clock or what it permits: for a virtual machine that is thrown away.

tests/e2e/run takes them in only when TSUNAGI_E2E_MACHINE is set; tests/vm/guest sets it.
"""

import http.client
import json
import pathlib
import socket
import time

import apps
import cases_insert_memory
import judge
from cases_chains import chain_hops, go_chain
from cases_cli import daemon_once, one_line
from cases_descriptors import soft_limit
from cases_insert import ON, expect_headers, need_propagation, propagation, wait_for_sockets
from harness import Daemon, expect, expect_true, wait_until

STEP_S = 3600
AWAY_NS = 50_000_000  # as far as a span may be from the system clock
BLUR_NS = 400_000_000  # around a step the two clocks of a request are not the same one


def set_clock_back_and_forth(call):
    """Calls in a row for six seconds, with the clock an hour ahead for the two in the middle. Returns the steps."""
    steps = []
    begin = time.monotonic()
    for shift in (STEP_S, -STEP_S, 0):
        while time.monotonic() - begin < 2 * (len(steps) + 1):
            call()
            time.sleep(0.01)
        if shift:
            steps.append(time.time_ns())
            time.clock_settime(time.CLOCK_REALTIME, time.time() + shift)
            steps[-1:] = [steps[-1], time.time_ns()]
    return steps


def case_clock_step(run):
    """A step of the clock by an hour and back: spans stay within 50 ms of it, durations as they were."""
    app = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon()
    connection = http.client.HTTPConnection("127.0.0.1", app.port)
    calls = {}

    def call():
        path = f"/x/r-{len(calls)}"
        begin, begin_monotonic = time.time_ns(), time.monotonic_ns()
        connection.request("GET", path)
        connection.getresponse().read()
        calls[path] = (begin, time.monotonic_ns() - begin_monotonic)

    steps = set_clock_back_and_forth(call)
    time.sleep(1.5)
    spans = {span["attributes"]["url.path"]: span for span in daemon.finish() if span["pid"] == app.pid}
    expect(spans.keys() == calls.keys(), f"{len(calls)} calls, {len(spans)} spans")
    judged = 0
    for path, (begin, duration) in calls.items():
        span = spans[path]
        lasted = span["end_unix_nano"] - span["start_unix_nano"]
        expect(0 <= lasted <= duration, f"{path}: lasted {lasted} ns of {duration}")
        if any(abs(begin - step) < BLUR_NS for step in steps):
            continue
        away = abs(span["start_unix_nano"] - begin)
        expect(away < duration + AWAY_NS, f"{path}: {away / 1e9:.3f} s from the system clock")
        judged += 1
    expect(judged > 50, f"only {judged} calls judged")
    return f"{judged} of {len(calls)} spans judged by the clock, all durations right"


class Shortage:
    """Of memory for TCP: as long as it lasts more is in use than there may be (above the third number of tcp_mem)."""

    LIMITS = pathlib.Path("/proc/sys/net/ipv4/tcp_mem")

    def __init__(self):
        self.usual = self.LIMITS.read_text(encoding="ascii")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.ends = []
            for _ in range(8):  # what is sent and never read
                ours = socket.create_connection(listener.getsockname())
                self.ends += [ours, listener.accept()[0]]
                ours.setblocking(False)
                try:
                    while ours.send(bytes(65536)):
                        pass
                except BlockingIOError:
                    pass

    @staticmethod
    def pages():
        sockstat = pathlib.Path("/proc/net/sockstat").read_text(encoding="ascii")
        return int(next(line for line in sockstat.splitlines() if line.startswith("TCP:")).split()[-1])

    def begin(self):
        n = self.pages()
        expect(n > 100, f"only {n} pages are in use")
        self.LIMITS.write_text(f"{n // 8} {n // 4} {n // 2}", encoding="ascii")

    def end(self):
        self.LIMITS.write_text(self.usual, encoding="ascii")


def load_with_shortage(run, front, shortage, name, during=lambda: None):
    """Requests for twelve seconds, with a shortage for the five in the middle; returns how long the longest took."""
    load = run.load_start(front.port, 1200, 8, name=name, prefix=f"/{name}/", id=f"{name}-{{n}}", rate=100)
    time.sleep(3)
    shortage.begin()
    time.sleep(5)
    during()
    shortage.end()
    expect(load.wait(60) == 0, f"load: {load.stdout.strip()}")
    return max(record["end"] - record["start"] for record in judge.read_log(load.log).values()) / 1e9


def case_tcp_memory(run):
    """More memory in use for TCP than there may be: no request waits for it as long as it lasts, and later the header is
    in all again."""
    front, back = go_chain(run)
    shortage = Shortage()

    def is_suspended():
        expect("short of memory" in (propagation(daemon) or ""), f"in the shortage: {propagation(daemon)}")

    try:
        alone = load_with_shortage(run, front, shortage, "alone")
        daemon = run.daemon(config=run.config(ON))
        need_propagation(daemon)
        traced = load_with_shortage(run, front, shortage, "traced", is_suspended)
    finally:
        shortage.end()
    # found within 0.2 s, and whoever waits is told in the next 1 s; the rest is for a machine that is slow
    expect(traced < alone + 3, f"{alone:.3f} s without the daemon, {traced:.3f} s with it")
    wait_until(lambda: propagation(daemon) is None, 20, "connections that are taken in again")
    wait_for_sockets(daemon, front, back.port)
    before = daemon.counters()
    run.load(front.port, 200, 8, name="later", prefix="/later/", id="later-{n}")
    counters = daemon.counters()
    lines = counters["inserted"] - before["inserted"]
    expect(before["propagation_suspended"] == 1, f"suspended {before['propagation_suspended']} times")
    expect(before["inserted"] > 100 and lines == 200, f"{before['inserted']} lines before, {lines} of 200 later")
    return f"{alone:.3f} s without the daemon, {traced:.3f} s with it; {counters['inserted']} lines"


def case_insert_group_new(run):
    """A cgroup v2 at its memory limit: requests with the header take no longer than without the daemon."""
    return cases_insert_memory.group_new(run)


def lock_down(level):
    """To 'integrity' or 'confidentiality', for good."""
    path = pathlib.Path("/sys/kernel/security/lockdown")
    expect(path.exists(), "this kernel has no lockdown, or securityfs is not mounted")
    if f"[{level}]" not in path.read_text(encoding="ascii"):
        path.write_text(level, encoding="ascii")
    expect(f"[{level}]" in path.read_text(encoding="ascii"), f"not locked down to {level}")


def features_off(daemon):
    """What the daemon says that it does not do, each with the reason."""
    features = json.loads(daemon.control("status", "--json"))["features"]
    return {one["name"]: one["reason"] for one in features if not one["available"]}


def case_descriptors_hard(run):
    """A hard limit that is lower than 'limits.processes' may need: raised as far as it is needed. Root of a host
    may do so, root of a container as a rule not."""
    before = ["sh", "-c", "ulimit -n 256 && exec \"$@\"", "sh"]
    daemon = Daemon(run, run.config("limits: {processes: 1000}\n"), before=before).wait_ready()
    limit = soft_limit(daemon.pid)
    expect(4_000 < limit < 10_000, f"the limit is {limit}")
    daemon.end()
    return f"from 256 to {limit}"


def case_lockdown_integrity(run):
    """A kernel locked down to integrity, which forbids nothing that the daemon does: the Go chain's spans are right,
    each request has its header, and no more is off than before. For good, so it comes behind all others but one."""
    front, back = go_chain(run)
    daemon = run.daemon(config=run.config(ON), name="unlocked")
    need_propagation(daemon)
    unlocked = features_off(daemon)
    daemon.end()
    lock_down("integrity")
    daemon = run.daemon(config=run.config(ON))
    need_propagation(daemon)
    locked = features_off(daemon)
    expect(locked == unlocked, f"off before: {unlocked}; since: {locked}")
    run.load(front.port, 300, 8)
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids()]
    text = expect_true(spans, judge.expand(chain_hops(front, back), run.read_logs()))
    n = expect_headers(run, spans)
    expect(n == 300, f"{n} requests with a header")
    return f"{n} headers; {text}"


def case_lockdown_confidentiality(run):
    """A kernel locked down to confidentiality: one line that says so. For good, so this case is the last."""
    lock_down("confidentiality")
    status, out, err = daemon_once(run, "--print=json", "--config", "/dev/null")
    expect(status not in (0, None) and not out, f"status {status}, standard output '{out}'")
    line = one_line(err)
    expect("locked down" in line, f"the line does not say why: '{line}'")
    return json.dumps(line)
