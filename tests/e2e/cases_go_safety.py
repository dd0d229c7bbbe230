"""Go programs that are hard on whoever probes them: what they answer is the same with the daemon and without, every
parent is right (each is a hit of the probe: nothing else leads from a call to its request), and their code is again
that of their file when the daemon has ended. Used by tests/go/safety too, which repeats it with other toolchains."""

import http.client
import threading
import time

import apps
from cases_chains import chain_hops, need
from cases_go import is_warming, warm
from harness import expect, expect_true, wait_until
from judge import expand

MODES = ["same", "child", "deep", "panic", "gc", "many", "locked", "exec", "sum"]  # of tests/apps/go/hard.go, most
THREADS = 8
LAST = 5  # of each mode, when the daemon has ended


class Asked:
    """What a front answered, as a log for the judge and as a transcript of what does not depend on the time."""

    def __init__(self):
        self.lock = threading.Lock()
        self.log, self.transcript = {}, {}

    def note(self, path, status, told, start):
        request = path.rsplit("/", 1)[1]
        with self.lock:
            self.log["client", request] = {"id": request, "path": path, "status": status, "start": start,
                                           "end": time.time_ns()}
            self.transcript[path] = status, told

    def ask(self, port, paths):
        """One after the other, over one connection as long as the front keeps it. Status -1: closed in place of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for path in paths:
            start = time.time_ns()
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                status, told = answer.status, (answer.getheader("Checksum"), answer.read())
            except (http.client.HTTPException, ConnectionError) as error:
                status, told = -1, type(error).__name__
                connection.close()
            self.note(path, status, told, start)
        connection.close()


def ask_all(port, numbers):
    """A request of each mode and number."""
    asked = Asked()
    paths = [f"/{mode}/{mode}-{n}" for n in numbers for mode in MODES]
    threads = [threading.Thread(target=asked.ask, args=(port, paths[i::THREADS])) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(len(asked.transcript) == len(paths), f"only {len(asked.transcript)} of {len(paths)} requests had an outcome")
    return asked


def start(run, program, name):
    back = run.app(f"{name}back", [program, "back", "{port}", "{log}"])
    front = run.app(f"{name}front", [program, "front", "{port}", "{log}", back.port, ",".join(MODES)])
    return front, back


def changed_text(pid, program):
    """How many bytes of a process's code are not those of its program's file."""
    changed = 0
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(program, "rb") as file, \
            open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            addresses, access, offset, *_, name = line.split()
            if name != str(program) or "x" not in access:
                continue
            first, last = (int(address, 16) for address in addresses.split("-"))
            file.seek(int(offset, 16))
            memory.seek(first)
            code = file.read(last - first)
            expect(len(code) > 1 << 20, f"only {len(code)} bytes of code in {program}")
            changed += sum(a != b for a, b in zip(code, memory.read(len(code))))
    return changed


def expected_of(run, front, back, asked):
    logs = {**run.read_logs(), "load": asked.log}
    expected = expand(chain_hops(front, back), logs)
    for one in expected:
        mode, _ = one.request.split("-")
        if one.path.startswith("/x/"):
            one.path = f"/{mode}/{one.request}"
            one.status = None if one.status == -1 else one.status
            one.inner = None if one.status is None else one.inner
    return expected


def safety(run, program, requests):
    """Judges what a front says and does without the daemon and with it."""
    front, _ = start(run, program, "alone-")
    alone = ask_all(front.port, range(requests + LAST)).transcript
    run.stop_apps()
    closed = [path for path, (status, _) in alone.items() if status == -1]
    expect(closed and all("/panic/" in path for path in closed), f"without an answer: {closed[:5]}")

    front, back = start(run, program, "")
    daemon = run.daemon()
    warm(front.port, "/child/")
    asked = ask_all(front.port, range(requests))
    different = [path for path, told in asked.transcript.items() if told != alone[path]]
    expect(not different, f"{len(different)} answers are different: {different[:5]}")
    time.sleep(1.5)
    probed = changed_text(front.pid, program)
    expect(probed == 4, f"{probed} bytes of code are changed while there are four probes")
    daemon.end()
    # another daemon of this host, as other tests start them, may have its probe there for a while
    wait_until(lambda: not any(changed_text(process.pid, program) for process in (front, back)), 20,
               "code as in the file when the daemon has ended")
    again = ask_all(front.port, range(requests, requests + LAST)).transcript
    different = [path for path, told in again.items() if told != alone[path]]
    expect(not different, f"{len(different)} answers are different after the daemon's end: {different[:5]}")
    run.stop_apps()
    spans = [s for s in daemon.spans() if s["pid"] in (front.pid, back.pid) and not is_warming(s)]
    return expect_true(spans, expected_of(run, front, back, asked))


def case_go_safety(run):
    """Deep stacks, panics, collections, 10,000 goroutines, threads that end, forks: as without the daemon, and right."""
    need("go")
    return safety(run, apps.go_chain(), 60)
