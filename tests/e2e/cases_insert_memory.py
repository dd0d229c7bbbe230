"""Insertion where memory is short: in groups of processes that have used up theirs (cgroups of both versions), at the
daemon's start and at its end."""

import contextlib
import ctypes
import itertools
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import time

import apps
import judge
from cases_chains import chain_hops, go_chain, need
from cases_insert import ON, need_propagation, process_state, propagation, sockets_inside, wait_for_sockets
from cases_insert_hand import Peer
from containers import cgroup_root
from harness import BIN, Daemon, Skip, expect, expect_true, wait_until

# In the group as well: sends what nobody reads, and reads files, whose pages count as the group's.
HOG = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
ends = []
for _ in range(4):
    ours = socket.create_connection(listener.getsockname())
    ends += [ours, listener.accept()[0]]
    ours.setblocking(False)
print("ready", flush=True)
for line in sys.stdin:
    for ours in ends[::2]:
        try:
            while ours.send(bytes(65536)):
                pass
        except BlockingIOError:
            pass
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            while file.read(1 << 20):
                pass
    print("full", flush=True)
"""
MIB = 1 << 20


class Group:
    """A group of processes of its own."""

    def __init__(self, root, name):
        self.root, self.path = root, root / f"tsunagi-{name}-{os.getpid()}"
        self.path.mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in (self.path / "cgroup.procs").read_text(encoding="ascii").split():
            with contextlib.suppress(ProcessLookupError):
                (self.root / "cgroup.procs").write_text(pid, encoding="ascii")
        self.path.rmdir()

    def read(self, name):
        return (self.path / name).read_text(encoding="ascii")

    def write(self, name, value):
        (self.path / name).write_text(str(value), encoding="ascii")

    def inside(self):
        return ["sh", "-c", f'echo $$ >{self.path}/cgroup.procs; exec "$@"', "sh"]


def old_group(name):
    """Of the first version, which can limit the memory for TCP by itself."""
    root = pathlib.Path("/sys/fs/cgroup/memory")
    if not (root / "memory.kmem.tcp.limit_in_bytes").exists():
        raise Skip("no memory controller of the first version here")
    return Group(root, name)


def new_group(name):
    root = cgroup_root()
    if "memory" not in (root / "cgroup.controllers").read_text(encoding="ascii").split():
        raise Skip("no memory controller of the second version here")
    (root / "cgroup.subtree_control").write_text("+memory", encoding="ascii")
    return Group(root, name)


class Services:
    """A front in a group, before a back that is in none, and who uses the group's memory."""

    def __init__(self, run, group):
        self.run, self.loads = run, 0
        program = apps.go_chain()
        back = run.app("back", [program, "back", "{port}", "{log}"])
        self.front = run.app("front", [*group.inside(), program, "front", "{port}", "{log}", back.port])
        self.group, self.hog = group, None

    def use_memory(self):
        if not self.hog:
            files = [path for path in sorted(BIN.iterdir()) if path.is_file()]
            self.hog = self.run.start("hog", [*self.group.inside(), sys.executable, "-c", HOG, *files],
                                      stdin=subprocess.PIPE)
        self.hog.command("fill", 60)

    def longest(self, begin=lambda: None):
        """Requests for five seconds, after two of which something else begins; returns how long the longest took."""
        self.loads += 1
        name = f"load{self.loads}"
        load = self.run.load_start(self.front.port, 500, 8, name=name, prefix=f"/{name}/", id=f"{name}-{{n}}", rate=100)
        time.sleep(2)
        begin()
        expect(load.wait(30) == 0, f"{name}: {load.stdout.strip()}")
        return max(record["end"] - record["start"] for record in judge.read_log(load.log).values()) / 1e9

    def stop(self):
        """All that is in the group."""
        self.hog.kill()
        self.front.stop()


def case_insert_group_old(run):
    """A limit for TCP of a group's own, which is set while it is traced, and holds for connections from then on: no
    header any more, and no request waits when it is used up."""
    need("go")
    with old_group("old") as group:
        services = Services(run, group)
        daemon = run.daemon(config=run.config(ON))
        need_propagation(daemon)
        services.longest()
        expect(daemon.counters()["inserted"] == 500, f"{daemon.counters()['inserted']} lines of 500")
        group.write("memory.kmem.tcp.limit_in_bytes", 2 * MIB)
        wait_until(lambda: daemon.counters()["propagation_limited"] == 1, 10, "a limit that is seen")
        took = services.longest(services.use_memory)
        used = int(group.read("memory.kmem.tcp.usage_in_bytes"))
        expect(used >= 2 * MIB, f"only {used} bytes of the limit are in use")
        expect(daemon.counters()["inserted"] == 500, "lines in spite of the limit")
        expect(took < 2, f"a request took {took:.1f} s")
        services.stop()
    return f"{took:.3f} s at most with all of the limit in use"


def group_new(run):
    """For kernels with the memory controller's second version: a group that has used up its memory, and gets more only
    where pages of files are given up."""
    need("go")
    with new_group("new") as group:
        services = Services(run, group)
        group.write("memory.max", int(group.read("memory.current")) + 24 * MIB)
        services.use_memory()
        alone = services.longest(services.use_memory)
        daemon = run.daemon(config=run.config(ON))
        need_propagation(daemon)
        traced = services.longest(services.use_memory)
        events = dict(line.split() for line in group.read("memory.events").splitlines())
        expect(int(events["max"]) > 0 and events["oom_kill"] == "0", f"not at the limit, or above: {events}")
        expect(traced < alone + 2, f"{alone:.3f} s without the daemon, {traced:.3f} s with it")
        lines = daemon.counters()["inserted"]
        expect(lines > 450, f"{lines} lines of 500")
        services.stop()
    return f"{alone:.3f} s without the daemon, {traced:.3f} s with it; {lines} lines"


def case_insert_short_start(run):
    """TCP is short of memory when the daemon starts, as far as it is told: nothing is tried and nothing taken in; when
    there is enough the self-test is made, and the header is in all requests, also on connections that are there."""
    need("go", "unshare", "ss", "bpftool")
    front, back = go_chain(run)
    limits = run.directory / "tcp_mem"
    limits.write_text("0 0 0\n", encoding="ascii")
    shown = ("unshare", "--mount", "--propagation", "private", "/bin/sh", "-c",
             f'mount --bind {limits} /proc/sys/net/ipv4/tcp_mem && exec "$@"', "sh")
    daemon = Daemon(run, run.config(ON), before=shown).wait_ready()
    need_propagation(daemon)
    expect("short of memory" in (propagation(daemon) or ""), f"at the start: {propagation(daemon)}")
    expect(json.loads(daemon.control("doctor", "--json"))["checks"] == [], "a self-test without memory")
    run.load(front.port, 100, 8, name="short", prefix="/short/", id="short-{n}")
    limits.write_text("100000000 100000000 100000000\n", encoding="ascii")
    wait_until(lambda: propagation(daemon) is None, 30, "connections that are taken in")
    checks = json.loads(daemon.control("doctor", "--json"))["checks"]
    failed = [check["name"] for check in checks if not check["passed"] and check["matters"]]
    expect(len(checks) == 7 and not failed, f"{len(checks)} checks, failed: {failed}")
    wait_for_sockets(daemon, front, back.port)
    run.load(front.port, 100, 8, name="later", prefix="/later/", id="later-{n}")
    counters = daemon.counters()
    expect(counters["propagation_suspended"] == 1, "not suspended once")
    expect(counters["spans_no_process"] == 0, f"{counters['spans_no_process']} spans of the self-test")
    run.stop_apps()
    lines = {"short": 0, "later": 0}
    for (_, request), record in run.read_logs()["back"].items():
        lines[request.split("-")[0]] += bool(record["headers"])
    expect(lines == {"short": 0, "later": 100}, f"headers: {lines}")
    return f"headers: {lines}"


@contextlib.contextmanager
def stalled(daemon):
    """The daemon's first thread, which has its loop, stands still: as in a pass over a /proc that takes seconds."""
    trace = ctypes.CDLL(None, use_errno=True).ptrace
    trace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    seize, interrupt, detach = 0x4206, 0x4207, 17
    for request in (seize, interrupt):
        expect(trace(request, daemon.pid, None, None) == 0, f"ptrace: {os.strerror(ctypes.get_errno())}")
    os.waitpid(daemon.pid, 0)
    try:
        yield
    finally:
        expect(trace(detach, daemon.pid, None, None) == 0, f"ptrace: {os.strerror(ctypes.get_errno())}")


def case_insert_stalled(run):
    """TCP is short of memory while the daemon's loop is busy: the connections are out of the map all the same, and in
    it again when there is enough."""
    need("go", "unshare", "ss", "bpftool")
    front, back = go_chain(run)
    limits = run.directory / "tcp_mem"
    limits.write_text("100000000 100000000 100000000\n", encoding="ascii")
    shown = ("unshare", "--mount", "--propagation", "private", "/bin/sh", "-c",
             f'mount --bind {limits} /proc/sys/net/ipv4/tcp_mem && exec "$@"', "sh")
    daemon = Daemon(run, run.config(ON), before=shown).wait_ready()
    need_propagation(daemon)
    run.load(front.port, 200, 8, name="before", prefix="/before/", id="before-{n}")
    inside = len(sockets_inside(daemon))
    expect(inside, "no connection is in the map")
    for _ in range(3):
        with stalled(daemon):
            begin = time.monotonic()
            limits.write_text("0 0 0\n", encoding="ascii")
            wait_until(lambda: not sockets_inside(daemon), 5, "a map that is empty")
            took = time.monotonic() - begin
            run.load(front.port, 20, 8, name="short", prefix="/short/", id="short-{n}")
            expect(not sockets_inside(daemon), "connections were taken in again")
            # once over, and short again, before the loop has time
            limits.write_text("100000000 100000000 100000000\n", encoding="ascii")
            time.sleep(0.5)
        expect("short of memory" in (propagation(daemon) or ""), f"in the shortage: {propagation(daemon)}")
        wait_until(lambda: propagation(daemon) is None, 30, "connections that are taken in")
        expect(took < 1, f"{took:.3f} s until the connections were out")
        expect(wait_for_sockets(daemon, front, back.port), "no connection has stayed")
        before = daemon.counters()["inserted"]
        run.load(front.port, 100, 8, name="later", prefix="/later/", id="later-{n}")
        lines = daemon.counters()["inserted"] - before
        expect(lines == 100, f"{lines} lines of 100")
    expect(daemon.counters()["propagation_suspended"] == 3, "not suspended three times")
    return f"{inside} connections out after {took:.3f} s"


def case_insert_no_cgroup2(run):
    """Where no cgroup2 file system is mounted nothing is inserted, and it says why; everything else is as ever."""
    need("go", "unshare")
    front, back = go_chain(run)
    hidden = ("unshare", "--mount", "--propagation", "private", "/bin/sh", "-c",
              "sed -n 's/^[^ ]* \\([^ ]*\\) cgroup2 .*/\\1/p' /proc/mounts | while read -r at; do umount -l \"$at\"; done; "
              'exec "$@"', "sh")
    daemon = Daemon(run, run.config(), before=hidden).wait_ready()
    wait_until(lambda: "other hosts: no cgroup2 file system is mounted" in daemon.stderr, 20, "why nothing is inserted")
    features = json.loads(daemon.control("doctor", "--json"))["features"]
    reason = next(one["reason"] for one in features if one["name"] == "traceparent in requests of Go processes")
    expect("no cgroup2" in (reason or ""), f"doctor: {reason}")
    run.load(front.port, 500, 8)
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids()]
    logs = run.read_logs()
    headers = [record["headers"] for record in logs["back"].values() if record["headers"]]
    expect(not headers, f"{len(headers)} requests with a header")
    return expect_true(spans, judge.expand(chain_hops(front, back), logs))


def case_insert_short_stop(run):
    """While the daemon ends it sends what it has, and no connection is in its map any more."""
    need("go")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = run.config(ON, endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}")
        daemon = run.daemon(config=config)
        peer = Peer()
        client = run.start("client", [apps.go_hand(), peer.port, run.apps / "none"], stdin=subprocess.PIPE, cwd=run.apps)
        wait_until(lambda: process_state(daemon, client.pid) == "traced", 20, "a client that is traced")
        need_propagation(daemon)
        for i in range(3):
            client.command(f"request /before-{i}")
            peer.newest(f"/before-{i}", 1)
        time.sleep(0.5)
        os.kill(daemon.pid, signal.SIGTERM)
        time.sleep(0.3)
        client.command("request /ending")
        expect(daemon.running(), "the daemon has ended: nothing was asked")
        peer.newest("/ending", 0)
        expect(daemon.stop() == 0, "not a clean end")
    return "plain while the daemon ends"


def case_insert_cgroups(run):
    """A daemon with a namespace of cgroups of its own, as containers have: it takes in no connection that is made in
    another group, and status says so."""
    need("go", "unshare", "ss", "bpftool")

    def every_group(daemon):
        features = json.loads(daemon.control("status", "--json"))["features"]
        return next(one["reason"] for one in features if one["name"] == "traceparent in requests from every cgroup")

    root = cgroup_root()
    front, back = go_chain(run)
    with Group(root, "own") as group:
        inside = [*group.inside(), "unshare", "--cgroup", "--mount", "--propagation", "private", "/bin/sh", "-c",
                  f'umount -l {root} && mount -t cgroup2 none {root} && exec "$@"', "sh"]
        daemon = Daemon(run, run.config(ON), before=inside).wait_ready()
        need_propagation(daemon)
        expect("its own container's cgroups only" in (every_group(daemon) or ""), f"said: {every_group(daemon)}")
        run.load(front.port, 50, 4, name="hidden", prefix="/hidden/", id="hidden-{n}")
        expect(daemon.counters()["inserted"] == 0, f"{daemon.counters()['inserted']} headers")
        daemon.end()
    daemon = run.daemon(config=run.config(ON), name="outside", runtime="run-outside")
    need_propagation(daemon)
    expect(every_group(daemon) is None, f"in the host's own: {every_group(daemon)}")
    wait_for_sockets(daemon, front, back.port)
    run.load(front.port, 50, 4, name="seen", prefix="/seen/", id="seen-{n}")
    lines = daemon.counters()["inserted"]
    expect(lines >= 50 - 2 * 4, f"only {lines} headers")
    return every_group(daemon) or f"{lines} headers from outside"


def lowest_free(process):
    """The number that the next file of a process gets."""
    numbers = {int(name) for name in os.listdir(f"/proc/{process.pid}/fd")}
    return next(n for n in itertools.count() if n not in numbers)


def case_insert_descriptors(run):
    """No file descriptor is left in the daemon: that is no shortage of TCP's memory, and requests have their header."""
    need("go")
    front, _ = go_chain(run)
    daemon = run.daemon(config=run.config(ON))
    need_propagation(daemon)
    run.load(front.port, 50, 4, name="before", prefix="/before/", id="before-{n}")
    limits = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    # now and then it opens a file for a moment
    lowest = min(lowest_free(daemon) for _ in range(10))
    before = daemon.counters()["inserted"]
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (lowest, limits[1]))
    time.sleep(1)
    run.load(front.port, 100, 4, name="short", prefix="/short/", id="short-{n}")
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)
    expect(propagation(daemon) is None, f"behind it: {propagation(daemon)}")
    counters = daemon.counters()
    expect(counters["propagation_suspended"] == 0, "taken for a shortage of memory")
    expect(counters["inserted"] - before == 100, f"{counters['inserted'] - before} lines of 100")
    expect("short of memory" not in daemon.stderr, f"said: {daemon.stderr}")
    return "100 headers with no descriptor left"
