"""The daemon's memory does not grow with what it looks at: programs with huge tables of symbols, names of services that
are as many as requests while the collector is slow, calls that come to nothing."""

import array
import contextlib
import os
import pathlib
import re
import shutil
import struct
import subprocess
import time

import apps
from cases_chains import need
from cases_faults import LOSS_COUNTERS, Sink
from cases_images import hops_of, status_of
from cases_insert import need_propagation
from cases_insert_memory import new_group, old_group
from harness import Skip, expect, expect_true, scaled, wait_until
from judge import expand
from wire import Wire

MB = 1 << 20
RESIDENT_MAX = 40 * MB  # of the daemon with hundreds of processes (docs/results/scale.md)
KEPT_MAX = 2 * MB       # of their symbols, which are hundreds
ENDED_BYTES = 6 << 10   # of a process and its names, for the 30 s that it is known after its end
GROUP_BYTES = 256 * MB
SENDING = ("queue_full", "spans_refused", "spans_unreachable", "spans_shutdown")
SHT_SYMTAB = 2
SECTION = struct.Struct("<IIQQQQIIQQ")  # elf(5), Elf64_Shdr
SYMBOL_WORDS = 6                        # of 32 bits in an Elf64_Sym, of which the first is st_name


def memory_of(daemon, field):
    """VmHWM: the most that was resident; VmRSS: what is, in bytes."""
    return int(re.search(rf"{field}:\s*(\d+)", pathlib.Path(f"/proc/{daemon.pid}/status").read_text())[1]) << 10


def symbols_repeated(program, to, size, build_id):
    """A copy of a Go program with another build id, whose symbols are there as often as makes it so large: each has its
    own name in a table of strings that has grown with them."""
    content = bytearray(program.read_bytes().replace(*build_id))
    at, = struct.unpack_from("<Q", content, 40)
    each, n = struct.unpack_from("<HH", content, 58)
    sections = [list(SECTION.unpack_from(content, at + i * each)) for i in range(n)]
    table = next(section for section in sections if section[1] == SHT_SYMTAB)
    texts = sections[table[6]]
    symbols = array.array("I", content[table[4]:table[4] + table[5]])
    strings = bytes(content[texts[4]:texts[4] + texts[5]])
    times = max(1, (size - len(content)) // (table[5] + texts[5]))
    names = symbols[::SYMBOL_WORDS]
    with open(to, "wb") as out:
        end = (len(content) + 15) & ~15
        out.seek(end)
        for copy in range(times):
            symbols[::SYMBOL_WORDS] = array.array("I", [name + copy * len(strings) for name in names])
            out.write(symbols.tobytes())
        table[4], table[5] = end, times * table[5]
        out.writelines(strings for _ in range(times))
        texts[4], texts[5] = table[4] + table[5], times * texts[5]
        for i, section in enumerate(sections):
            SECTION.pack_into(content, at + i * each, *section)
        out.seek(0)
        out.write(content)
    to.chmod(0o755)
    return to


def build_ids_of(program, n):
    """What to replace by what in each of n copies."""
    old = subprocess.run(["go", "tool", "buildid", program], capture_output=True, check=True).stdout.strip()
    return [(old, old[:-8] + b"%08d" % i) for i in range(n)]


def memory_group(name):
    """A group of processes with a limit of memory, of whichever version there is."""
    with contextlib.suppress(Skip):
        group = old_group(name)
        group.write("memory.limit_in_bytes", GROUP_BYTES)
        return group
    group = new_group(name)
    group.write("memory.max", GROUP_BYTES)
    return group


def memory_with(run, name, programs, back):
    """What a daemon comes to that meets these programs and 40 requests of each: spans, and memory at the most and then."""
    with memory_group(name) as group:
        daemon = run.daemon(before=group.inside(), name=name)
        with contextlib.suppress(Skip):
            need_propagation(daemon)
        fronts = [run.app(program.name, [program, "front", "{port}", "{log}", back.port]) for program in programs]
        wait_until(lambda: status_of(daemon)["processes"]["traced"] == len(fronts) + 1, 10, "all programs traced")
        for front in fronts:
            run.load(front.port, 40, 4, name=f"load-{front.name}", id=front.name)
        peak, now = memory_of(daemon, "VmHWM"), memory_of(daemon, "VmRSS")
        for front in fronts:
            front.stop()
        return [span for span in daemon.finish() if span["pid"] in run.pids()], fronts, peak, now


def case_memory_symbols(run):
    """Go programs of hundreds of MB, nearly all of it symbols: traced, and the daemon's memory is as with small ones."""
    need("go")
    program, n, size = apps.go_chain(), min(50, scaled(5)), min(300, scaled(100, 50)) * MB
    back = run.app("back", [program, "back", "{port}", "{log}"])
    ids = build_ids_of(program, 2 * n)
    small = [symbols_repeated(program, run.apps / f"small{i}", 0, ids[i]) for i in range(n)]
    large = [symbols_repeated(program, run.apps / f"large{i}", size, ids[n + i]) for i in range(n)]
    expect(min(one.stat().st_size for one in large) > size * 0.9, "the programs are not so large")
    _, _, _, before = memory_with(run, "small", small, back)
    spans, fronts, peak, now = memory_with(run, "large", large, back)
    run.stop_apps()
    logs = run.read_logs()
    expected = [one for front in fronts for one in expand(hops_of(front, back), logs, load=f"load-{front.name}")]
    outcome = expect_true(spans, expected, least=120 * n)
    text = (f"{n} programs of {size // MB} MB: at most {peak / MB:.1f} MB, then {now / MB:.1f}, with small ones "
            f"{before / MB:.1f}")
    expect(peak <= RESIDENT_MAX and now <= before + KEPT_MAX, text)
    return f"{outcome}; {text}"


class Late:
    """A collector that takes what it is sent, and says so late. Has the numbers of the requests it got."""

    def __init__(self, seconds):
        self.seconds, self.taken, self.mixed = seconds, set(), []
        self.sink = Sink(self.behave)

    def behave(self, connection):
        reader = connection.makefile("rb")
        while line := reader.readline():
            length = 0
            while line := line.strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line[15:])
                line = reader.readline()
            body = reader.read(length)
            paths, names = (set(re.findall(text, body)) for text in (rb"/named/(\d+)\.", rb"service-(\d+)\."))
            if paths != names:
                self.mixed.append((sorted(paths), sorted(names)))
            time.sleep(self.seconds)
            self.taken |= paths
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n")


def traced(daemon, n):
    wait_until(lambda: status_of(daemon)["processes"]["traced"] == n, 20, f"{n} traced processes")


def serve_once(run, daemon, program, numbers):
    """A process for each number, with a service name of its own; each answers one request."""
    started = []
    try:
        for number in numbers:
            port = run.port()
            process = subprocess.Popen([program, str(port), "default"], stdout=subprocess.PIPE,
                                       env={**os.environ, "OTEL_SERVICE_NAME": f"service-{number}."})
            started.append((number, port, process))
        for _, _, process in started:
            expect(process.stdout.readline() == b"ready\n", "a service does not start")
        traced(daemon, len(started))
        for number, port, _ in started:
            with Wire(port) as wire:
                wire.request(f"/named/{number}.")
    finally:
        for _, _, process in started:
            process.kill()
            process.communicate()
    traced(daemon, 0)


def case_memory_service_names(run):
    """As many service names as requests, and a collector that nearly takes too long: bounded memory, each span exported
    or counted as lost."""
    is_long = scaled(1) >= 10
    n, each, seconds, timeout = scaled(100, 50), 50, 9.9 if is_long else 0.9, 10 if is_long else 1
    program = shutil.copy(apps.c_program("jvmlike"), run.apps / "named")
    late = Late(seconds)
    queue = min(n // 4, 256)
    daemon = run.daemon(run.config(endpoint=f"http://127.0.0.1:{late.sink.port}", extra=f"export: {{timeout: {timeout}s, "
                                   f"queue_spans: {queue}, batch_spans: {queue // 4}}}\n"), arguments=())
    before = memory_of(daemon, "RssAnon")
    highest = 0
    for first in range(0, n, each):
        serve_once(run, daemon, program, range(first, min(first + each, n)))
        highest = max(highest, memory_of(daemon, "RssAnon"))

    def account():
        counters = daemon.counters()
        lost = {name: counters[name] for name in (*SENDING, *LOSS_COUNTERS) if counters.get(name)}
        return counters["spans_exported"], lost

    wait_until(lambda: account()[0] + sum(account()[1].values()) >= n, 10 * timeout, "each request is accounted for", 0.2)
    highest = max(highest, memory_of(daemon, "RssAnon"))
    exported, lost = account()
    daemon.end()
    late.sink.close()
    text = f"{n} requests = {exported} exported + lost {lost}; at most {(highest - before) >> 10} KB more than before"
    expect(exported + sum(lost.values()) == n and exported and lost.get("queue_full"), text)
    expect(exported <= len(late.taken) <= n and not late.mixed, f"{text}; {len(late.taken)} came, mixed {late.mixed[:2]}")
    expect(highest - before <= MB + n * ENDED_BYTES, text)
    return text
