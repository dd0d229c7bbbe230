"""Go programs whose file is written to in place, as cp(1) and scp(1) do: the file is the same one, its code is not."""

import shutil
import signal
import subprocess
import threading
import time

import apps
from cases_chains import need
from cases_images import judge_fronts
from cases_go import warm
from cases_go_safety import changed_text
from harness import expect, wait_until

VERSIONS = 4
STOPPED_S = 1.0


def write_anew(daemon, version, program):
    """Copies it over the program while the daemon, for a time, hears of nothing. How long that took."""
    waker = threading.Timer(STOPPED_S, daemon.popen.send_signal, [signal.SIGCONT])
    start = time.monotonic()
    waker.start()
    subprocess.run(["cp", version, program], check=True)
    waker.cancel()
    return time.monotonic() - start


def wait_for_probes(front, program, n):
    wait_until(lambda: changed_text(front.pid, program) == n, 20, f"{n} probes in {front.name}")


def case_go_rewritten(run):
    """The next version is copied over a program's file when its last process has ended: the probes are gone before it is
    written, it runs, and every parent is right."""
    need("go")
    versions = [apps.go_chain(), apps.go_chain_pie()]
    program = run.directory / "program"
    shutil.copy(versions[0], program)
    back = run.app("back", [apps.go_chain(), "back", "{port}", "{log}"])
    daemon = run.daemon()
    fronts, waits = [], []
    for n in range(VERSIONS):
        if fronts:
            daemon.popen.send_signal(signal.SIGSTOP)
            expect(fronts[-1].stop() == 0, f"{fronts[-1].name} ended with {fronts[-1].popen.returncode}")
            waits.append(write_anew(daemon, versions[n % 2], program))
            daemon.popen.send_signal(signal.SIGSTOP)
        front = run.app(f"front{n}", [program, "front", "{port}", "{log}", back.port, "child"])
        changed = changed_text(front.pid, program)
        expect(not changed or not fronts, f"{changed} probes of the last version are in front{n}")
        daemon.popen.send_signal(signal.SIGCONT)
        fronts.append(front)
        wait_for_probes(front, program, 1)
        warm(front.port, name=f"warm-{n}")
        wait_for_probes(front, program, 4)
        run.load(front.port, 200, 4, name=f"load-{front.name}", id=front.name)
    expect(max(waits) < STOPPED_S + 2, f"who wrote to the file waited {waits} s")
    return f"{judge_fronts(run, daemon, fronts, back)}, who wrote to the file waited {max(waits):.2f} s at most"
