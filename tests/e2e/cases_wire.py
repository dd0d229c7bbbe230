"""HTTP as it is really sent: every call, heads cut anywhere, odd framing, roles, reuse, trace context headers."""

import json
import pathlib
import subprocess
import time

import apps
import judge
from harness import Skip, expect, expect_true, scaled
from judge import Expected, Hop, expand, interval
from wire import S1, T1, TRACEPARENT, Wire


def finish(run, daemon, settle=1.5):
    time.sleep(settle)
    run.stop_apps()
    return daemon.finish()


def odd_expected(run, log, client_pid, server_pid):
    """Both ends of every exchange that odd made."""
    logs = {name: judge.read_log(f"{log}.{name}") for name in ("client", "server")}
    expected = []
    for (_, request), called in logs["client"].items():
        served, group = logs["server"]["server", request], called["group"]
        status = called["status"] or None
        facts = {"request": request, "method": called["method"], "path": called["path"], "status": status,
                 "outer": interval(called)}
        call = Expected(kind="client", pid=client_pid, may_be_unseen=group == "unseen-client", inner=interval(served),
                        error_types=("connection_reset",), **facts)
        serve = Expected(kind="server", pid=server_pid, may_be_unseen=group == "unseen-server", inner=interval(served),
                         error_types=("connection_reset", "not_observed"), parent=call,
                         may_lack_parent=group == "pipelined",
                         attributes={"url.query": "q=1", "user_agent.original": "odd/1"}, **facts)
        if called["id"] == "unseen-request-request-in-file-0":  # a head in pages: nobody may claim to have seen it sent
            serve.parent = None
            expected.append(serve)
            continue
        expected += [call, serve]
    return expected


def odd_groups(run):
    """Runs odd between two processes; judges group by group, so that a failure names what is not right."""
    port, log = run.port(), run.apps / "odd.log"
    odd = run.start("odd", [apps.c_program("odd"), port, log], stdin=subprocess.PIPE)
    _, client_pid, server_pid = odd.stdout.split()
    daemon = run.daemon()
    odd.popen.stdin.write(b"go\n")
    odd.popen.stdin.flush()
    expect(odd.wait(60) == 0, f"odd failed: {odd.stderr}")
    time.sleep(1.5)
    spans = daemon.finish()
    expected = odd_expected(run, log, int(client_pid), int(server_pid))
    groups, failures, right = {}, [], 0
    for one in expected:
        groups.setdefault(one.path.split("/")[2], []).append(one)
    for group, members in groups.items():
        of_group = [s for s in spans if judge.span_path(s).startswith(f"/odd/{group}/")]
        if group == "pipelined":  # the witness cannot tell the requests of one call apart
            verdict = judge.judge(of_group, members, may_be_loose=True)
        else:
            verdict = run.judge(of_group, members)
        right += verdict.right
        if not verdict.ok:
            failures.append(f"{group}: {verdict}; " + "; ".join(verdict.problems[:3]))
    stray = [judge.span_path(s) for s in spans if judge.span_path(s).split("/")[2:3] == [] or
             judge.span_path(s).split("/")[2] not in groups]
    expect(not stray, f"spans of nothing: {stray[:3]}")
    expect(not failures, " || ".join(failures))
    return f"{right} right in {len(groups)} groups"


def case_odd(run):
    """Each of the 12 calls, heads cut at every byte, 1,024 vectors, sendfile, splice, zerocopy, MSG_MORE, pipelining, resets."""
    return odd_groups(run)


def case_split_traceparent(run):
    """A head cut in two at every byte, traceparent included, still continues the caller's trace."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon()
    records = {}
    with Wire(back.port, records) as wire:
        length = len(wire.head("/split/cut-000", [f"traceparent: {TRACEPARENT}"]))
        for cut in range(1, length):
            wire.request(f"/split/cut-{cut:03}", [f"traceparent: {TRACEPARENT}"], [cut], TRACEPARENT)
        every = range(1, length)
        wire.request("/split/cut-all", [f"traceparent: {TRACEPARENT}"], every, TRACEPARENT)
    spans = finish(run, daemon)
    hops = [Hop("server", "/split/{id}", outer="load", inner="back", pid=back.pid)]
    return expect_true(spans, expand(hops, {**run.read_logs(), "load": records}), least=length)


TRACE_CONTEXTS = [  # name, header lines, the traceparent that must be continued ("" for a new trace)
    ("valid", [f"traceparent: {TRACEPARENT}"], TRACEPARENT),
    ("name-in-capitals", [f"TRACEPARENT: {TRACEPARENT}"], TRACEPARENT),
    ("spaces-around", [f"traceparent: \t {TRACEPARENT} \t"], TRACEPARENT),
    ("not-sampled", [f"traceparent: 00-{T1}-{S1}-00"], TRACEPARENT),
    ("digits-only", [f"traceparent: 00-{'12345678' * 4}-{'87654321' * 2}-01"],
     f"00-{'12345678' * 4}-{'87654321' * 2}-01"),
    ("future-version", [f"traceparent: cc-{T1}-{S1}-01-what-ever"], TRACEPARENT),
    ("future-without-tail", [f"traceparent: cc-{T1}-{S1}-01"], TRACEPARENT),
    ("future-malformed-tail", [f"traceparent: cc-{T1}-{S1}-01what"], ""),
    ("version-ff", [f"traceparent: ff-{T1}-{S1}-01"], ""),
    ("version-not-hexadecimal", [f"traceparent: .0-{T1}-{S1}-01"], ""),
    ("zero-trace", [f"traceparent: 00-{'0' * 32}-{S1}-01"], ""),
    ("zero-parent", [f"traceparent: 00-{T1}-{'0' * 16}-01"], ""),
    ("capital-digits", [f"traceparent: 00-{T1.upper()}-{S1}-01"], ""),
    ("tail-in-version-00", [f"traceparent: {TRACEPARENT}-what"], ""),
    ("too-short", [f"traceparent: {TRACEPARENT[:54]}"], ""),
    ("empty", ["traceparent:"], ""),
    ("twice", [f"traceparent: {TRACEPARENT}", f"traceparent: 00-{T1}-00f067aa0ba902b7-01"], ""),
]


def case_trace_context(run):
    """Valid and invalid traceparent headers, by the W3C rules: continue it, or start a new trace."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon()
    records = {}
    with Wire(back.port, records) as wire:
        for name, headers, expected in TRACE_CONTEXTS:
            wire.request(f"/context/{name}", headers, traceparent=expected)
    spans = finish(run, daemon)
    hops = [Hop("server", "/context/{id}", outer="load", inner="back", pid=back.pid)]
    return expect_true(spans, expand(hops, {**run.read_logs(), "load": records}))


def case_same_remote_parent(run):
    """A poll loop that sends one traceparent with every request: each its own span under it."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon()
    records, n = {}, scaled(5_000)
    with Wire(back.port, records) as wire:
        for i in range(n):
            wire.request(f"/poll/{i}", [f"traceparent: {TRACEPARENT}"], traceparent=TRACEPARENT)
    spans = finish(run, daemon)
    hops = [Hop("server", "/poll/{id}", outer="load", inner="back", pid=back.pid)]
    return expect_true(spans, expand(hops, {**run.read_logs(), "load": records}), least=n)


def case_epoll_proxy(run):
    """One thread, 50 requests in flight over 4 pooled connections: no call under another's request."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    proxy = run.app("proxy", [apps.c_program("epoll_proxy"), "{port}", "{log}", back.port])
    daemon = run.daemon()
    run.load(proxy.port, scaled(2_000), 50, prefix="/i/")
    spans = finish(run, daemon)
    hops = [Hop("server", "/i/{id}", outer="load", inner="proxy", pid=proxy.pid),
            Hop("client", "/o/{id}", outer="proxy", inner="back", pid=proxy.pid, may_lack_parent=True),
            Hop("server", "/o/{id}", outer="proxy", inner="back", pid=back.pid)]
    return expect_true(spans, expand(hops, run.read_logs()))


def case_event_loop_with_one_request(run):
    """An event loop with one request open at a time makes calls for something else: they have no parent."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    proxy = run.app("proxy", [apps.c_program("epoll_proxy"), "{port}", "{log}", back.port, 15])
    daemon = run.daemon()
    records, n = {}, scaled(20, least=5)
    with Wire(proxy.port, records) as wire:
        for i in range(n):
            wire.request(f"/i/r-{i}")
    in_flight_before = daemon.ready_ns
    spans = finish(run, daemon)
    logs = {**run.read_logs(), "load": records}
    hops = [Hop("server", "/i/{id}", outer="load", inner="proxy", pid=proxy.pid),
            Hop("client", "/o/{id}", outer="proxy", inner="back", pid=proxy.pid, may_lack_parent=True),
            Hop("server", "/o/{id}", outer="proxy", inner="back", pid=back.pid)]
    expected = expand(hops, logs)
    logs["own"] = judge.read_log(run.logs["proxy"], "/own/")
    hops = [Hop("client", "/own/{id}", outer="own", inner="back", pid=proxy.pid),
            Hop("server", "/own/{id}", outer="own", inner="back", pid=back.pid)]
    expected += expand(hops, logs, load="own", in_flight_before=in_flight_before)
    # The one that was under way when the proxy was ended is in nobody's log.
    next_own = f"/own/own-{max(int(name.removeprefix('own-')) for _, name in logs['own']) + 1}"
    spans = [span for span in spans if next_own not in (span["attributes"].get("url.path"),
                                                        "/" + span["attributes"].get("url.full", "").split("/", 3)[-1])]
    return expect_true(spans, expected, least=10 * n)


def case_reused_connections(run):
    """A poller, A, B and C whose connections are all older than the daemon: 100 traces of 6 spans."""
    c = run.app("c", apps.python("threaded.py", "{port}", "{log}"))
    b = run.app("b", apps.python("threaded.py", "{port}", "{log}", c.port))
    a = run.app("a", apps.python("threaded.py", "{port}", "{log}", b.port))
    poller = run.app("poller", apps.python("caller.py", "{log}"), stdin=subprocess.PIPE)
    poller.command(f"connect one {a.port}")
    poller.command("get one /poll/warm-up")
    daemon = run.daemon()
    for i in range(100):
        expect(poller.command(f"get one /poll/{i}").startswith("ok"), "the poller failed")
    spans = finish(run, daemon)
    logs = run.read_logs()
    del logs["poller"]["client", "warm-up"]
    hops = [Hop("client", "/poll/{id}", outer="poller", inner="a", pid=poller.pid),
            Hop("server", "/poll/{id}", outer="poller", inner="a", pid=a.pid),
            Hop("client", "/back/{id}", outer="a", inner="b", pid=a.pid),
            Hop("server", "/back/{id}", outer="a", inner="b", pid=b.pid),
            Hop("client", "/back/{id}", outer="b", inner="c", pid=b.pid),
            Hop("server", "/back/{id}", outer="b", inner="c", pid=c.pid)]
    return expect_true(spans, expand(hops, logs, load="poller"), least=600)


def case_roles(run):
    """Server at the accepting side whatever the ports: high and low, older than the daemon, both ends in one process."""
    def low():
        return run.port(1100, 5000)

    def high():
        return run.port(61000, 65000)

    server = run.app("server", apps.python("threaded.py", "{port}", "{log}"), port=high())
    below = run.app("below", apps.python("threaded.py", "{port}", "{log}"), port=low())
    caller = run.app("caller", apps.python("caller.py", "{log}"), stdin=subprocess.PIPE)
    both = run.app("both", apps.python("caller.py", "{log}"), stdin=subprocess.PIPE)
    own = run.port()
    both.command(f"serve {own}")
    connections, later = ([(f"{age}-high", caller, server, server.port, low()),
                           (f"{age}-low", caller, below, below.port, high()), (f"{age}-own", both, both, own, 0)]
                          for age in ("old", "new"))
    for name, client, _, port, source in connections:
        expect(client.command(f"connect {name} {port} {source}").startswith("ok"), f"{name}: no connection")
    daemon = run.daemon()
    for name, client, _, port, source in later:
        expect(client.command(f"connect {name} {port} {source}").startswith("ok"), f"{name}: no connection")
    for name, client, _, _, _ in connections + later:
        for i in range(3):
            client.command(f"get {name} /role/{name}-{i}")
    spans = finish(run, daemon)
    logs, expected = run.read_logs(), []
    for name, client, target, _, _ in connections + later:
        chosen = {key: record for key, record in logs[client.name].items() if key[1].startswith(name)}
        hops = [Hop("client", "/role/{id}", outer=client.name, inner=target.name, pid=client.pid),
                Hop("server", "/role/{id}", outer=client.name, inner=target.name, pid=target.pid)]
        expected += expand(hops, {**logs, "chosen": chosen}, load="chosen")
    return expect_true(spans, expected, least=36)


NGINX = """
daemon off; worker_processes 1; pid {directory}/nginx.pid; error_log {directory}/error.log;
events {{ worker_connections 256; }}
http {{
  log_format e2e escape=json '{{"id":"$arg_id","role":"server","method":"$request_method","path":"$uri",'
                             '"status":$status,"start":$msec,"end":$msec}}';
  access_log {directory}/access.log e2e;
  client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy; fastcgi_temp_path {directory}/fcgi;
  uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;
  sendfile on; tcp_nopush on; if_modified_since before; keepalive_timeout 60; default_type text/plain;
  server {{ listen 127.0.0.1:{port}; root {directory}/html; }}
}}
"""


def case_nginx_curl(run):
    """A static nginx called by curl: small and large files, HEAD, ranges, not modified, not found."""
    if not pathlib.Path("/usr/sbin/nginx").exists():
        raise Skip("no nginx here")
    port, directory = run.port(), run.apps / "nginx"
    (directory / "html").mkdir(parents=True)
    directory.chmod(0o755)
    for parent in (run.directory, run.apps):
        parent.chmod(0o755)
    (directory / "html/small").write_text("small\n")
    (directory / "html/large").write_bytes(b"l" * 5_000_000)
    (directory / "nginx.conf").write_text(NGINX.format(directory=directory, port=port))
    nginx = run.start("nginx", ["/usr/sbin/nginx", "-p", directory, "-c", directory / "nginx.conf"], ready=None)
    time.sleep(0.5)
    nginx.expect_running()
    daemon = run.daemon(run.config(include=f'{{exe: "/usr/sbin/nginx", port: {port}}}'))
    calls = [("small", "GET", [], 200), ("large", "GET", [], 200), ("small", "HEAD", ["-I"], 200),
             ("none", "GET", [], 404), ("small", "GET", ["-H", "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT"], 304),
             ("large", "GET", ["-r", "100-199"], 206), ("small", "DELETE", ["-X", "DELETE"], 405)]
    expected = []
    for i, (name, method, options, status) in enumerate(calls * 10):
        start = time.time_ns()
        got = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *options,
                              f"http://127.0.0.1:{port}/{name}?id=r-{i}"], capture_output=True, text=True, check=False)
        expect(got.stdout == str(status), f"curl: {got.stdout} for {method} {name}")
        expected.append(Expected(request=f"r-{i}", kind="server", method=method, path=f"/{name}", status=status,
                                 outer=(start, time.time_ns()), attributes={"url.query": f"id=r-{i}"}))
    time.sleep(1.5)
    spans = daemon.finish()
    served = [json.loads(line) for line in (directory / "access.log").read_text().splitlines()]
    expect(len(served) == len(expected), f"nginx served {len(served)} of {len(expected)}")
    for one in expected:  # paths repeat here: tell the spans apart by their query
        one.path += one.attributes["url.query"]
    for span in spans:
        span["attributes"]["url.path"] += span["attributes"].get("url.query", "")
    return expect_true(spans, expected, least=len(expected))
