"""Go programs that were built with a profile (-pgo, Go 1.21): what is probed elsewhere may have no code of its own there.

The compiler puts what a profile has at the leaves of its stacks into their callers. A small function is there in one
sample of some thousands, so these profiles are not taken but made: each has two functions, one of which calls the other.
"""

import json
import re
import subprocess
import zlib

import apps
from cases_chains import chain_hops, go_chain, need
from cases_go import is_warming, warm, warmed_chain
from harness import expect, expect_true, scaled
from judge import expand

SERVING = ("net/http.(*conn).serve", "net/http.serverHandler.ServeHTTP")
READING = ("net/http.(*conn).serve", "net/http.(*conn).readRequest")
QUEUEING = ("runtime.newproc.func1", "runtime.runqput")
MAKING = ("runtime.newproc.func1", "runtime.newproc1")
MODES = {"same": False, "child": False, "context": False, "pool-context": False, "drain-embedded": False, "pool": True}


def listing(program, function):
    """Lines of its code: (line of the source, instruction)."""
    text = subprocess.run(["go", "tool", "objdump", "-s", f"^{re.escape(function)}$", program], capture_output=True, text=True,
                          check=True).stdout
    lines = [(int(m[1]), m[2]) for m in re.finditer(r"^ *\S+:(\d+)\s+0x[0-9a-f]+\s+[0-9a-f]+\s+(.*?)\s*$", text, re.M)]
    expect(lines, f"no {function} in {program}")
    return lines


def calls(program, edge):
    return any(code == f"CALL {edge[1]}(SB)" for _, code in listing(program, edge[0]))


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def field(number, value):
    """Of a protocol buffer: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def profile_of(program, edges):
    """A CPU profile (pprof's profile.proto) in which each of the calls is hot."""
    strings, out = ["", "samples", "count", "cpu", "nanoseconds"], b""
    for type_, unit in ((1, 2), (3, 4)):
        out += field(1, field(1, type_) + field(2, unit))
    for i, edge in enumerate(edges):
        code = listing(program, edge[0])
        line = next(line for line, text in code if text == f"CALL {edge[1]}(SB)")
        starts = [code[0][0], listing(program, edge[1])[0][0]]
        for k, (name, start, at) in enumerate(zip(edge, starts, (line, starts[1]))):
            number = 2 * i + k + 1
            out += field(5, field(1, number) + field(2, len(strings)) + field(3, len(strings)) + field(5, start))
            out += field(4, field(1, number) + field(4, field(1, number) + field(2, at)))
            strings.append(name)
        out += field(2, field(1, 2 * i + 2) + field(1, 2 * i + 1) + field(2, 1_000) + field(2, 10_000_000_000))
    for string in strings:
        out += field(6, string.encode())
    return zlib.compress(out, wbits=31)


def chain_with(name, *edges):
    """The chain with each of the functions in its caller."""
    need("go")
    profile = apps.CACHE / f"{name}.profile"
    made = profile_of(apps.go_chain(), edges)
    if not profile.exists() or profile.read_bytes() != made:
        profile.write_bytes(made)
    program = apps.go_chain_inlined(name, profile)
    left = [edge for edge in edges if calls(program, edge)]
    expect(not left, f"the compiler has left {left}")
    return program


def case_go_inlined(run):
    """Where requests are served and where goroutines begin a function is missing: every parent is right, but for those of
    a pool's calls, which are absent."""
    program = chain_with("chain-inlined", SERVING, QUEUEING)
    expect(calls(program, READING) and calls(program, MAKING), "more than that is missing")
    return ", ".join(
        f"{mode}: {warmed_chain(run, [mode], requests=1_000, program=program, client_may_lack_parent=lacks)}"
        for mode, lacks in MODES.items())


def case_go_inlined_all(run):
    """Nothing is left to know new goroutines by: the handler's calls have parents, others have none, and it is said why."""
    program = chain_with("chain-inlined-all", QUEUEING, MAKING)
    front, back = go_chain(run, ["same,child"], program)
    daemon = run.daemon()
    warm(front.port, "/child/")
    for mode in ("same", "child"):
        run.load(front.port, scaled(500), 16, name=f"load-{mode}", id=mode, prefix=f"/{mode}/")
    why = json.loads(daemon.control("processes", str(front.pid), "--json"))["processes"][0]["no_parents"]
    expect("a build with a profile" in (why or ""), f"said: {why}")
    run.stop_apps()
    spans, expected = [span for span in daemon.finish() if span["pid"] in run.pids() and not is_warming(span)], []
    for mode in ("same", "child"):
        hops = chain_hops(front, back, client_may_lack_parent=mode == "child")
        hops[0].path, hops[0].outer = f"/{mode}/{{id}}", f"load-{mode}"
        expected += expand(hops, run.read_logs(), load=f"load-{mode}")
    return expect_true(spans, expected)
