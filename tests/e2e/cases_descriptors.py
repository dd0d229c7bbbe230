"""File descriptors of the daemon: each probe in a Go program takes one for as long as it is there.

Hundreds of copies of the Go chain are as many executables, each with a link of its own.
"""

import collections
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import threading
import time

import apps
from cases_chains import need
from cases_faults import Sink, never_answer
from cases_images import facts_of, hops_of, links_of, status_of
from cases_insert import need_propagation
from cases_jvm_attach import AUTO, back_end, frozen, loaders_of
from harness import PATIENCE, ROOT, Daemon, Skip, expect, expect_true, scaled, wait_until
from judge import Hop, expand, span_path
from wire import Wire

RESERVE = 80  # of daemon/descriptors.c,
LOADED = 16   # and of it what insertion loads while probes are made
SCANNING = 8  # at most so many are open for the first pass over /proc; a second later they are free for probes
ATTACHED_WITHIN = 20  # seconds, for all of them
GAP_MAX = 5    # seconds without spans, over a restart
START_MAX = 1  # of them; on a busy machine it takes longer, and tests/bench holds it to that
SHORT = "no file descriptors left"


def start_fronts(run, n, *mode):
    """As many different executables, which call one back end."""
    need("go")
    back = run.app("back", [apps.go_chain(), "back", "{port}", "{log}"])
    fronts, env = [], {**os.environ, "GOMAXPROCS": "1"}
    for i in range(n):
        program = shutil.copy(apps.go_chain(), run.apps / f"program{i}")
        fronts.append(run.app(f"front{i}", [program, "front", "{port}", "{log}", back.port, *mode], ready=None, env=env))
    for front in fronts:
        front.wait_for("ready")
    return back, fronts


def limited(run, limit, drops=False):
    """A daemon behind 'ulimit'; 'drops': it may not raise the hard limit either."""
    need("setpriv")
    before = ["sh", "-c", f"ulimit -l unlimited 2>/dev/null; ulimit {'-n' if drops else '-Sn'} {limit} && exec \"$@\"", "sh"]
    if drops:
        before += ["setpriv", "--bounding-set", "-sys_resource", "--inh-caps", "-sys_resource"]
    return Daemon(run, run.config(), before=before)


def load_each(run, fronts, requests, prefix="load"):
    """One front after the other: the ids tell whose requests they are."""
    for front in fronts:
        run.load(front.port, requests, 1, name=f"{prefix}-{front.name}", id=front.name)


def judge_each(run, daemon, fronts, back, without_parents=()):
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids()]
    logs = run.read_logs()
    expected = []
    for front in fronts:
        expected += expand(hops_of(front, back, front in without_parents), logs, load=f"load-{front.name}")
    return spans, expect_true(spans, expected, least=len(expected))


def soft_limit(pid):
    return int(re.search(r"Max open files\s+(\d+)", pathlib.Path(f"/proc/{pid}/limits").read_text())[1])


def reasons_of(daemon):
    """Why the calls of a process have no parents, by pid."""
    return {one["pid"]: one["no_parents"] for one in json.loads(daemon.control("processes", "--json"))["processes"]}


def case_descriptors_raised(run):
    """Many different Go programs under a soft limit that is too low for them: it is raised, all are probed in time."""
    n = scaled(300, 120)
    back, fronts = start_fronts(run, n)
    limit = min(256, n + 40)  # the daemon itself has more than forty open
    begin = time.monotonic()
    daemon = limited(run, limit).wait_ready(ATTACHED_WITHIN)
    wait_until(lambda: status_of(daemon)["go"]["links"] == n + 1, ATTACHED_WITHIN, f"{n + 1} links in executables")
    took = time.monotonic() - begin
    expect(took < ATTACHED_WITHIN * PATIENCE, f"all were attached after {took:.1f} s")
    status = status_of(daemon)
    expect(status["processes"]["traced"] == n + 1, f"{status['processes']['traced']} of {n + 1} processes traced")
    expect(len(links_of(daemon)) == n + 1, f"{len(links_of(daemon))} links among its descriptors")
    expect(soft_limit(daemon.pid) > limit, f"the limit is {soft_limit(daemon.pid)}")
    counters = daemon.counters()
    expect((counters["go_probes_no_descriptors"], counters["processes_unread"]) == (0, 0), f"counted {counters}")
    expect(len(daemon.stderr.splitlines()) == 1, f"said: {daemon.stderr}")
    load_each(run, fronts, 3)
    _, outcome = judge_each(run, daemon, fronts, back)
    return f"{outcome}; {n} programs after {took:.1f} s"


def own_descriptors(run):
    """How many a daemon has open beside the probes in executables and the leases on these."""
    daemon = run.daemon(name="idle", runtime="idle")
    with contextlib.suppress(Skip):
        need_propagation(daemon)
    facts = facts_of(daemon)
    n = len(facts) - len(links_of(daemon)) - sum("LEASE" in one.get("lock", "") for one in facts)
    daemon.end()
    return n


def case_descriptors_short(run):
    """A hard limit that is too low: some have no probes, which is counted and said; all have spans, and status answers."""
    n = scaled(90, 60)
    back, fronts = start_fronts(run, n)
    limit = own_descriptors(run) + RESERVE + 2 * (n // 3)  # a link and a lease for each
    daemon = limited(run, limit, drops=True).wait_ready()
    expect(soft_limit(daemon.pid) == limit, f"the limit is {soft_limit(daemon.pid)}, expected {limit}")
    time.sleep(2 * PATIENCE)
    warned = [line for line in daemon.stderr.splitlines() if "LimitNOFILE" in line]
    expect(len(warned) == 1 and f"At most {limit} files may be open" in warned[0], f"warned: {warned}")
    status = status_of(daemon)
    expect(status["processes"]["traced"] == n + 1, f"{status['processes']['traced']} of {n + 1} processes traced")
    expect(status["memory"]["rss_bytes"] > 0 and status["memory"]["map_bytes"] > 0, f"status says {status['memory']}")
    links = len(links_of(daemon))
    # a link is two files before Linux 6.6
    expect(n // 6 - SCANNING <= links <= n // 3 + SCANNING, f"{links} links with room for about {n // 3}")
    expect(limit - len(facts_of(daemon)) >= RESERVE - LOADED, f"{len(facts_of(daemon))} of {limit} are open")
    reasons = reasons_of(daemon)
    short = [front for front in fronts if SHORT in (reasons[front.pid] or "")]
    expect(len(short) + links == n + 1 and not reasons[back.pid], f"{len(short)} say that they are short, {links} links")
    counted = daemon.counters()
    expect(counted["processes_unread"] == 0, f"{counted['processes_unread']} looks at processes failed")
    expect(len(short) <= counted["go_probes_no_descriptors"] <= len(short) + SCANNING,
           f"{counted['go_probes_no_descriptors']} counted, {len(short)} short")
    load_each(run, fronts, 3)
    for front in [front for front in fronts if front not in short][:5]:
        front.stop()
    wait_until(lambda: sum(SHORT in (why or "") for why in reasons_of(daemon).values()) == len(short) - 5, 10,
               "five others probed when five have ended")
    spans, outcome = judge_each(run, daemon, fronts, back, short)
    absent = [span for span in spans if span["kind"] == "client" and not span.get("parent_span_id")]
    expect(len(absent) == 3 * len(short), f"{len(absent)} calls have no parent, expected {3 * len(short)}")
    return f"{outcome}; {links} probed, {len(short)} short under a limit of {limit}"


def case_descriptors_none(run):
    """None left at all while a program starts: the look at it fails, is counted, and is taken again when there are some."""
    daemon = run.daemon()
    limits = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    # what it has for good: now and then it opens a file for a moment
    open_files = min(len(facts_of(daemon)) for _ in range(10))
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (open_files, limits[1]))
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    time.sleep(0.5)
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)
    wait_until(lambda: status_of(daemon)["processes"]["traced"] == 1, 15, "the program traced")
    unread = daemon.counters()["processes_unread"]
    expect(unread > 0, "no look failed")
    run.load(back.port, 50, 4)
    time.sleep(1)
    run.stop_apps()
    expected = expand([Hop("server", "/x/{id}", outer="load", inner="back", pid=back.pid)], run.read_logs())
    return f"{expect_true(daemon.finish(), expected, least=50)}; {unread} looks failed"


def time_to_stop():
    return int(re.search(r"TimeoutStopSec=(\d+)s", (ROOT / "systemd/tsunagi.service").read_text())[1])


class Asking:
    """Asks a service again and again from a thread of its own, on a new connection each time."""

    def __init__(self, port):
        self.port, self.records, self.is_over = port, {}, threading.Event()
        self.thread = threading.Thread(target=self.ask, daemon=True)
        self.thread.start()

    def ask(self):
        i = 0
        while not self.is_over.wait(0.05):
            with Wire(self.port, self.records) as wire:
                wire.request(f"/asking/{i}")
            i += 1

    def end(self):
        """The requests' paths and when they began, in their order."""
        self.is_over.set()
        self.thread.join()
        return [(record["path"], record["start"]) for record in self.records.values()]


def longest_gap(asked, seen):
    """Seconds, from the beginning of the first request of those without a span to that of the first one with one."""
    longest, since = 0, None
    for path, start in asked:
        if path not in seen:
            since = since or start
        elif since:
            longest, since = max(longest, start - since), None
    return max(longest, asked[-1][1] - since if since else 0) / 1e9


def case_descriptors_stop(run):
    """Many probed programs, a JVM that does not answer, a collector that never answers: the end takes less than half of
    what systemd gives it; the next daemon is there at once, and no span is made twice."""
    need("java", "javac")
    n = scaled(300, 120)
    back, fronts = start_fronts(run, n, "child")
    jvm = back_end(run, "frozen")
    sink = Sink(never_answer)
    config = run.config(AUTO, endpoint=f"http://127.0.0.1:{sink.port}")
    with frozen(jvm):
        daemon = run.daemon(config)
        wait_until(lambda: status_of(daemon)["processes"]["traced"] == n + 2, ATTACHED_WITHIN, "all processes traced")
        load_each(run, fronts, 1)
        links = 4 * n + 1  # the back end has no goroutine that calls
        wait_until(lambda: status_of(daemon)["go"]["links"] == links, ATTACHED_WITHIN, f"{links} links in executables")
        wait_until(lambda: loaders_of(jvm), ATTACHED_WITHIN, "the order for the JVM")
        asking = Asking(back.port)
        load_each(run, fronts[:5], 3, "rest")
        begin = time.monotonic()
        status = daemon.stop(time_to_stop())
        took = time.monotonic() - begin
        expect(status == 0, f"tsunagid exited with {status}: {daemon.stderr}")
        expect(took < time_to_stop() / 2 * PATIENCE, f"the end took {took:.1f} s of {time_to_stop()}")
        expect("Cannot send" in daemon.stderr, f"said: {daemon.stderr}")
        expect(back.running() and all(front.running() for front in fronts), "a program has ended")
        later = run.daemon(run.config(AUTO), name="later")
        time.sleep(2)
        asked = asking.end()
    sink.close()
    time.sleep(1.2)
    spans = [span_path(span) for span in [*daemon.spans(), *later.finish()] if span["pid"] == back.pid]
    twice = [path for path, times in collections.Counter(spans).items() if times > 1 and path.startswith("/asking/")]
    expect(not twice, f"spans made twice: {twice[:3]}")
    gap = longest_gap(asked, set(spans))
    start = (later.ready_ns - later.spawned_ns) / 1e9
    what = f"no span for {gap:.1f} s of {len(asked)} requests; the end took {took:.1f} s, the next start {start:.1f} s"
    expect(gap < GAP_MAX * PATIENCE + max(0, start - START_MAX), what)
    return f"{links} links gone; {what}"
