"""Requests of Go services that carry traceparent to whoever answers them (propagate: on)."""

import time

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
