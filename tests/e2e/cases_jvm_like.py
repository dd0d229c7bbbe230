"""What is like a JVM that takes an agent, and is none: it is traced as what it is, and never signalled."""

import pathlib
import shutil
import signal
import subprocess
import time

import apps
from cases_chains import need
from cases_containers import expect_process
from cases_identity import requests_of
from cases_jvm_attach import AUTO, agent_of, await_agent, back_end, files_of
from containers import status_field
from harness import expect, expect_true, wait_until


def fake_library(run, name):
    library = run.apps / name
    subprocess.run(["cc", "-shared", "-x", "c", "-", "-o", library], input=b"int nothing_of_a_jvm;\n", check=True)
    return library


def perfdata_of_a_jvm(run):
    """What a real one says of itself: it may be attached to, and no option of it forbids a thing."""
    java = back_end(run, "real")
    found = pathlib.Path(f"/tmp/hsperfdata_root/{java.pid}")
    copy = run.directory / "perfdata"
    wait_until(lambda: b"sun.rt.jvmCapabilities" in found.read_bytes(), 5, "performance data of a JVM")
    shutil.copy(found, copy)
    java.stop()
    return copy


def named_java(run, folder, program):
    """A copy called java: so are the programs that may be asked."""
    (run.apps / folder).mkdir()
    return shutil.copy(program, run.apps / folder / "java")


def expect_no_signal(process, quits):
    """'quits': what it does with a SIGQUIT."""
    process.expect_running()
    expect(process.stdout == "ready\n", f"{process.name} was signalled: {process.stdout!r}")
    caught = int(status_field(process.pid, "SigCgt")[0], 16) >> (signal.SIGQUIT - 1) & 1
    expect(caught == (quits == "catch"), f"{process.name}: SIGQUIT is {'' if caught else 'not '}caught")
    expect(not files_of(process), f"{process.name}: left in its /tmp: {files_of(process)}")


def case_jvm_like(run):
    """OpenJ9, a native image, and what only maps a libjvm.so: no SIGQUIT, though it seems to be wanted; all traced."""
    need("java", "javac")
    perfdata = ["-p", run.apps, perfdata_of_a_jvm(run)]
    hotspot, openj9 = fake_library(run, "libjvm.so"), fake_library(run, "libj9vm29.so")
    like = apps.c_program("jvmlike")
    native = apps.c_program("jvmlike", "native-image", ["-DNATIVE_IMAGE", "-rdynamic"])
    cases = {  # program, what SIGQUIT does, more arguments, language, what is said of the agent
        "openj9": (like, "catch", [*perfdata, hotspot, openj9], "jvm",
                   "not loaded: OpenJ9 takes no agent that is loaded as HotSpot's are"),
        "native": (native, "default", perfdata, "other", ""),
        "deaf": (like, "default", [*perfdata, hotspot], "jvm", "not loaded yet: it is starting"),
    }
    processes = {name: run.app(name, [named_java(run, name, program), "{port}", quits, *more], log=False)
                 for name, (program, quits, more, _, _) in cases.items()}
    daemon = run.daemon(run.config(AUTO))
    expected = []
    for name, (_, _, _, language, _) in cases.items():
        expect_process(daemon, processes[name].pid, language=language, state="traced")
        requests_of(expected, processes[name], processes[name].pid, "like", 20)
    time.sleep(2)  # what is not a server at once is asked a second later
    for name, (_, quits, _, _, said) in cases.items():
        expect_no_signal(processes[name], quits)
        await_agent(daemon, processes[name], said)
        expect(said or not agent_of(daemon, processes[name]), f"{name}: it may have an agent")
        requests_of(expected, processes[name], processes[name].pid, "later", 5)
    time.sleep(1.2)
    counters = daemon.counters()
    expect(counters["jvm_agents_loaded"] == 0, f"jvm_agents_loaded {counters['jvm_agents_loaded']}")
    return expect_true([span for span in daemon.finish() if span["pid"] in run.pids()], expected, least=75)
