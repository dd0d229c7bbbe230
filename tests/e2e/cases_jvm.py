"""JVMs with the agent in them: requests that are handed over keep their calls, whoever makes them. Absent is a failure.

The agent is loaded by the JDK's own jcmd, before the daemon starts, which finds it and takes it into use.
"""

import json
import pathlib
import shutil
import subprocess

import apps
from cases_chains import java_chain, judge_chain
from harness import BIN, Skip, expect, scaled

AGENT = BIN.parent / "lib/tsunagi-agent.so"


def jcmd_of(home):
    program = pathlib.Path(home) / "bin/jcmd" if home else shutil.which("jcmd")
    if not program or not pathlib.Path(program).exists():
        raise Skip("no jcmd here")
    return program


def load_agent(process, home=None):
    done = subprocess.run([jcmd_of(home), str(process.pid), "JVMTI.agent_load", AGENT], capture_output=True, text=True,
                          timeout=60, check=False)
    expect("return code: 0" in done.stdout, f"the agent was not loaded: {done.stdout} {done.stderr}")


def state_of(daemon, process):
    return json.loads(daemon.control("processes", str(process.pid), "--json"))["processes"][0].get("agent")


def chain(run, mode, threads=16, home=None, before=0):
    front, back = java_chain(run, home, mode, threads)
    if before:  # connections, threads and jobs that are older than the agent
        run.load(front.port, before, 32, name="load-before", id="before")
    load_agent(front, home)
    daemon = run.daemon()
    expect(state_of(daemon, front) == "in use", f"the agent: {state_of(daemon, front)}")
    expect(state_of(daemon, back) is None, "an agent where there is none")
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


def case_jvm25_virtual(run):
    """A virtual thread for each request."""
    home = apps.java25_home()
    if not home:
        raise Skip("no Java 25 here")
    return chain(run, "virtual", home=home)
