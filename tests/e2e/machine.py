"""Cases that change the whole machine, its clock or what it permits: for a virtual machine that is thrown away.

tests/e2e/run takes them in only when TSUNAGI_E2E_MACHINE is set; tests/vm/guest sets it.
"""

import http.client
import json
import pathlib
import time

import apps
from cases_cli import daemon_once, one_line
from harness import expect

STEP_S = 3600
AWAY_NS = 50_000_000  # as far as a span may be from the system clock
BLUR_NS = 400_000_000  # around a step the two clocks of a request are not the same one


def set_clock_back_and_forth(call):
    """Calls in a row for six seconds, with the clock an hour ahead for the two in the middle. Returns the steps."""
    steps = []
    begin = time.monotonic()
    for shift in (STEP_S, -STEP_S, 0):
        while time.monotonic() - begin < 2 * (len(steps) + 1):
            call()
            time.sleep(0.01)
        if shift:
            steps.append(time.time_ns())
            time.clock_settime(time.CLOCK_REALTIME, time.time() + shift)
            steps[-1:] = [steps[-1], time.time_ns()]
    return steps


def case_clock_step(run):
    """A step of the clock by an hour and back: spans stay within 50 ms of it, durations as they were."""
    app = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon()
    connection = http.client.HTTPConnection("127.0.0.1", app.port)
    calls = {}

    def call():
        path = f"/x/r-{len(calls)}"
        begin, begin_monotonic = time.time_ns(), time.monotonic_ns()
        connection.request("GET", path)
        connection.getresponse().read()
        calls[path] = (begin, time.monotonic_ns() - begin_monotonic)

    steps = set_clock_back_and_forth(call)
    time.sleep(1.5)
    spans = {span["attributes"]["url.path"]: span for span in daemon.finish() if span["pid"] == app.pid}
    expect(spans.keys() == calls.keys(), f"{len(calls)} calls, {len(spans)} spans")
    judged = 0
    for path, (begin, duration) in calls.items():
        span = spans[path]
        lasted = span["end_unix_nano"] - span["start_unix_nano"]
        expect(0 <= lasted <= duration, f"{path}: lasted {lasted} ns of {duration}")
        if any(abs(begin - step) < BLUR_NS for step in steps):
            continue
        away = abs(span["start_unix_nano"] - begin)
        expect(away < duration + AWAY_NS, f"{path}: {away / 1e9:.3f} s from the system clock")
        judged += 1
    expect(judged > 50, f"only {judged} calls judged")
    return f"{judged} of {len(calls)} spans judged by the clock, all durations right"


def case_lockdown(run):
    """A kernel locked down to confidentiality: one line that says so. For good, so this case is the last."""
    level = pathlib.Path("/sys/kernel/security/lockdown")
    expect(level.exists(), "this kernel has no lockdown, or securityfs is not mounted")
    if "[confidentiality]" not in level.read_text(encoding="ascii"):
        level.write_text("confidentiality", encoding="ascii")
    status, out, err = daemon_once(run, "--print=json", "--config", "/dev/null")
    expect(status not in (0, None) and not out, f"status {status}, standard output '{out}'")
    line = one_line(err)
    expect("locked down" in line, f"the line does not say why: '{line}'")
    return json.dumps(line)
