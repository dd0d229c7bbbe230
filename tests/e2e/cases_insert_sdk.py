"""Insertion where one side is instrumented by an OpenTelemetry SDK."""

import time

import apps
from cases_chains import need
from cases_insert import ON, header_of, need_propagation
from harness import expect, scaled
from judge import span_path


def sdk_chain(run, programs):
    """A front and a back, after a load and the end of both; returns their spans and logs."""
    need("go")
    back = run.app("back", [programs[1], "back", "{port}", "{log}"])
    front = run.app("front", [programs[0], "front", "{port}", "{log}", back.port])
    daemon = run.daemon(config=run.config(ON))
    need_propagation(daemon)
    n = scaled(500, 50)
    run.load(front.port, n, 8, traceparent=20)
    time.sleep(1.5)
    counters = daemon.counters()
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids()]
    logs = run.read_logs()
    expect(sum(role == "server" for role, _ in logs["back"]) == n, "requests that back has not got")
    return n, counters, {(span["pid"] == front.pid, span["kind"], span_path(span)): span for span in spans}, logs


def case_insert_sdk_front(run):
    """The client has an SDK: its header comes as it was sent, alone, and its trace is adopted by the other end."""
    n, counters, spans, logs = sdk_chain(run, (apps.go_sdk(), apps.go_chain()))
    for (_, request), got in logs["back"].items():
        sent = logs["front"]["client", request]
        expect(got["headers"] and got["headers"] == sent["headers"], f"{request}: {sent['headers']} came as {got['headers']}")
        _, trace, parent, _ = got["headers"].split("-")
        span = spans[False, "server", got["path"]]
        expect((span["trace_id"], span["parent_span_id"]) == (trace, parent), f"{request}: {span} does not continue it")
        span = spans[True, "client", got["path"]]
        expect(span["trace_id"] == trace, f"{request}: {span} is of another trace than {got['headers']}")
    expect(counters["inserted"] == 0 and counters["insert_own"] == n, f"lines: {counters['inserted']}")
    return f"{n} headers of the SDK"


def case_insert_sdk_back(run):
    """The server has an SDK: its spans continue the trace of the client's, which has none."""
    n, counters, spans, logs = sdk_chain(run, (apps.go_chain(), apps.go_sdk()))
    for (_, request), got in logs["back"].items():
        span = spans[True, "client", got["path"]]
        expect((got["trace"], got["parent"]) == (span["trace_id"], span["span_id"]),
               f"{request}: the SDK has trace {got['trace']} and parent {got['parent']}, the client's span is {span}")
        expect(got["headers"] in (header_of(span), header_of(span, "01")), f"{request}: {got['headers']}")
    expect(counters["inserted"] == n, f"{counters['inserted']} lines")
    return f"{n} spans of the SDK below those of the client"
