"""How long spans last, to 5 ms in both directions: one request at a time, and the answer comes in pieces."""

import apps
from cases_chains import chain_hops, need
from harness import expect_true, scaled
from judge import expand
from wire import Wire

PAUSE_MS = 30


def durations(run, front, back):
    records = {}
    with Wire(front.port, records) as wire:
        for n in range(10):  # code is loaded and compiled; nobody watches yet
            wire.request(f"/x/cold-{n}")
        records.clear()
        daemon = run.daemon()
        for n in range(scaled(30, least=10)):
            wire.request(f"/x/r-{n}")
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids()]
    logs = {**run.read_logs(), "load": records}
    return expect_true(spans, expand(chain_hops(front, back, client_may_lack_parent=True), logs))


def slow_back(run):
    return run.app("back", apps.python("threaded.py", "{port}", "{log}", 0, PAUSE_MS))


def case_durations_java(run):
    """A Java service that calls one whose answers take 60 ms, in pieces."""
    need("java", "javac")
    back = slow_back(run)
    front = run.app("front", apps.java("Front", "{port}", back.port, "{log}"))
    return durations(run, front, back)


def case_durations_go(run):
    """The same in Go."""
    need("go")
    back = slow_back(run)
    front = run.app("front", [apps.go_chain(), "front", "{port}", "{log}", back.port])
    return durations(run, front, back)


def case_durations_python(run):
    """The same in Python."""
    back = slow_back(run)
    front = run.app("front", apps.python("threaded.py", "{port}", "{log}", back.port))
    return durations(run, front, back)
