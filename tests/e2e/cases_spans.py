"""What one span says: its attributes and resource, its names, secrets left out, and how soon it is there."""

import contextlib
import os
import re
import socket
import struct
import subprocess
import time

import apps
import judge
from harness import BIN, PATIENCE, Jaeger, expect, expect_true, scaled, wait_until
from judge import Expected, Hop, expand
from wire import T1, Wire


def expect_attributes(span, expected, optional=()):
    """Exactly these attributes, but for the optional ones; a value may be a function that tells."""
    found = dict(span["attributes"])
    for key, value in expected.items():
        got = found.pop(key, None)
        right = value(got) if callable(value) else got == value
        expect(right, f"{span['kind']} span: {key} is {got!r}, expected {'something else' if callable(value) else repr(value)}")
    extra = set(found) - set(optional)
    expect(not extra, f"{span['kind']} span: unexpected {sorted(extra)}")


def is_port(value):
    return isinstance(value, int) and 0 < value < 65536


def case_attributes(run):
    """Every attribute of a server and a client span, by the HTTP semantic conventions; nothing else."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    front = run.app("front", apps.python("threaded.py", "{port}", "{log}", back.port))
    daemon = run.daemon()
    with Wire(front.port) as wire:
        wire.send(wire.head("/shop/a-1?size=2&color=red", ["User-Agent: wire/1.0", "X-Other: y"]))
        status, _ = wire.response()
        source = wire.socket.getsockname()[1]
    run.stop_apps()
    spans = daemon.finish()
    expect(len(spans) == 3, f"{len(spans)} spans")
    status_back = judge.read_log(back.log)["server", "a-1"]["status"]
    error = {"error.type": str(status)} if status >= 500 else {}
    server = next(s for s in spans if s["pid"] == front.pid and s["kind"] == "server")
    client = next(s for s in spans if s["kind"] == "client")
    expect_attributes(server, {
        "http.request.method": "GET", "url.scheme": "http", "url.path": "/shop/a-1", "url.query": "size=2&color=red",
        "user_agent.original": "wire/1.0", "client.address": "127.0.0.1", "server.address": "wire",
        "network.peer.address": "127.0.0.1", "network.peer.port": source, "network.protocol.version": "1.1",
        "http.response.status_code": status, **error}, optional=("thread.id", "server.port"))
    error = {"error.type": str(status_back)} if status_back >= 400 else {}
    expect_attributes(client, {
        "http.request.method": "GET", "url.full": f"http://127.0.0.1:{back.port}/back/a-1",
        "server.address": "127.0.0.1", "server.port": back.port, "network.peer.address": "127.0.0.1",
        "network.peer.port": back.port, "network.protocol.version": "1.1",
        "http.response.status_code": status_back, **error}, optional=("thread.id", "url.scheme", "user_agent.original"))
    expect({s["name"] for s in spans} == {"GET"}, f"names {[s['name'] for s in spans]}")
    expect(all(s["links"] == [] and s["service"] for s in spans), "links or no service")
    return "ok"


def case_secrets(run):
    """Values of known secrets in the query are REDACTED, keys stay; no user information, no Authorization."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon()
    names = ("sig", "signature", "X-Goog-Signature", "AWSAccessKeyId", "token", "access_token", "api_key", "key",
             "password", "secret")
    query = "&".join(f"{name}=hidden{i}" for i, name in enumerate(names)) + "&plain=shown"
    with Wire(back.port) as wire:
        for path in (f"/s/one?{query}", f"http://user:hidden@127.0.0.1:{back.port}/s/two?{query}"):
            wire.send(wire.head(path, ["Authorization: Bearer hidden", "Cookie: session=hidden"]))
            wire.response()
    time.sleep(1.2)
    spans = daemon.finish()
    said = daemon.stdout + daemon.stderr
    expect(len(spans) == 2, f"{len(spans)} spans")
    expect("hidden" not in said, f"a secret is shown: {said[max(0, said.index('hidden') - 200):][:260] if 'hidden' in said else ''}")
    for span in spans:
        got = span["attributes"]["url.query"]
        expect(got.count("REDACTED") == len(names) and got.endswith("plain=shown"), f"query: {got}")
    return spans[0]["attributes"]["url.query"]


def case_service_names(run):
    """Names: the configuration's first match, else OTEL_SERVICE_NAME, else what the process is; never the runtime."""
    plain = run.app("plain", apps.python("threaded.py", "{port}", "{log}"))
    by_environment = run.app("environment", apps.python("threaded.py", "{port}", "{log}"),
                             env={**os.environ, "OTEL_SERVICE_NAME": "from-environment",
                                  "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,deployment.environment.name=test"})
    by_attributes = run.app("attributes", apps.python("threaded.py", "{port}", "{log}"),
                            env={**os.environ, "OTEL_RESOURCE_ATTRIBUTES": "team=x,service.name=from%20attributes"})
    configured = run.app("configured", apps.python("threaded.py", "{port}", "{log}"),
                         env={**os.environ, "OTEL_SERVICE_NAME": "not-this"})
    expected = {plain.pid: "threaded", by_environment.pid: "from-environment", by_attributes.pid: "from attributes",
                configured.pid: "from-config"}
    applications = [plain, by_environment, by_attributes, configured]
    if apps.have("javac"):
        java = run.app("java", apps.java("Back", "{port}", "{log}"))
        expected[java.pid] = "Back"
        applications.append(java)
    if apps.have("go"):
        go = run.app("go", [apps.go_chain(), "back", "{port}", "{log}"])
        expected[go.pid] = "chain"
        applications.append(go)
    daemon = run.daemon(run.config(extra=f"services:\n  - {{match: {{port: {configured.port}}}, name: from-config}}\n"))
    for app in applications:
        with Wire(app.port) as wire:
            wire.request("/name/n-1")
    time.sleep(1.2)
    names = {span["pid"]: span["service"] for span in daemon.finish()}
    expect(names == expected, f"names {sorted(names.values())}, expected {sorted(expected.values())}")
    return ", ".join(sorted(names.values()))


def case_resource(run):
    """The resource in a real Jaeger: service, process, host, operating system, sdk; its library's own field names."""
    jaeger = Jaeger(run)
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon(run.config(endpoint=jaeger.endpoint), arguments=())
    with Wire(back.port) as wire:
        wire.request("/resource/r-1")
    began = time.monotonic()
    wait_until(lambda: jaeger.get("/api/services")["data"], 5, "a service in Jaeger", 0.01)
    shown_after = time.monotonic() - began
    trace = jaeger.get("/api/traces?service=threaded&limit=10")["data"][0]
    process = next(iter(trace["processes"].values()))
    tags = {tag["key"]: tag["value"] for tag in process["tags"]}
    expect(process["serviceName"] == "threaded", process["serviceName"])
    for key, value in {"process.pid": back.pid, "host.name": socket.gethostname(), "os.type": "linux",
                       "telemetry.sdk.language": None, "telemetry.sdk.name": None, "telemetry.sdk.version": None,
                       "telemetry.distro.name": None, "telemetry.distro.version": None, "service.instance.id": None,
                       "process.executable.path": None, "process.executable.name": None}.items():
        expect(key in tags and (value is None or tags[key] == value), f"{key} is {tags.get(key)!r}")
    expect(shown_after < 2, f"the span was in Jaeger after {shown_after:.2f} s")
    daemon.end()
    return f"{len(tags)} resource attributes; in Jaeger after {shown_after:.2f} s"


def case_prompt(run):
    """A lone span can be read within 1 s of its response; how soon the daemon is ready is said, not judged."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    begin = time.monotonic()
    daemon = run.daemon()
    started = time.monotonic() - begin
    worst = 0
    with Wire(back.port) as wire:
        for i in range(5):
            wire.request(f"/prompt/p-{i}")
            begin = time.monotonic()
            wait_until(lambda n=i: f"p-{n}\"" in daemon.stdout, 3, "the span", 0.002)
            worst = max(worst, time.monotonic() - begin)
    expect(worst < 1.0 * PATIENCE, f"printed after {worst:.2f} s")
    return f"ready after {started:.2f} s, printed after at most {worst:.2f} s"


def case_new_processes(run):
    """Services that start while the daemon runs, whatever starts them: their first request is a span."""
    daemon = run.daemon()
    expected, records = [], {}
    for i in range(scaled(10, 3)):
        argv = apps.python("threaded.py", "{port}", "{log}")
        if i % 3 == 1:  # through a shell that execs
            argv = ["/bin/sh", "-c", 'exec "$@"', "sh", *argv]
        service = run.app(f"new-{i}", argv)
        with Wire(service.port, records) as wire:
            wire.request(f"/new/{i}-1")
            wire.request(f"/new/{i}-2")
        pid = service.pid
        expected += [Expected(request=f"{i}-{n}", kind="server", path=f"/new/{i}-{n}", pid=pid,
                              status=records["client", f"{i}-{n}"]["status"]) for n in (1, 2)]
    time.sleep(1.2)
    return expect_true(daemon.finish(), expected)


def case_unselected(run):
    """Processes that are not selected leave no span; a server that was selected keeps its own."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    other_port = run.port()
    other = run.start("other", apps.python("threaded.py", other_port, run.directory / "other.log"))
    daemon = run.daemon()
    records = {}
    with Wire(other_port) as wire:
        for i in range(20):
            wire.request(f"/other/{i}")
    with Wire(back.port, records) as wire:
        for i in range(20):
            wire.request(f"/selected/{i}")
    run.stop_apps()
    spans = daemon.finish()
    expect(all(span["pid"] != other.pid for span in spans), "spans of a process that was not selected")
    hops = [Hop("server", "/selected/{id}", outer="load", inner="back", pid=back.pid)]
    return expect_true(spans, expand(hops, {**run.read_logs(), "load": records}))


def case_port_reuse(run):
    """One source port for many short connections, ended by RST: no state passes from one to the next."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon()
    source, rounds = run.port(), scaled(1_000)
    records, early = {}, set()
    for i in range(rounds):
        given = f"00-{i + 1:032x}-{i + 1:016x}-01" if i % 2 == 0 else ""
        with Wire(back.port, records, source) as wire:
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            headers = [f"traceparent: {given}"] if given else []
            if i % 7 == 3:
                wire.send(wire.head(f"/reuse/early-{i}", headers))
                early.add(f"/reuse/early-{i}")
                if i % 2:
                    time.sleep(0.001)
            else:
                wire.request(f"/reuse/r-{i}", headers, traceparent=given)
    time.sleep(1.2)
    spans = daemon.finish()
    run.stop_apps()
    seen_early = [span for span in spans if judge.span_path(span) in early]
    for span in seen_early:
        i = int(judge.span_path(span).rsplit("-", 1)[1])
        right = f"{i + 1:016x}" if i % 2 == 0 else ""
        expect(span["parent_span_id"] == right, f"{judge.span_path(span)} has the parent {span['parent_span_id']}")
    logs = {"back": judge.read_log(run.logs["back"], "/reuse/r-"), "load": records}
    hops = [Hop("server", "/reuse/{id}", outer="load", inner="back", pid=back.pid)]
    rest = [span for span in spans if judge.span_path(span) not in early]
    return expect_true(rest, expand(hops, logs)) + f"; {len(seen_early)} of {len(early)} ended early"


def case_long_heads(run):
    """traceparent behind kilobytes of cookies: found up to the documented limit, never guessed beyond it."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon()
    records, too_long = {}, set()
    with Wire(back.port, records) as wire:
        for kilobytes in (1, 2, 4, 7, 12, 15, 40):
            for cut in (0, 1):
                request = f"k-{kilobytes}-{cut}"
                trace = f"00-{T1[:-4]}{kilobytes:03}{cut}-{'5' * 16}-01"
                headers = ["Cookie: " + "c" * (1024 * kilobytes), f"traceparent: {trace}"]
                length = len(wire.head(f"/long/{request}", headers))
                beyond = kilobytes > 16
                wire.request(f"/long/{request}", headers, [length - 30] if cut else [], "" if beyond else trace)
                if beyond:
                    too_long.add(request)
    time.sleep(1.2)
    counters = daemon.counters()
    run.stop_apps()
    spans = daemon.finish()
    hops = [Hop("server", "/long/{id}", outer="load", inner="back", pid=back.pid)]
    expect(counters["heads_truncated"] + counters["head_truncated"] >= len(too_long), "truncated heads are not counted")
    return expect_true(spans, expand(hops, {**run.read_logs(), "load": records}))


def case_restart(run):
    """A service that is restarted on the same port again and again: each new process's requests are its own."""
    daemon = run.daemon()
    port, expected = run.port(), []
    for i in range(scaled(8, 3)):
        service = run.app(f"life-{i}", apps.python("threaded.py", "{port}", "{log}"), port=port, log=False)
        records = {}
        with Wire(port, records) as wire:
            wire.request(f"/life/{i}-1")
        expected.append(Expected(request=f"{i}", kind="server", path=f"/life/{i}-1", pid=service.pid,
                                 status=records["client", f"{i}-1"]["status"]))
        service.stop()
    time.sleep(1.2)
    spans = daemon.finish()
    instances = len({span["pid"] for span in spans})
    expect(instances == len(expected), f"{instances} processes in the spans")
    return expect_true(spans, expected)


def case_unfinished(run):
    """A server that is killed, exits, or resets in mid-request: its span says which, and has no status."""
    script = run.apps / "unfinished.py"
    script.write_text(
        "import os, signal, socket, struct, sys\n"
        "listener = socket.create_server(('127.0.0.1', int(sys.argv[1])), backlog=64)\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    connection, _ = listener.accept()\n"
        "    if b'/reset' in connection.recv(8192):\n"
        "        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))\n"
        "        connection.close()\n"
        "        continue\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n")
    daemon = run.daemon()
    ends = {}
    for path, error in (("/unfinished/reset-1", "connection_reset"), ("/unfinished/kill-1", "process_exit")):
        service = run.app(path[12:17], [apps.PYTHON, "-B", script, "{port}"], log=False)
        time.sleep(0.3)
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            with contextlib.suppress(OSError):
                connection.recv(100)
        ends[path] = error
    time.sleep(1.2)
    seen = {span["attributes"].get("url.path"): span["attributes"] for span in daemon.finish()}
    for path, error in ends.items():
        expect(path in seen, f"no span of {path}")
        expect(seen[path].get("error.type") == error, f"{path}: {seen[path]}")
        expect("http.response.status_code" not in seen[path], f"{path}: {seen[path]}")
    return "killed: process_exit; reset: connection_reset"


def case_socket_passed_on(run):
    """A response read by a process that was handed the socket (SCM_RIGHTS): the true status, or none."""
    script = run.apps / "passing.py"
    script.write_text(
        "import os, socket, sys, time\n"
        "mine, other = socket.socketpair()\n"
        "if os.fork() == 0:\n"
        "    mine.close()\n"
        "    _, fds, _, _ = socket.recv_fds(other, 1, 1)\n"
        "    connection = socket.socket(fileno=fds[0])\n"
        "    while connection.recv(65536):\n"
        "        pass\n"
        "    os._exit(0)\n"
        "time.sleep(0.5)\n"  # to be looked at before
        "connection = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "connection.sendall(b'GET /passed/p-1 HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n')\n"
        "socket.send_fds(mine, [b'x'], [connection.fileno()])\n"
        "connection.close()\n"
        "os.wait()\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n")
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"), log=False)
    daemon = run.daemon()
    run.start("passing", [apps.PYTHON, "-B", script, back.port], ready=None, stdin=subprocess.PIPE).wait_for("ready")
    time.sleep(1.2)
    spans = {span["kind"]: span["attributes"] for span in daemon.finish()}
    expect(sorted(spans) == ["client", "server"], f"{sorted(spans)}")
    true = spans["server"]["http.response.status_code"]
    told = spans["client"].get("http.response.status_code")
    expect(told in (true, None), f"status {told}, was {true}")
    expect(told or spans["client"].get("error.type") == "not_observed", f"{spans['client']}")
    return f"status {told}, was {true}"


def case_prefork(run):
    """Workers forked before the first request: the worker that served has the span."""
    script = run.apps / "prefork.py"
    script.write_text(
        "import os, socket, sys\n"
        "listener = socket.create_server(('127.0.0.1', int(sys.argv[1])), backlog=64)\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        while True:\n"
        "            connection, _ = listener.accept()\n"
        "            while head := connection.recv(8192):\n"
        "                body = str(os.getpid()).encode()\n"
        "                connection.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(body) + body)\n"
        "print('ready', flush=True)\n"
        "import signal; signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL)); signal.pause()\n")
    port = run.port()
    master = run.start("prefork", [apps.PYTHON, script, port], start_new_session=True)
    daemon = run.daemon()
    expected = []
    try:
        for i in range(30):
            with Wire(port) as wire:
                wire.send(wire.head(f"/fork/f-{i}"))
                _, body = wire.response()
            expected.append(Expected(request=f"f-{i}", kind="server", path=f"/fork/f-{i}", pid=int(body)))
        time.sleep(1.2)
        return expect_true(daemon.finish(), expected) + f"; {len({e.pid for e in expected})} workers"
    finally:
        master.popen.terminate()


def case_tsunagictl_words(run):
    """tsunagictl explains itself: an unknown command is an error in one line, --help is not."""
    daemon = run.daemon()
    control = str(run.directory / "run")
    for arguments, good in ((["--help"], True), (["no-such-command"], False), (["trace", "zz"], False)):
        done = subprocess.run([BIN / "tsunagictl", "--runtime-dir", control,
                               *arguments], capture_output=True, text=True, timeout=10, check=False)
        expect((done.returncode == 0) == good, f"{arguments}: {done.returncode} {done.stdout} {done.stderr}")
        expect(good or re.search(r"\S", done.stderr), f"{arguments}: no word of why")
    daemon.finish()
    return "ok"
