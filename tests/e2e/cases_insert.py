"""Requests of Go services that carry traceparent to whoever answers them (propagate: on)."""

import re
import time

import apps
from cases_chains import chain_hops, go_chain, need
from cases_go import warm
from harness import expect, expect_true, scaled
from judge import expand, span_path

ON = "propagate: on\n"


def header_of(span):
    """What a request that this client span is of must have been sent with."""
    return f"00-{span['trace_id']}-{span['span_id']}-03"


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


def case_insert_chain(run):
    """The Go chain with propagation: each request has one header, that of its client span, and the join agrees."""
    need("go")
    front, back = go_chain(run)
    daemon = run.daemon(config=run.config(ON))
    run.load(front.port, scaled(10_000), 64)
    time.sleep(1.5)
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids()]
    n = expect_headers(run, spans)
    text = expect_true(spans, expand(chain_hops(front, back), run.read_logs()))
    return f"{n} headers; {text}"


LINE = re.compile(rb"traceparent: 00-[0-9a-f]{32}-[0-9a-f]{16}-03\r\n(?=\r\n)")
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


def compare_bytes(directory, may_lack=False):
    """Every connection's bytes at both ends. Returns how many lines were put in, and how many connections there were."""
    n_lines, ids, connections = 0, set(), 0
    for sent in sorted(directory.glob("sent-*")):
        port = sent.name.split("-")[1]
        found = lines_in(sent.read_bytes(), (directory / f"read-{port}").read_bytes())
        expect(not isinstance(found, str), f"connection {port}: {found}")
        least, most = map(int, (directory / f"lines-{port}").read_text().split())
        expect((may_lack or least <= len(found)) and len(found) <= most,
               f"connection {port}: {len(found)} lines, not {least} to {most}")
        connections += 1
        n_lines += len(found)
        ids.update(line[20:65] for line in found)
    expect(len(ids) == n_lines, f"{n_lines} lines with {len(ids)} different ids")
    return n_lines, connections


def exchange_bytes(run, rounds, seed=1):
    """A traced client and its peer, which is not; returns the directory with what they have recorded."""
    program = apps.go_bytes()
    directory = run.apps / "bytes"
    directory.mkdir()
    peer = run.app("peer", [program, "peer", "{port}", directory], log=False)
    client = run.start("client", [program, "client", peer.port, directory, rounds, seed], ready=None)
    return directory, client


def case_insert_bytes(run):
    """Requests of every form, bodies that look like heads, tunnels, TLS, other protocols: nothing differs but the line."""
    need("go")
    config = run.config(ON).replace("discover:", f'discover:\n  exclude: [{{cmd: "*bytes peer*"}}]')
    daemon = run.daemon(config=config)
    directory, client = exchange_bytes(run, scaled(20))
    status = client.wait(120)
    expect(status == 0, f"the client says: {client.stdout.strip()}")
    n, connections = compare_bytes(directory)
    counters = daemon.counters()
    expect(counters["inserted"] == n, f"{counters['inserted']} lines counted, {n} came")
    expect(counters["insert_dropped"] == counters["insert_undone"] == 0, "a line was taken out again")
    return f"{n} lines on {connections} connections; own {counters['insert_own']}"
