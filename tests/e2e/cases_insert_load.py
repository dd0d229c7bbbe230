"""Insertion's programs on their way into the kernel: when they are loaded, that nobody waits for them, and what comes of
it when the daemon ends meanwhile."""

import json
import os
import random
import signal
import time

import apps
from cases_chains import chain_hops, go_chain, need
from cases_faults import bpf_objects, expect_bpf_objects
from cases_insert import ON, expect_headers, need_propagation, propagation, socket_maps
from harness import PATIENCE, expect, expect_true, wait_until
from judge import expand

READY_WITHIN = 5     # seconds, from the first Go process to its first header
ANSWER_WITHIN = 0.3  # of the control socket, which the daemon's loop answers
TAKEN_IN_NS = int(0.3e9 * PATIENCE)  # for connections that are there
ROUNDS = 12


def case_insert_first(run):
    """Nothing of it is loaded before there is a Go process, and soon after there is; meanwhile the daemon answers."""
    need("go")
    python = run.app("python", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon(config=run.config(ON))
    run.load(python.port, 50, 4, name="load-python")
    time.sleep(1)
    expect(not socket_maps(daemon), "a map of sockets without a Go process")
    expect("no Go process" in (propagation(daemon) or ""), f"without a Go process: {propagation(daemon)}")
    front, _ = go_chain(run)
    begin, answers, said = time.monotonic(), [0], set()
    while (why := propagation(daemon)) and time.monotonic() < begin + 10 * PATIENCE:
        said.add(why)
        asked = time.monotonic()
        daemon.control("status")
        answers.append(time.monotonic() - asked)
        if "will not carry" in daemon.stderr:
            need_propagation(daemon)
    took = time.monotonic() - begin
    expect("loading" in said, f"said meanwhile: {said}")
    expect(took < READY_WITHIN * PATIENCE, f"there after {took:.1f} s")
    expect(max(answers) < ANSWER_WITHIN * PATIENCE, f"an answer took {max(answers):.3f} s")
    run.load(front.port, 200, 8)
    lines = daemon.counters()["inserted"]
    expect(lines == 200, f"{lines} lines of 200")
    return f"there after {took:.2f} s; the longest answer meanwhile took {max(answers):.3f} s"


def case_insert_loading(run):
    """Requests that are made while it is loaded have their spans, and soon after all have their header too, on the same
    connections."""
    need("go")
    front, back = go_chain(run)
    daemon = run.daemon(config=run.config(ON))
    expect(propagation(daemon) == "loading", f"behind the start: {propagation(daemon)}")
    load = run.load_start(front.port, 3_000, 8, rate=1_000)
    need_propagation(daemon)
    there = time.time_ns()
    expect(load.wait(60) == 0, f"load: {load.stdout.strip()}")
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids()]
    logs = run.read_logs()
    n = expect_headers(run, spans, may_lack=True)
    later = {request for (_, request), record in logs["load"].items() if record["start"] > there + TAKEN_IN_NS}
    lacking = [request for (_, request), record in logs["back"].items() if request in later and not record["headers"]]
    expect(later and not lacking, f"{len(lacking)} of the {len(later)} later ones have no header, {lacking[:3]}")
    expect(n < 3_000, "none was made while it was loaded")
    return f"{n} headers; {expect_true(spans, expand(chain_hops(front, back), logs))}"


def case_insert_ending(run):
    """SIGTERM while it is loaded, at any moment: a clean end that waits for nothing, and nothing is left."""
    need("go", "bpftool")
    front, _ = go_chain(run)
    before = bpf_objects(run)
    load = run.load_start(front.port, 1_000_000, 4, rate=300, seconds=200)
    states, slowest = {}, 0
    for i in range(ROUNDS):
        daemon = run.daemon(config=run.config(ON), name=f"tsunagid{i}", runtime=f"run-{i}")
        time.sleep(random.uniform(0, 0.1) + i * 0.05)
        why = (propagation(daemon) or "there").split(":")[0]
        states[why] = states.get(why, 0) + 1
        begin = time.monotonic()
        os.kill(daemon.pid, signal.SIGTERM)
        status = daemon.wait(10)
        slowest = max(slowest, time.monotonic() - begin)
        expect(status == 0, f"in state '{why}' it ended with {status}: {daemon.stderr}")
    load.expect_running()
    expect(states.get("loading"), f"never while it was loading: {states}")
    expect(slowest < 0.8 * PATIENCE, f"an end took {slowest:.2f} s")
    expect_bpf_objects(run, before)
    status = load.stop()
    expect(status == 0 and json.loads(load.stdout)["failed"] == 0, f"requests failed: {load.stdout}")
    return f"{states}; an end took {slowest:.2f} s at most"
