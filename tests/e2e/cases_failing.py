"""Calls that come to nothing: what the kernel side notes at their beginning is forgotten, however they end."""

import collections
import dataclasses
import json
import subprocess

import apps
from cases_chains import chain_hops
from cases_faults import bpftool, held_by
from cases_images import status_of
from harness import Failure, expect, expect_true, scaled, wait_until
from judge import expand, span_path

CHAINS, EXECS = 20, 3  # of threads that wait, and how often the program they are in starts anew
THREADS = 4             # that make calls which fail


def entries_of(number):
    done = subprocess.run(["bpftool", "-j", "map", "dump", "id", str(number)], capture_output=True, text=True, check=True)
    return len(json.loads(done.stdout))


def occupancy(daemon):
    """Entries of all maps of the daemon that are tables, by name."""
    mine = held_by(daemon.pid)
    found = {one["name"]: entries_of(one["id"]) for one in bpftool("map")
             if ("map", one["id"]) in mine and one["type"].endswith("hash")}
    expect({"procs", "requests", "units", "joins"} <= set(found), f"maps {found}")
    return found


def expect_flat(daemon, before, what, **more):
    """No table has more entries than it had, and those that there must be."""
    allowed, grown = {name: n + more.get(name, 0) for name, n in before.items()}, {}

    def is_flat():
        grown.clear()
        grown.update({name: (n, allowed[name]) for name, n in occupancy(daemon).items() if n > allowed[name]})
        return not grown

    try:
        wait_until(is_flat, 5, "", 0.3)
    except Failure:
        raise Failure(f"{what}: entries, and those before: {grown}") from None


def start(run, mode, *arguments, selected=True):
    name = run.apps / mode if selected else "not-selected"
    # without the witness, which would look at memory that is not there
    return run.start(mode, ["env", "-u", "LD_PRELOAD", apps.c_program("failing"), mode, name, *arguments],
                     stdin=subprocess.PIPE)


def calls_of(run, daemon, before, mode, n, selected, **more):
    """The program's calls: no more than 'more' of them is in the tables while it lives, and nothing afterwards."""
    process = start(run, mode, n, selected=selected)
    wait_until(lambda: status_of(daemon)["processes"]["traced"] == 2 + selected, 5, "it is judged")
    expect(process.command("go", 120) == "done", "its calls did not go as planned")
    expect_flat(daemon, before, mode, procs=int(selected), **more)
    process.kill()
    expect_flat(daemon, before, mode)


def hung(run, daemon, before):
    """Threads that are killed inside calls: by their program's starting anew, and by its end."""
    process = start(run, "hang", CHAINS, EXECS)
    full = occupancy(daemon)
    expect(full["requests"] == full["joins"] == CHAINS, f"entries while they wait: {full}")
    process.kill()


def case_failing_calls(run):
    """Calls that fail early, threads that are killed inside calls, many calls of a process that is not selected:
    no table fills, and services are traced in full."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    front = run.app("front", apps.python("threaded.py", "{port}", "{log}", back.port))
    daemon = run.daemon()
    run.load(front.port, 200, 8)
    wait_until(lambda: status_of(daemon)["connections"] == 0, 10, "no connection")
    before = occupancy(daemon)
    expect(before["requests"] == before["joins"] == 0, f"entries of requests that are over: {before}")
    calls_of(run, daemon, before, "calls", scaled(8_000), selected=True, joins=THREADS)  # requests that nobody reads
    calls_of(run, daemon, before, "busy", scaled(200_000), selected=False)
    hung(run, daemon, before)
    expect_flat(daemon, before, "hang")
    run.load(front.port, 200, 8, name="load-after", id="after")
    run.stop_apps()
    spans = daemon.finish()
    odd = collections.Counter((span_path(span), span["kind"], span["attributes"].get("error.type")) for span in spans
                              if span["pid"] not in (front.pid, back.pid))
    ended = {("/unread", "client", "process_exit"): THREADS,
             ("/hang", "client", "process_exit"): 2 * CHAINS * (EXECS + 1),
             ("/hang", "server", "process_exit"): CHAINS * (EXECS + 1)}
    expect(odd == ended, f"spans of what came to nothing: {odd}")
    logs = run.read_logs()
    hops = chain_hops(front, back)
    expected = expand(hops, logs)
    hops[0] = dataclasses.replace(hops[0], outer="load-after")
    expected += expand(hops, logs, load="load-after")
    outcome = expect_true([span for span in spans if span["pid"] in (front.pid, back.pid)], expected, least=1_200)
    return f"{outcome}; tables as before: {before}"
