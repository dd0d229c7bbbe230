"""Requests of Go services that carry traceparent to whoever answers them (propagate: on, by default)."""

import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import apps
from cases_chains import chain_hops, go_chain, need
from cases_go import judge_warmed, warm
from harness import Failure, Skip, expect, expect_true, scaled, tail, wait_until
from judge import expand, span_path
from networks import Network

ON = "propagate: on\n"
OFF = "propagate: off\n"


def propagation(daemon):
    """Why it is not done; None if it is."""
    features = json.loads(daemon.control("status", "--json"))["features"]
    return next(one["reason"] for one in features if one["name"] == "traceparent in requests of Go processes")


def need_propagation(daemon):
    """Until it is there, which takes a Go process. The kernel here may refuse it; then the daemon has said why."""
    wait_until(lambda: not (propagation(daemon) or "").startswith(("not loaded", "loading")), 20, "insertion, or why not")
    refusal = re.search("will not carry 'traceparent' to other hosts: (.*)", daemon.stderr)
    if refusal:
        raise Skip(f"refused: {refusal.group(1)}")


def header_of(span, flags="03"):
    """What a request that this client span is of must have been sent with; flags are those that its trace came with."""
    return f"00-{span['trace_id']}-{span['span_id']}-{flags}"


def expect_headers(run, spans, may_lack=False):
    """Each request that the back end has logged had one header, which is its client span's. Returns how many did."""
    clients = {span_path(span): span for span in spans if span["kind"] == "client"}
    answered = [record for (role, _), record in run.read_logs()["back"].items() if role == "server"]
    wrong = []
    lacking = 0
    for record in answered:
        span = clients.get(record["path"])
        if not record["headers"]:
            lacking += 1
        elif not span or record["headers"] != header_of(span):
            wrong.append((record["path"], record["headers"], span and header_of(span)))
    expect(not wrong, f"{len(wrong)} headers are not that of the client span: {wrong[:3]}")
    expect(may_lack or not lacking, f"{lacking} of {len(answered)} requests had no header")
    return len(answered) - lacking


def insert_chain(run, requests, connections, address="127.0.0.1"):
    need("go")
    program = apps.go_chain()
    back = run.app("back", [program, "back", f"{address}:{{port}}", "{log}"])
    front = run.app("front", [program, "front", "{port}", "{log}", f"{address}:{back.port}"])
    daemon = run.daemon()  # with what is the default
    need_propagation(daemon)
    run.load(front.port, requests, connections)
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids()]
    n = expect_headers(run, spans)
    text = expect_true(spans, expand(chain_hops(front, back), run.read_logs()))
    return f"{n} headers; {text}"


def case_insert_chain(run):
    """The Go chain, with propagation as it is by default: each request has one header, that of its client span, and the join agrees."""
    return insert_chain(run, scaled(10_000), 64)


def case_insert_few(run):
    """The same for slow machines, over IPv6: 300 requests at 8 connections."""
    return insert_chain(run, 300, 8, "[::1]")


def insert_warmed(run, mode):
    need("go")
    front, back = go_chain(run, [mode])
    daemon = run.daemon(config=run.config(ON))
    need_propagation(daemon)
    warm(front.port)
    run.load(front.port, scaled(2_000), 16)
    spans, expected = judge_warmed(run, daemon, chain_hops(front, back))
    logs = run.read_logs()["back"]
    headers = {request: record["headers"] for (_, request), record in logs.items() if not request.startswith("warm-")}
    right = {span_path(span).rsplit("/", 1)[1]: header_of(span) for span in spans if span["kind"] == "client"}
    return headers, right, expect_true(spans, expected)


def case_insert_child(run):
    """Goroutines that a request has begun: whom they work for is not certain when they call, so there is no header."""
    headers, _, text = insert_warmed(run, "child")
    sent = [request for request, header in headers.items() if header]
    expect(not sent, f"{len(sent)} of {len(headers)} have a header, {sent[:3]}")
    return f"{len(headers)} without; {text}"


def case_insert_context(run):
    """Calls that carry the request's context, from whatever goroutine: certain, so each has its header."""
    headers, right, text = insert_warmed(run, "context")
    wrong = [request for request, header in headers.items() if header != right.get(request)]
    expect(headers and not wrong, f"{len(wrong)} of {len(headers)} are wrong, {wrong[:3]}")
    return f"{len(headers)} headers; {text}"


LINE = re.compile(rb"traceparent: 00-[0-9a-f]{32}-[0-9a-f]{16}-03\r\n(?=\r\n)")
HEAD = re.compile(rb"(\w+ /\w+/?\d* HTTP/1.1\r\n.*?)\r\n\r\n", re.DOTALL)
OWN = b"00-0af7651916cd43dd8448eb211c80319c-"


def lines_in(sent, read):
    """The lines that were put in, if that is all that differs; else a text that says what does."""
    lines, at = [], 0
    for found in LINE.finditer(read):
        if OWN in found.group():
            continue
        before = read[at:found.start()]
        if sent[:len(before)] != before:
            break
        sent, at = sent[len(before):], found.end()
        lines.append(found.group())
    return lines if sent == read[at:] else f"{len(sent)} bytes are not the {len(read) - at} that were read"


def process_state(daemon, pid):
    for one in json.loads(daemon.control("processes", "--json"))["processes"]:
        if one["pid"] == pid:
            return one["state"]
    return None


class Comparison:
    """Holds the bytes of connections that are over against each other, and removes them."""

    def __init__(self, directory, may_lack=False):
        self.directory, self.may_lack = directory, may_lack
        self.lines, self.connections = 0, 0
        self.ids = set()

    def take(self, closed_before=None):
        """All connections whose client has closed them, or did before a time."""
        for told in sorted(self.directory.glob("lines-*")):
            if closed_before and told.stat().st_mtime > closed_before:
                continue
            name = told.name.removeprefix("lines-")
            sent, read = self.directory / f"sent-{name}", self.directory / f"read-{name}"
            self.compare(name, sent.read_bytes(), read.read_bytes(), told.read_text())
            for path in (told, sent, read):
                path.unlink()

    def compare(self, name, sent, read, told):
        found = lines_in(sent, read)
        expect(not isinstance(found, str), f"connection {name}: {found}")
        least, most = map(int, told.split())
        if not ((self.may_lack or least <= len(found)) and len(found) <= most):
            without = [head.group(1).decode() for head in HEAD.finditer(read) if b"raceparent" not in head.group()]
            raise Failure(f"connection {name}: {len(found)} lines, not {least} to {most}; without: {without[:9]}")
        self.connections += 1
        self.lines += len(found)
        self.ids.update(line[20:65] for line in found)
        expect(len(self.ids) == self.lines, f"{self.lines} lines with {len(self.ids)} different ids")

    def finish(self):
        self.take()
        left = sorted(path.name for path in self.directory.iterdir())
        expect(not left, f"connections that were not closed: {left[:3]}")


def exchange_bytes(run, daemon, rounds, seed=1):
    """A traced client and its peer, which is not; returns the directory with what they have recorded."""
    program = apps.go_bytes()
    directory = run.apps / "bytes"
    directory.mkdir()
    peer = run.app("peer", [program, "peer", "{port}", directory], log=False)
    client = run.start("client", [program, "client", peer.port, directory, rounds, seed], ready=None,
                       stdin=subprocess.PIPE)
    wait_until(lambda: process_state(daemon, client.pid) == "traced", 20, "a client that is traced")
    need_propagation(daemon)
    client.popen.stdin.write(b"\n")
    client.popen.stdin.flush()
    return directory, client


def bytes_config(run, propagation=ON):
    """Of a daemon that traces the client and not its peer."""
    return run.config(propagation).replace("discover:", 'discover:\n  exclude: [{cmd: "*bytes peer*"}]')


def case_insert_bytes(run):
    """Requests of every form, bodies that look like heads, tunnels, TLS, other protocols: nothing differs but the line."""
    need("go")
    daemon = run.daemon(config=bytes_config(run))
    directory, client = exchange_bytes(run, daemon, scaled(20))
    comparison = Comparison(directory)
    while client.running():
        time.sleep(1)
        comparison.take(closed_before=time.time() - 5)
    expect(client.wait(1) == 0, f"the client says: {client.stdout.strip()}")
    comparison.finish()
    counters = daemon.counters()
    expect(counters["inserted"] == comparison.lines, f"{counters['inserted']} lines counted, {comparison.lines} came")
    expect(counters["insert_dropped"] == counters["insert_undone"] == 0, "a line was taken out again")
    return f"{comparison.lines} lines on {comparison.connections} connections; own {counters['insert_own']}"


def objects_of(process, kind, number):
    """Ids of the maps or programs of this type that a process holds: 'kind' is map or prog."""
    ids = set()
    for info in pathlib.Path(f"/proc/{process.pid}/fdinfo").iterdir():
        with contextlib.suppress(OSError):
            facts = dict(line.split(":", 1) for line in info.read_text().splitlines() if ":" in line)
            if facts.get(f"{kind}_type", "").strip() == number:
                ids.add(int(facts[f"{kind}_id"]))
    return ids


def socket_maps(process):
    """Ids of the maps for sockets that a process holds (BPF_MAP_TYPE_SOCKHASH)."""
    return objects_of(process, "map", "18")


def sockets_inside(daemon):
    """Cookies of the connections that are in the daemon's map."""
    maps = socket_maps(daemon)
    expect(len(maps) == 1, f"maps of sockets: {maps}")
    told = subprocess.run(["bpftool", "-j", "map", "dump", "id", str(maps.pop())], capture_output=True, text=True,
                          check=True).stdout
    return {int.from_bytes(bytes(int(b, 16) for b in one["key"]), "little") for one in json.loads(told)}


def wait_for_sockets(daemon, process, port):
    """
    Until as many connections as a process has made to a port are in the map: another thread of the daemon does it. Where
    the kernel has no inet_diag, ss tells no cookies.
    """
    def made():
        told = subprocess.run(["ss", "-tnpH", "state", "established", f"dport = :{port}"], capture_output=True, text=True,
                              check=True).stdout
        return sum(f"pid={process.pid}," in line for line in told.splitlines())

    wait_until(lambda: made() <= len(sockets_inside(daemon)), 10, "connections that are taken in")
    return made()


def cookies_of(process):
    """Of the TCP connections that a process has, by ss."""
    told = subprocess.run(["ss", "-tenpH"], capture_output=True, text=True, check=True).stdout
    return {int(re.search(r"\bsk:(\w+)", line).group(1), 16) for line in told.splitlines()
            if f"pid={process.pid}," in line}


def case_insert_off(run):
    """propagate: off: nothing changes, and there is no map of sockets."""
    need("go")
    daemon = run.daemon(config=bytes_config(run, propagation=OFF))
    directory, client = exchange_bytes(run, daemon, scaled(2))
    status = client.wait(60)
    expect(status == 0, f"the client says: {client.stdout.strip()}")
    comparison = Comparison(directory, may_lack=True)
    comparison.finish()
    expect(comparison.lines == 0, f"{comparison.lines} lines")
    expect(not socket_maps(daemon), "there is a map of sockets")
    return f"{comparison.connections} connections as they were"


def case_insert_others(run):
    """Only what propagates is in the map: not a service that says off, not a process that is not traced."""
    need("go", "ss", "bpftool")
    program = apps.go_chain()
    back = run.app("back", [program, "back", "{port}", "{log}"])
    fronts = {name: run.app(name, [program, "front", "{port}", "{log}", back.port]) for name in ("on", "off", "left")}
    config = f"""propagate: on
services:
  - match: {{port: {fronts["off"].port}}}
    propagate: off
discover:
  include: [{{cmd: "*{run.apps}/*"}}]
  exclude: [{{port: {fronts["left"].port}}}]
"""
    daemon = run.daemon(config=config)
    need_propagation(daemon)
    for name, front in fronts.items():
        run.load(front.port, 200, 8, name=f"load-{name}", prefix=f"/{name}/", id=f"{name}-{{n}}")
    inside = sockets_inside(daemon)
    cookies = {name: cookies_of(process) for name, process in {**fronts, "back": back}.items()}
    expect(inside and inside <= cookies["on"], f"{len(inside - cookies['on'])} of {len(inside)} sockets are not of 'on'")
    for name in ("off", "left", "back"):
        expect(cookies[name], f"no connections of {name}")
    run.stop_apps()
    headers = {}
    for (_, request), record in run.read_logs()["back"].items():
        name = request.split("-")[0]
        headers.setdefault(name, set()).add(bool(record["headers"]))
    expect(headers == {"on": {True}, "off": {False}, "left": {False}}, f"headers: {headers}")
    return f"{len(inside)} sockets in the map"


def case_insert_killed(run):
    """The daemon is killed and started again under load: no request fails, and no line is cut."""
    need("go")
    front, _ = go_chain(run)
    daemon = run.daemon(config=bytes_config(run))
    need_propagation(daemon)
    directory, client = exchange_bytes(run, daemon, scaled(150))
    comparison = Comparison(directory, may_lack=True)
    kills, loaded = 0, 0
    while client.running():
        if kills % 3:  # else it is killed while it loads them
            need_propagation(daemon)
        load = run.load_start(front.port, 6_000, 32, name=f"load{kills}", id=f"{kills}-{{n}}", rate=3000)
        time.sleep(random.uniform(0.2, 0.6))
        expect(load.running(), "the load was over too soon")
        daemon.stop(signal_number=signal.SIGKILL)
        kills += 1
        daemon = run.daemon(config=bytes_config(run), name=f"tsunagid{kills}", runtime=f"run-{kills}")
        expect(load.wait(60) == 0, f"load: {load.stdout.strip()} {tail(load.stderr_path)}")
        loaded += json.loads(load.stdout)["requests"]
        comparison.take(closed_before=time.time() - 5)
    expect(client.wait(1) == 0, f"the client says: {client.stdout.strip()}")
    comparison.finish()
    expect(kills >= scaled(3.4, 3) and comparison.lines > 100, f"only {kills} kills and {comparison.lines} lines")
    return (f"{kills} kills, {loaded} requests, {comparison.lines} lines on {comparison.connections} "
            f"connections that were compared")


def objects_there(kind):
    """Ids of all maps or programs that the kernel has."""
    told = subprocess.run(["bpftool", "-j", kind, "show"], capture_output=True, text=True, check=True).stdout
    return {one["id"] for one in json.loads(told)}


def case_insert_after_kill(run):
    """The daemon is killed: its map of sockets ends with it, so connections that go on are plain ones."""
    need("go", "ss", "bpftool")
    front, back = go_chain(run)
    daemon = run.daemon(config=run.config(ON))
    need_propagation(daemon)
    run.load(front.port, 200, 8)
    inside = sockets_inside(daemon)
    programs, maps = objects_of(daemon, "prog", "16"), socket_maps(daemon)  # 16: BPF_PROG_TYPE_SK_MSG
    expect(inside and programs and maps, "nothing is in the map")
    daemon.stop(signal_number=signal.SIGKILL)
    wait_until(lambda: not programs & objects_there("prog") and not maps & objects_there("map"), 10,
               "the end of the program for messages and of its map")
    run.load(front.port, 200, 8, name="after", id="after-{n}")
    expect(inside & cookies_of(front), f"no connection to port {back.port} went on")
    run.stop_apps()
    late = [request for (_, request), record in run.read_logs()["back"].items()
            if request.startswith("after-") and record["headers"]]
    expect(not late, f"{len(late)} requests behind the daemon's end had a header")
    return f"{len(inside)} connections that went on as plain ones"


def case_insert_late(run):
    """Connections that are older than the daemon: their requests have the header, from the third one on at the latest."""
    need("go", "ss", "bpftool")
    front, back = go_chain(run)
    run.load(front.port, 64, 8, name="before", prefix="/x/", id="before-{n}")
    daemon = run.daemon(config=run.config(ON))
    need_propagation(daemon)
    expect(wait_for_sockets(daemon, front, back.port), "no connection is older than the daemon")
    run.load(front.port, scaled(2_000), 8)
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids()]
    n = expect_headers(run, [span for span in spans if "before-" not in span_path(span)], may_lack=True)
    expect(n >= scaled(2_000) - 64, f"only {n} headers")
    return f"{n} headers"


def case_insert_networks(run):
    """Two networks with a daemon each: one trace across them, by the header alone."""
    need("go", "ip")
    ours, theirs = Network(run, "ours"), Network(run, "theirs")
    ours.connect(theirs, "10.77.3.1/24", "10.77.3.2/24")
    program = apps.go_chain()
    back = run.app("back", [*theirs.inside(), program, "back", "10.77.3.2:9090", "{log}"])
    front = run.app("front", [*ours.inside(), program, "front", "{port}", "{log}", "10.77.3.2:9090"])
    daemons = [run.daemon(config=f'{ON}discover:\n  include: [{{netns: /proc/{one.holder.pid}/ns/net, language: go}}]\n', name=one.name,
                         runtime=f"run-{one.name}")
               for one in (ours, theirs)]
    need_propagation(daemons[0])
    run.load(front.port, scaled(10_000), 16, inside=ours.inside())
    run.stop_apps()
    parts = [[span for span in daemon.finish() if span["pid"] in run.pids()] for daemon in daemons]
    expect({span["pid"] for span in parts[0]} == {front.pid}, "a daemon has traced another network")
    expect({span["pid"] for span in parts[1]} == {back.pid}, "a daemon has traced another network")
    spans = parts[0] + parts[1]
    n = expect_headers(run, spans)
    return f"{n} headers; " + expect_true(spans, expand(chain_hops(front, back), run.read_logs()))


def features_of(daemon, command="status"):
    return {one["name"]: one for one in json.loads(daemon.control(command, "--json"))["features"]}


def case_insert_doctor(run):
    """tsunagictl doctor: the kernel, the tap, and every check of the self-test, which is made when there is a Go process;
    none if nothing is to be propagated."""
    need("go")
    daemon = run.daemon()
    told = json.loads(daemon.control("doctor", "--json"))
    expect(told["kernel"] == os.uname().release and told["tap"]["name"], f"kernel or tap: {told}")
    expect(told["checks"] == [], "a self-test that nobody needs")
    run.app("hello", [apps.go_chain(), "hello", "{port}", "{log}"])
    wait_until(lambda: not (propagation(daemon) or "").startswith(("not loaded", "loading")), 20, "insertion, or why not")
    told = json.loads(daemon.control("doctor", "--json"))
    feature = features_of(daemon, "doctor")["traceparent in requests of Go processes"]
    failed = [check["name"] for check in told["checks"] if not check["passed"] and check["matters"]]
    if "will not carry" in daemon.stderr:
        expect(not feature["available"] and feature["reason"], "refused, and no reason")
    else:
        expect(feature["available"] and len(told["checks"]) == 7 and not failed, f"failed: {failed}")
        expect("traceparent in requests: passed" in daemon.control("doctor"), "no self-test in the text")
    counted = {name: n for name, n in daemon.counters().items()
               if n and (name.startswith("insert") or name in ("out_of_step", "unreadable", "not_http"))}
    expect(not counted, f"the self-test was counted: {counted}")
    off = run.daemon(config=run.config(OFF), name="off", runtime="run-off")
    told = json.loads(off.control("doctor", "--json"))
    expect(told["checks"] == [], "a self-test that was not asked for")
    return feature["reason"] or "all checks passed"
