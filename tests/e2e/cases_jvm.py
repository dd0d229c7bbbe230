"""JVMs with the agent in them: requests that are handed over keep their calls, whoever makes them. Absent is a failure."""

import apps
from cases_chains import java_chain, judge_chain
from cases_jvm_attach import AUTO, await_agent
from harness import Skip, scaled


def chain(run, mode, threads=16, home=None):
    front, back = java_chain(run, home, mode, threads)
    daemon = run.daemon(run.config(AUTO))
    for process in (front, back):
        await_agent(daemon, process)
    run.load(front.port, scaled(3_000), 32, traceparent=20)
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
