"""Go services: what spans say of a request beside its parent."""

import concurrent.futures
import http.client
import itertools
import os
import random
import time

import apps
import frameworks
import judge
from cases_chains import need
from harness import expect, scaled
from judge import DURATION_TOLERANCE_NS, span_path

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
STATUSES = [200, 201, 202, 301, 400, 404, 418, 500, 503]


def case_go_routes(run):
    """net/http's own routes: every span has the pattern's path, and the right parent."""
    need("go")
    return frameworks.chain(run, "net-http", 1_000)


def case_go_fasthttp(run):
    """A server and client without net/http, also with time limits: every parent is right."""
    need("go")
    return frameworks.chain(run, "fasthttp", 500)


def case_go_gin(run):
    """A router that is probed: every span has its template."""
    need("go")
    return frameworks.chain(run, "gin", 500)


class OldConnection(http.client.HTTPConnection):
    _http_vsn, _http_vsn_str = 10, "HTTP/1.0"


def ask(port, worker, n):
    """n requests of all kinds on connections of one thread; {id: (local port, start, end)}."""
    chance, asked, connection = random.Random(worker), {}, None
    for i in range(n):
        is_old = chance.random() < 0.1
        if connection is None or is_old != isinstance(connection, OldConnection):
            connection = (OldConnection if is_old else http.client.HTTPConnection)("127.0.0.1", port, timeout=20)
        method, status = chance.choice(METHODS), chance.choice(STATUSES)
        body = b"y" * chance.choice([0, 1, 500, 3_000, 20_000]) if method in ("POST", "PUT", "PATCH") else None
        query = f"?status={status}&bytes={chance.choice([0, 1, 300, 5_000, 40_000])}&wait={chance.choice([0, 0, 0, 3, 20])}"
        request = f"w{worker}-{i}"
        start = time.time_ns()
        connection.request(method, f"/a/b%20c/{request}{query}", body)
        local = connection.sock.getsockname()[1]
        answer = connection.getresponse()
        answer.read()
        asked[request] = local, start, time.time_ns()
        if is_old:
            connection.close()
            connection = None
    return asked


def line_problem(span, line, asked):
    """What of a line in the server's log the span does not agree with; None: it does."""
    attributes = span["attributes"]
    local, start, end = asked
    uri = attributes["url.path"] + (f"?{attributes['url.query']}" if "url.query" in attributes else "")
    pairs = {
        "remote address": (f"{attributes.get('client.address')}:{attributes.get('network.peer.port')}", line["remote"]),
        "port of the caller": (attributes.get("network.peer.port"), local),
        "method": (attributes.get("http.request.method"), line["method"]),
        "request URI": (uri, line["uri"]),
        "protocol": (f"HTTP/{attributes.get('network.protocol.version')}", line["proto"]),
        "status": (attributes.get("http.response.status_code"), line["status"]),
        "name": (span["name"], line["method"]),
    }
    for what, (said, logged) in pairs.items():
        if said != logged:
            return f"{what}: the span has {said}, the log {logged}"
    duration, latency = span["end_unix_nano"] - span["start_unix_nano"], line["end"] - line["start"]
    if not latency - DURATION_TOLERANCE_NS <= duration <= end - start + DURATION_TOLERANCE_NS:
        return f"lasts {duration / 1e6:.2f} ms, the log has {latency / 1e6:.2f} ms, the caller {(end - start) / 1e6:.2f} ms"
    return None


def case_go_server_log(run):
    """Methods, queries, bodies, protocols, statuses of all kinds: each span agrees with the server's own log line."""
    need("go")
    server = run.app("server", [apps.go_chain(), "log", "{port}", "{log}"])
    daemon = run.daemon()
    each = scaled(250)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = dict(itertools.chain.from_iterable(a.items() for a in pool.map(ask, [server.port] * 8, range(8), [each] * 8)))
    run.stop_apps()
    spans = {os.path.basename(span_path(s)): s for s in daemon.finish() if s["pid"] == server.pid}
    lines = {key[1]: line for key, line in judge.read_log(server.log).items()}
    expect(set(spans) == set(lines) == set(asked), f"{len(spans)} spans, {len(lines)} lines, {len(asked)} requests")
    problems = [f"{n}: {p}" for n, line in lines.items() if (p := line_problem(spans[n], line, asked[n]))]
    expect(not problems, f"{len(problems)} of {len(lines)} lines: " + "; ".join(problems[:4]))
    near = sum(abs((s["end_unix_nano"] - s["start_unix_nano"]) - (lines[n]["end"] - lines[n]["start"]))
               <= DURATION_TOLERANCE_NS for n, s in spans.items())
    expect(near >= 0.95 * len(lines), f"only {near} of {len(lines)} durations within 5 ms of the log's")
    return f"{len(lines)} lines agree, {near} durations within 5 ms of the log's"
