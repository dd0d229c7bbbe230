"""JVMs with the agent in them: requests that are handed over keep their calls, whoever makes them. Absent is a failure."""

import signal
import time

import apps
import judge
from cases_chains import java_chain, judge_chain, need
from cases_jvm_attach import AUTO, await_agent
from containers import status_field
from harness import PATIENCE, Skip, expect, scaled, wait_until


def chain(run, mode, threads=16, home=None, size=(3_000, 32)):
    """'size': requests, and connections that they come over."""
    front, back = java_chain(run, home, mode, threads)
    daemon = run.daemon(run.config(AUTO))
    for process in (front, back):
        await_agent(daemon, process)
    run.load(front.port, scaled(size[0]), size[1], traceparent=20)
    return judge_chain(run, daemon, front, back)


def case_jvm_handover(run):
    """Another thread of the pool calls and answers."""
    return chain(run, "handover")


def case_jvm_handover_2(run):
    """The same in a pool of two, where the receiver often answers by chance."""
    return chain(run, "handover", 2)


def case_jvm_future(run):
    """A CompletableFuture's job calls, what depends on it answers."""
    return chain(run, "future")


def case_jvm_scheduled(run):
    """A job that runs 1 ms later calls and answers."""
    return chain(run, "scheduled")


def case_jvm_thread(run):
    """A thread of its own for each call."""
    return chain(run, "thread")


def case_jvm_queue(run):
    """Two threads that the first request starts take everybody's jobs from a queue."""
    return chain(run, "queue")


def case_jvm_timer(run):
    """A Timer's one thread does all calls."""
    return chain(run, "timer")


def case_jvm_client(run):
    """java.net.http's sendAsync(): its own threads write and read."""
    return chain(run, "client")


def case_jvm_same(run):
    """The thread that received the request calls and answers: nothing is held back or in doubt."""
    return chain(run, "same", 64)


def case_jvm_long(run):
    """What was called below a request can be read within 1 s, also if that goes on."""
    front, back = java_chain(run, None, "long")
    daemon = run.daemon(run.config(agent=None))
    for process in (front, back):
        await_agent(daemon, process)
    load = run.load_start(front.port, 16, 16)
    wait_until(lambda: daemon.stdout.count("/back/") == 2 * 16, 5, "the calls' spans", 0.005)
    shown = time.time() - max(span["end_unix_nano"] for span in judge.read_spans(daemon.stdout_path)) / 1e9
    expect("/x/" not in daemon.stdout and load.running(), "the requests above them were over by then")
    expect(shown < 1.0 * PATIENCE, f"printed {shown:.2f} s after the last of them ended")
    expect("goroutine" not in daemon.stdout, "threads of a JVM are no goroutines")
    status = load.wait(10)
    expect(status == 0, f"load: {load.stdout}")
    return f"the last printed after {shown:.2f} s; {judge_chain(run, daemon, front, back)}"


def virtual(run, version):
    home = apps.java_home(version)
    if not home:
        raise Skip(f"no Java {version} here")
    return chain(run, "virtual", home=home)


def case_jvm21_virtual(run):
    """A virtual thread for each request."""
    return virtual(run, "21")


def case_jvm25_virtual(run):
    """The same; a virtual thread that waits for a monitor no longer holds its carrier."""
    return virtual(run, "25")


def system_calls(run, front, name):
    """By kind, what the service's threads call for 1,000 requests, one after the other."""
    tracer = run.start(f"strace-{name}", ["strace", "-f", "-q", "-c", "-S", "name", "-U", "calls,name", "-p", front.pid,
                                          "-o", run.directory / name], ready=None)
    wait_until(lambda: status_field(front.pid, "TracerPid") != ["0"], 5, "strace watches")
    run.load(front.port, 1_000, 1, name=f"load-{name}", id=name)
    tracer.stop(signal_number=signal.SIGINT)
    lines = [line.split() for line in (run.directory / name).read_text().splitlines()]
    return {words[1]: int(words[0]) for words in lines if len(words) == 2 and words[0].isdigit() and words[1] != "total"}


def case_jvm_system_calls(run):
    """The agent makes no system call: of each kind the service calls as many with it as without it."""
    need("strace")
    front, _ = java_chain(run, None, "handover", 16)
    run.load(front.port, 2_000, 1, name="load-warm", id="warm")
    without = system_calls(run, front, "without")
    daemon = run.daemon(run.config(AUTO))
    await_agent(daemon, front)
    run.load(front.port, 2_000, 1, name="load-warm-again", id="again")
    having = system_calls(run, front, "with")
    # The JVM's own threads call these, and a few others now and then: they wait, and look after memory.
    own = {"futex", "restart_syscall", "sched_yield", "madvise", "mprotect", "munmap", "mmap", "getrusage", "gettid"}
    more = {name: (without.get(name, 0), n) for name, n in having.items()
            if name not in own and n > without.get(name, 0) * 1.02 + 250}
    expect(without.get("read", 0) + without.get("recvfrom", 0) >= 1_000, f"counted {without}")
    expect(not more, f"more with the agent: {more}")
    waits = without.get("futex", 0), having.get("futex", 0)
    expect(waits[1] < 1.1 * waits[0] + 100, f"futex {waits}")
    return f"{sum(without.values())} without, {sum(having.values())} with it, in 1,000 requests; futex {waits}"
