"""JVMs by how they were started: their options stand wherever HotSpot reads some, and their programs are not java."""

import os
import subprocess

import apps
from cases_chains import judge_chain, java_chain, need
from cases_jvm_attach import AUTO, DUMP, await_agent, expect_untouched
from harness import Skip, expect, scaled

VERSIONS = ("8", "11", "17", "21", "25")
NO_DATA = "-XX:-UsePerfData"
ATTACH_OFF = "-XX:+DisableAttachMechanism"
IS_OFF = "not loaded: its attach mechanism is off"


def options_of(run, version):
    """Options and environment by name, with what becomes of the agent. None of these JVMs has performance data in a file."""
    words, flags = run.directory / f"words-{version}", run.directory / f"flags-{version}"
    words.write_text(f"{NO_DATA} {ATTACH_OFF}\n")
    flags.write_text("+DisableAttachMechanism\n-UsePerfData\n")
    cases = {
        "private": (["-XX:+PerfDisableSharedMem"], {}, "in use"),
        "none": ([NO_DATA], {}, "in use"),
        "serial": ([NO_DATA, "-XX:+UseSerialGC"], {}, "in use"),
        "parallel": ([NO_DATA, "-XX:+UseParallelGC"], {}, "in use"),
        "variable": ([], {"JAVA_TOOL_OPTIONS": f"{NO_DATA} {ATTACH_OFF}"}, IS_OFF),
        "old-variable": ([], {"_JAVA_OPTIONS": f"{NO_DATA} {ATTACH_OFF}"}, IS_OFF),
        "flags-file": ([f"-XX:Flags={flags}"], {}, IS_OFF),
        "only-named": ([NO_DATA, f"-Dnote={ATTACH_OFF}"], {}, "in use"),
        "off-and-on": ([NO_DATA, ATTACH_OFF, "-XX:-DisableAttachMechanism"], {}, "in use"),
    }
    if version != "8":
        cases |= {
            "launcher-variable": ([], {"JDK_JAVA_OPTIONS": f"{NO_DATA} {ATTACH_OFF}"}, IS_OFF),
            "argument-file": ([f"@{words}"], {}, IS_OFF),
            "options-file": ([f"-XX:VMOptionsFile={words}"], {}, IS_OFF),
            "load-off": ([NO_DATA, "-XX:-EnableDynamicAgentLoading"], {}, "not loaded: it loads no agents"),
        }
    return cases


def flags_of(run, version, home):
    cases = options_of(run, version)
    processes = {name: run.app(f"{name}-{version}", apps.java("Back", "{port}", "{log}", home=home, options=options),
                               log=False, env={**os.environ, **env}, ready=None)
                 for name, (options, env, _) in cases.items()}
    for process in processes.values():
        process.wait_for("ready")
    daemon = run.daemon(run.config(AUTO), name=f"daemon-{version}")
    for name, (_, env, wanted) in cases.items():
        await_agent(daemon, processes[name], wanted, 40)
        expect(DUMP not in processes[name].stdout, f"{name}: a thread dump")
        if not env:  # of a variable the JVM itself says that it picked it up
            expect_untouched(processes[name])
    daemon.stop()
    for process in processes.values():
        process.stop()
    return len(cases)


def case_jvm_attach_flags(run):
    """JVMs of every version without performance data: their flags tell whether they take an agent, wherever they came from."""
    homes = {version: apps.java_home(version) for version in VERSIONS}
    done = {version: flags_of(run, version, home) for version, home in homes.items() if home}
    return ", ".join(f"Java {version}: {n} ways" for version, n in done.items())


def case_jvm_attach_private(run):
    """The performance data is in no file (-XX:+PerfDisableSharedMem), as is usual with Kafka and Elasticsearch: every call right."""
    front, back = java_chain(run, None, "handover", 16, options=["-XX:+PerfDisableSharedMem"])
    daemon = run.daemon(run.config(AUTO))
    for process in (front, back):
        await_agent(daemon, process)
        expect_untouched(process)
    run.load(front.port, scaled(1_000), 16, traceparent=20)
    return judge_chain(run, daemon, front, back)


def embedder():
    include = next((home / "include" for home in map(apps.java_home, VERSIONS)
                    if home and (home / "include/jni.h").exists()), None)
    if not include:
        raise Skip("no jni.h here")
    return apps.c_program("embed", flags=["-I", include, "-I", include / "linux", "-ldl"])


def jvm_libraries():
    """Those that this host's own C library can load."""
    homes = {version: apps.java_home(version) for version in ("17", "21", "25")}
    return {version: next(home.resolve().rglob("server/libjvm.so")) for version, home in homes.items() if home}


def packaged(run, main):
    """An application as jpackage makes it: a launcher of its own, and a JVM in a folder beside it."""
    if not apps.have("jpackage") or not apps.have("jlink"):
        return None
    jar, runtime, out = run.directory / "in" / "shop.jar", run.directory / "runtime", run.apps / "packaged"
    jar.parent.mkdir()
    subprocess.run(["jar", "cf", jar, "-C", apps.java_classes(), "."], check=True)
    for command in (["jlink", "--add-modules", "java.base,jdk.httpserver,java.net.http", "--output", runtime],
                    ["jpackage", "--type", "app-image", "--name", "shop", "--input", jar.parent, "--main-jar", jar.name,
                     "--main-class", main, "--runtime-image", runtime, "--dest", out]):
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    return out / "shop/bin/shop"


def case_jvm_attach_embedded(run):
    """Programs that are not java and have a JVM in them: attached to if SIGQUIT is the JVM's, and left alone if it is theirs."""
    need("java", "javac", "cc")
    expected = {"leave": "in use", "take": "not loaded: it does not listen for tools, and has a use of its own for the signal"}
    program, processes = embedder(), {}
    for version, library in jvm_libraries().items():
        for quits in expected:
            for kind, options in (("data", ""), ("none", NO_DATA)):
                words = [program, library, quits, apps.java_classes(), "Back", "{port}", "{log}"]
                processes[f"{quits}-{kind}-{version}"] = run.app(f"{quits}-{kind}-{version}", words, log=False, env={
                    **os.environ, "JAVA_TOOL_OPTIONS": options})
    launcher = packaged(run, "Back")
    if launcher:
        processes["packaged"] = run.app("packaged", [launcher, "{port}", "{log}"], log=False)
    daemon = run.daemon(run.config(AUTO))
    for name, process in processes.items():
        await_agent(daemon, process, expected.get(name.split("-")[0], "in use"), 40)
        process.expect_running()
        expect(DUMP not in process.stdout and "SIGQUIT" not in process.stdout, f"{name} was signalled: {process.stdout!r}")
    daemon.stop()
    return f"{len(processes)} programs{'' if launcher else ', no jpackage here'}"
