"""Bounds of what the daemon holds: clients that leave much open cost it no more than it may take, and all is counted."""

import pathlib
import re
import signal
import time

import apps
import judge
from cases_faults import LOSS_COUNTERS, losses
from harness import expect, expect_true, wait_until
from judge import Hop, expand
from wire import Wire

BUDGET = 8 << 20
# Beside the budget: what printing holds (1 MB), allocations not given back, code that was not needed before.
SLACK = 3 << 20
# Seconds. At once for a crowd, a second later for its rest; what a slow machine closes later still, with the next round.
GIVEN_BACK_WITHIN = 31


def resident(pid):
    """Memory of its own; the pages of the ring, which it maps, are not among them."""
    return int(re.search(r"RssAnon:\s*(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) << 10


def pipeline(port, connection, requests, records):
    """Sends requests with targets of 15 KB one behind the other and reads no response."""
    wire = Wire(port, records, timeout=30)
    for n in range(requests):
        name = f"c{connection}-{n}"
        start = time.time_ns()
        wire.send(wire.head(f"/hold/{name}?q=" + "a" * 15_000))
        records["client", name] = {"id": name, "role": "client", "path": f"/hold/{name}", "status": 200,
                                   "start": start, "end": 0, "traceparent": ""}
        wire.open = n + 1
    return wire


def slow_head(port, name):
    """Sends most of a head, without its end."""
    wire = Wire(port, timeout=30)
    for _ in range(6):
        wire.socket.sendall((b"" if _ else f"GET /hold/{name}?q=".encode()) + b"b" * 2_000)
    return wire


def case_open_requests_bounded(run):
    """Heads that never end, and 15 KB requests that nobody answers: bounded memory, what is lost is counted exactly."""
    hold = run.app("hold", apps.python("hold.py", "{port}", "{log}"))
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon(run.config(extra=f"limits: {{open_bytes: {BUDGET}, ring_bytes: 8MB}}\nstore: {{traces: 100}}\n"))
    run.load(back.port, 500, 4, name="load-before", id="before")  # all that is set up once has been
    records = {}
    before = resident(daemon.pid)
    slow = [slow_head(hold.port, f"slow-{n}") for n in range(200)]
    time.sleep(0.5)
    wires = [pipeline(hold.port, n, 40, records) for n in range(60)]
    time.sleep(1)
    highest = resident(daemon.pid)
    counters = daemon.counters()
    lost_open = counters.get("open_bytes_full", 0)
    expect(lost_open > 1000, f"the budget was not spent: {lost_open} refused")
    expect(highest - before < BUDGET + SLACK, f"{(highest - before) >> 10} KB more than before, the budget is {BUDGET >> 10}")

    run.load(back.port, 100, 4, name="load-full", id="full", allow_failures=True)
    hold.popen.send_signal(signal.SIGUSR1)
    for connection, wire in enumerate(wires):
        for n in range(wire.open):
            expect(wire.response()[0] == 200, "a request was not answered")
            records["client", f"c{connection}-{n}"]["end"] = time.time_ns()
    for n, wire in enumerate(slow):  # now they end as well
        start = time.time_ns()
        wire.socket.sendall(b" HTTP/1.1\r\nHost: a\r\n\r\n")
        expect(wire.response()[0] == 200, "a slow request was not answered")
        records["client", f"slow-{n}"] = {"id": f"slow-{n}", "role": "client", "path": f"/hold/slow-{n}", "status": 200,
                                          "start": start - 10**11, "end": time.time_ns(), "traceparent": ""}
    for wire in wires + slow:
        wire.close()
    run.load(back.port, 500, 4, name="load-after", id="after")
    wait_until(lambda: '"connections":0' in daemon.control("status", "--json").replace(" ", ""), 10, "no connections")
    status = daemon.control("status", "--json").replace(" ", "")
    expect('"open_bytes":0' in status, f"not all was given back: {status}")

    wait_until(lambda: resident(daemon.pid) - before < BUDGET // 2, GIVEN_BACK_WITHIN, "memory given back")
    left = resident(daemon.pid) - before
    counters = daemon.counters()
    run.stop_apps()
    spans = daemon.finish()
    hops = [Hop("server", "/hold/{id}", outer="load", inner="hold", pid=hold.pid)]
    expected = expand(hops, {"load": records, "hold": judge.read_log(run.logs["hold"])})
    hops = [Hop("server", "/x/{id}", outer="load", inner="back", pid=back.pid)]
    logs = run.read_logs()
    after = expand(hops, {"load": logs["load-after"], "back": logs["back"]})
    for name in ("load-before", "load-full"):
        expected += expand(hops, {"load": logs[name], "back": logs["back"]})
    text = expect_true([s for s in spans if "/after-" in judge.span_path(s)], after, least=500)
    spans = [s for s in spans if "/after-" not in judge.span_path(s)]
    verdict = judge.judge(spans, expected, may_be_loose=True)  # pipelined: the witness cannot tell them apart
    named = {name: counters[name] for name in LOSS_COUNTERS if counters.get(name)}
    expect(not verdict.wrong and not verdict.extra and not verdict.absent, f"{verdict}: {verdict.problems[:4]}; {named}")
    others = {name: n for name, n in counters.items() if n}
    expect(verdict.missing == losses(counters), f"{verdict.missing} missing, counted {named} of {others}")
    return (f"{len(expected)} served = {verdict.right} exported + {verdict.missing} lost by {named}; "
            f"{(highest - before) >> 10} KB for a budget of {BUDGET >> 10} KB, {left >> 10} KB afterwards; {text}")
