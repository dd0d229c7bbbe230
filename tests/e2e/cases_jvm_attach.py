"""The daemon loads the agent into JVMs by itself, leaves those alone that take none, and says why."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import time

import apps
from cases_chains import chain_hops, java_chain, judge_chain, need
from cases_identity import requests_of
from containers import Container, cgroup_root, status_field
from harness import PATIENCE, Failure, Skip, expect, expect_true, scaled, wait_until
from judge import expand, read_spans, span_path

AUTO = "jvm:\n  agent: auto\n"
# What is received in this time from when the agent is in use may still be handed on by methods that began before.
SETTLES_NS = 500_000_000
# What JDK 21 and later print for any agent that is loaded into a running JVM.
LOADED = re.compile("^WARNING: (A JVM TI agent has been loaded|If a serviceability tool|Dynamic loading of agents)")
DUMP = "Full thread dump"
CAP_NET_BIND_SERVICE = 10  # include/uapi/linux/capability.h
# A mount namespace with a /tmp of its own: options of its mount, the folder to keep, what to do there, the program.
OWN_TMP = ('mount --make-rprivate / && mount --bind "$2" /mnt && mount -t tmpfs -o "$1" none /tmp && mkdir -p "$2" && '
           'mount --move /mnt "$2" && eval "$3" && shift 3 && exec "$@"')


def agent_of(daemon, process):
    return json.loads(daemon.control("processes", str(process.pid), "--json"))["processes"][0].get("agent") or ""


def await_agent(daemon, process, wanted="in use", seconds=20):
    try:
        wait_until(lambda: agent_of(daemon, process).startswith(wanted), seconds, "it")
    except Failure:
        raise Failure(f"{process.name}: the agent is '{agent_of(daemon, process)}', not '{wanted}'") from None


def output_of(process):
    return [line for line in pathlib.Path(process.stderr_path).read_text().splitlines() if not LOADED.match(line)]


def files_of(process):
    """What an attach could have left in a JVM's /tmp, which others may share."""
    folder = pathlib.Path(f"/proc/{process.pid}/root", "tmp")
    own = {f".attach_pid{status_field(process.pid, 'NSpid')[-1]}"}
    return sorted(f.name for f in folder.iterdir() if f.name.startswith(".tsunagi-agent") or f.name in own)


def tmp_of(process):
    return {file.name for file in pathlib.Path(f"/proc/{process.pid}/root", "tmp").iterdir()}


def expect_untouched(process):
    """Nothing printed, nothing left behind, and it lives."""
    expect(process.running(), f"{process.name} ended")
    expect(DUMP not in process.stdout, f"{process.name}: a thread dump on its standard output")
    expect(not output_of(process), f"{process.name} printed {output_of(process)}")
    wait_until(lambda: not files_of(process), 5, f"a /tmp of {process.name} without {files_of(process)}")


def chain(run, home=None):
    front, back = java_chain(run, home, "handover", 16)
    daemon = run.daemon(run.config(AUTO))
    for process in (front, back):
        await_agent(daemon, process)
        expect_untouched(process)
    run.load(front.port, scaled(3_000), 32, traceparent=20)
    counters = daemon.counters()
    expect(counters["jvm_agents_loaded"] == 2 and counters["jvm_agents_failed"] == 0, f"counters {counters}")
    return judge_chain(run, daemon, front, back)


def case_jvm_attach(run):
    """Agents come into running JVMs: calls that another thread makes keep their requests."""
    return chain(run)


def chain_with(run, version):
    home = apps.java_home(version)
    if not home:
        raise Skip(f"no Java {version} here")
    return chain(run, home)


def case_jvm21_attach(run):
    """The same with JDK 21, which prints three lines of its own about it and nothing else."""
    return chain_with(run, "21")


def case_jvm25_attach(run):
    """The same with JDK 25."""
    return chain_with(run, "25")


def case_jvm_attach_late(run):
    """Under load, with connections and threads that are older than the agent: right once it is there, never wrong."""
    front, back = java_chain(run, mode="handover", threads=16)
    loading = run.load_start(front.port, 1_000_000, 32, name="load-before", id="before", rate=500, seconds=10)
    daemon = run.daemon(run.config(AUTO))
    for process in (front, back):
        await_agent(daemon, process)
    expect(loading.running(), "no load any more while the agent came")
    expect(loading.wait(60) == 0, "requests failed while the agent came")
    run.load(front.port, scaled(3_000), 32, traceparent=20)
    run.stop_apps()
    logs = run.read_logs()
    before = chain_hops(front, back, client_may_lack_parent=True)
    before[0] = dataclasses.replace(before[0], outer="load-before")
    expected = expand(before, logs, load="load-before", in_flight_before=daemon.ready_ns)
    expected += expand(chain_hops(front, back), logs)
    return expect_true([span for span in daemon.finish() if span["pid"] in run.pids()], expected)


def case_jvm_attach_restarts(run):
    """The daemon killed and ended under load, again and again: the agent stays, and serves the next one at once."""
    front, back = java_chain(run, mode="handover", threads=16)
    background = run.load_start(front.port, 1_000_000, 8, name="background", id="background", seconds=600, rate=200)
    rounds = []
    for n in range(scaled(4)):
        daemon = run.daemon(run.config(AUTO), name=f"daemon-{n}")
        for process in (front, back):
            await_agent(daemon, process, seconds=20 if n == 0 else 2)
        expect(daemon.counters()["jvm_agents_loaded"] == (2 if n == 0 else 0), "not the agent that was there")
        run.load(front.port, 300, 8, name=f"load-{n}", id=f"round{n}")
        time.sleep(1.5)
        if n % 2:
            expect(daemon.stop() == 0, "the daemon's end")
        else:
            daemon.kill()
        rounds.append([span for span in read_spans(daemon.stdout_path) if f"/round{n}-" in span_path(span)])
        expect(background.running(), "requests failed")
    background.stop()
    for process in (front, back):
        expect(DUMP not in process.stdout and not output_of(process), f"{process.name} printed {output_of(process)}")
    run.stop_apps()
    logs = run.read_logs()
    for n, spans in enumerate(rounds):
        hops = chain_hops(front, back)
        hops[0] = dataclasses.replace(hops[0], outer=f"load-{n}")
        outcome = expect_true(spans, expand(hops, logs, load=f"load-{n}"))
    return f"{len(rounds)} daemons, each: {outcome}"


def case_jvm_attach_container(run):
    """A JVM of another user in a container, with namespaces of processes, files and users of its own."""
    with Container(run, "shop") as container:
        user = ["setpriv", "--reuid=33", "--regid=33", "--clear-groups"]
        back = container.app("back", [*user, *apps.java("Back", "{port}", "{log}")])
        front = container.app("front", [*user, *apps.java("Front", "{port}", back.port, "{log}", 16, "handover")])
        daemon = run.daemon(f'discover:\n  include:\n    - {{container: "{container.id[:12]}", language: jvm}}\n{AUTO}')
        for process in (front, back):
            await_agent(daemon, process)
            expect_untouched(process)
        run.load(front.port, scaled(1_000), 16, inside=container.inside_network())
        return judge_chain(run, daemon, front, back)


def back_end(run, name, options=(), before=(), **more):
    return run.app(name, [*before, *apps.java("Back", "{port}", "{log}", options=options)], log=False, **more)


def case_jvm_attach_options(run):
    """JVMs by what their options allow: attached to where that is harmless, else left alone, with the reason."""
    tracer = apps.java_agent("opentelemetry-javaagent.jar")
    other = apps.java_agent("metrics-exporter.jar")
    off, silent = "-XX:+DisableAttachMechanism", "-XX:-UsePerfData"
    cases = {
        "plain": ([], {}, "in use"),
        "start-listener": (["-XX:+StartAttachListener"], {}, "in use"),
        "few-signals": (["-Xrs"], {}, "in use"),  # it listens from the start
        "listener-no-perf-data": (["-XX:+StartAttachListener", silent], {}, "in use"),
        "other-agent": ([f"-javaagent:{other}"], {}, "in use"),
        "attach-off": ([off], {}, "not loaded: its attach mechanism is off"),
        "attach-off-variable": ([], {"JAVA_TOOL_OPTIONS": off}, "not loaded: its attach mechanism is off"),
        "no-perf-data": ([silent], {}, "in use"),
        "attach-off-no-perf-data": ([off, silent], {}, "not loaded: its attach mechanism is off"),
        "load-off": (["-XX:-EnableDynamicAgentLoading"], {}, "not loaded: it loads no agents"),
        "tracer": ([f"-javaagent:{tracer}"], {}, "not loaded: it is traced by another agent already (OpenTelemetry)"),
    }
    processes = {name: back_end(run, name, options, env={**os.environ, **env}, ready=None)
                 for name, (options, env, _) in cases.items()}
    for process in processes.values():
        process.wait_for("ready")
    daemon = run.daemon(run.config(AUTO))
    for name, (_, env, wanted) in cases.items():
        await_agent(daemon, processes[name], wanted, 40)
        expect(DUMP not in processes[name].stdout, f"{name}: a thread dump")
        expect(processes[name].running(), f"{name}: ended")
        if not env:  # of a variable the JVM itself says that it picked it up
            expect_untouched(processes[name])
    counters = daemon.counters()
    refused = sum(not wanted.startswith("in use") for _, _, wanted in cases.values())
    expect(counters["jvm_agents_refused"] == refused, f"jvm_agents_refused {counters['jvm_agents_refused']}")
    return f"{len(cases) - refused} attached to, {refused} left alone, no thread dump"


def case_jvm_attach_checked(run):
    """JVMs that check what native code does (-Xcheck:jni), and say what is wrong on their standard output: nothing is."""
    chains, said = {}, []
    for version in ("8", "11", "17", "21", "25"):
        home = None if version == "17" else apps.java_home(version)
        chains[version] = java_chain(run, home, "future", 8, ["-Xcheck:jni"])
        run.load(chains[version][0].port, 50, 4, name=f"before-{version}")  # what the JDK has to say of itself
    before = {process: process.stdout for chain in chains.values() for process in chain}
    daemon = run.daemon(run.config(AUTO))
    for version, chain in chains.items():
        for process in chain:
            await_agent(daemon, process)
        run.load(chain[0].port, 50, 4, name=f"after-{version}")
        said += [f"Java {version}: {line}" for process in chain
                 for line in process.stdout[len(before[process]):].splitlines()]
    expect(not said, f"{len(said)} lines: {said[:6]}")
    return f"Java {', '.join(chains)}"


def case_jvm_attach_archives(run):
    """JVMs that write their classes to an archive, for JVMs without the agent: none is loaded. One that uses one, or names
    such an option in an argument of its own, is as any other."""
    archive, at_exit = run.directory / "app.jsa", "not loaded: it writes its classes to an archive (-XX:ArchiveClassesAtExit)"
    text = f"-XX:ArchiveClassesAtExit={archive}"
    cases = {
        "at-exit": (None, [text], {}, at_exit),
        "variable": (None, [], {"JDK_JAVA_OPTIONS": text}, at_exit),
        "no-perf-data": (None, [text, "-XX:-UsePerfData"], {}, at_exit),
        "on-demand": (None, ["-XX:+RecordDynamicDumpInfo"], {}, "not loaded: it writes its classes to an archive (-XX:Rec"),
        "property": (None, [f"-Dcommand={text}"], {}, "in use"),
        "read-alone": (None, ["-Xshare:auto"], {"NOTE": text}, "in use"),
    }
    if apps.java_home("25"):
        cases |= {
            "aot-output": ("25", [f"-XX:AOTCacheOutput={run.directory}/app.aot"], {}, "not loaded: it writes its classes"),
            "aot-record": ("25", ["-XX:AOTMode=record", f"-XX:AOTConfiguration={run.directory}/app.conf"], {},
                           "not loaded: it writes its classes to an archive (-XX:AOTMode)"),
            "automatic": ("25", ["-XX:+AutoCreateSharedArchive", f"-XX:SharedArchiveFile={run.directory}/auto.jsa"], {},
                          "not loaded: it writes its classes"),
            "aot-auto": ("25", ["-XX:AOTMode=auto"], {}, "in use"),
        }
    processes = {name: run.app(name, apps.java("Back", "{port}", "{log}", home=version and apps.java_home(version),
                                               options=options), log=False, env={**os.environ, **env}, ready=None)
                 for name, (version, options, env, _) in cases.items()}
    for process in processes.values():
        process.wait_for("ready")
    daemon = run.daemon(run.config(AUTO))
    for name, (*_, wanted) in cases.items():
        await_agent(daemon, processes[name], wanted, 40)
    refused = sum(not case[-1].startswith("in use") for case in cases.values())
    counters = daemon.counters()
    expect(counters["jvm_agents_refused"] == refused, f"jvm_agents_refused {counters['jvm_agents_refused']}")
    return f"{refused} left alone, {len(cases) - refused} attached to"


def case_jvm_attach_tmp(run):
    """JVMs by what their /tmp is like: nobody is signalled who could not answer, nothing of others is touched."""
    cases = {
        "plain": ("mode=1777", ":", "in use"),
        "noexec": ("mode=1777,noexec", ":", "in use"),  # the library lies elsewhere then
        "read-only": ("mode=1777", "mount -o remount,ro /tmp", "not loaded: cannot write to its /tmp"),
        "not-sticky": ("mode=0777", ":", "not loaded: others may change files in its /tmp"),
        "strangers": ("mode=1777", "chown 12345 /tmp", "not loaded: others may change files in its /tmp"),
    }
    processes = {}
    for name, (options, prepare, _) in cases.items():
        before = ["unshare", "-m", "/bin/sh", "-c", OWN_TMP, "sh", options, run.apps, prepare]
        processes[name] = back_end(run, name, before=before)
    daemon = run.daemon(run.config(AUTO))
    for name, (_, _, wanted) in cases.items():
        await_agent(daemon, processes[name], wanted)
        expect_untouched(processes[name])
    return f"{len(cases)} kinds of /tmp"


def case_jvm_attach_unit(run):
    """JVMs as a hardened unit runs them: nobody's, with a capability, a /tmp of their own and no new privileges, and with
    the rest of the system read-only. The agent is in use within seconds, they answer, and nothing is left in their /tmp."""
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+net_bind_service",
            "--ambient-caps=+net_bind_service", "--no-new-privs"]
    cases = {"private": ":", "strict": "for i in etc usr var; do mount --bind /$i /$i && mount -o remount,bind,ro /$i; done"}
    for path in (run.directory, run.apps, run.witness_file):
        path.chmod(0o777)
    processes, before = {}, {}
    for name, prepare in cases.items():
        shell = ["unshare", "-m", "/bin/sh", "-c", OWN_TMP, "sh", "mode=1777", run.apps, prepare]
        processes[name] = back_end(run, name, before=[*shell, *user])
        fields = {field: status_field(processes[name].pid, field)[0] for field in ("Uid", "CapAmb", "NoNewPrivs")}
        expect(fields == {"Uid": "65534", "CapAmb": f"{1 << CAP_NET_BIND_SERVICE:016x}", "NoNewPrivs": "1"}, f"{fields}")
        before[name] = tmp_of(processes[name])
    begin = time.monotonic()
    daemon = run.daemon(run.config(AUTO))
    expected = []
    for process in processes.values():
        await_agent(daemon, process, seconds=5)
    took = time.monotonic() - begin
    for name, process in processes.items():
        requests_of(expected, process, process.pid, "unit", 200)
        expect_untouched(process)
        left = tmp_of(process) - before[name] - {f".java_pid{process.pid}"}  # the JVM's own socket
        expect(not left, f"{name}: left in its /tmp: {sorted(left)}")
    expect(took < 5 * PATIENCE, f"the agents were in use after {took:.1f} s")
    time.sleep(1.2)
    return expect_true([span for span in daemon.finish() if span["pid"] in run.pids()], expected, least=400)


def case_jvm_attach_in_the_way(run):
    """Files in /tmp where a JVM's and ours would be: somebody else's stay, a dead JVM's are replaced."""
    cases = {"stale": "in use", "foreign-socket": "not loaded: somebody else's file is in the way",
             "no-socket": "not loaded: somebody else's file is in the way",
             "foreign-trigger": "not loaded: somebody else's file is in the way", "stale-trigger": "in use",
             "fresh-trigger": "not loaded yet: somebody else attaches to it",
             "foreign-in-cwd": "not loaded: somebody else's file is in the way",
             "open-cwd": "not loaded: it does not listen for tools, and everybody may write"}
    processes = {}
    for name in cases:
        before = []
        if "cwd" in name:
            folder = run.directory / name
            folder.mkdir()
            folder.chmod(0o1777 if name == "open-cwd" else 0o755)
            before = ["/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", folder]
        processes[name] = back_end(run, name, before=before)
    made = []

    def place(name, kind):
        path = pathlib.Path(f"/tmp/.{kind}_pid{processes[name].pid}")
        made.append(path)
        return path

    listeners = []
    for name in ("stale", "foreign-socket"):
        listeners.append(socket.socket(socket.AF_UNIX))
        listeners[-1].bind(str(place(name, "java")))
    listeners[0].close()
    listeners[1].listen()
    place("no-socket", "java").write_text("")
    place("foreign-trigger", "attach").mkdir()
    for name, age in (("stale-trigger", 3600), ("fresh-trigger", 0)):
        path = place(name, "attach")
        path.write_text("")
        os.utime(path, (time.time() - age,) * 2)
    fresh = path
    made.append(run.directory / "foreign-in-cwd" / f".attach_pid{processes['foreign-in-cwd'].pid}")
    made[-1].write_text("")
    os.chown(made[-1], 12345, 12345)
    try:
        daemon = run.daemon(run.config(AUTO))
        for name, wanted in cases.items():
            await_agent(daemon, processes[name], wanted)
            expect(DUMP not in processes[name].stdout, f"{name}: a thread dump")
        for path in made[1:4]:
            expect(path.exists(), f"{path} is gone")
        fresh.unlink()
        await_agent(daemon, processes["fresh-trigger"])
    finally:
        for path in made:
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
    return f"{len(cases)} kinds of files in the way"


def case_jvm_attach_removed(run):
    """Tools had the JVM listen, and its socket was tidied away: asked again old ones would dump their threads, so they are
    left alone; newer ones open it anew."""
    cases = {"8": ("not loaded: it listens for tools, but its socket is gone", apps.java_home("8")),
             "11": ("not loaded: it listens for tools, but its socket is gone", apps.java_home("11")),
             "17": ("in use", None), "25": ("in use", apps.java_home("25"))}
    need("jcmd")
    processes = {}
    for version, (_, home) in cases.items():
        argv = apps.java("Back", "{port}", "{log}", home=home)
        processes[version] = run.app(f"java-{version}", argv, log=False)
        subprocess.run(["jcmd", str(processes[version].pid), "VM.version"], check=True, capture_output=True)
        pathlib.Path(f"/tmp/.java_pid{processes[version].pid}").unlink()
    daemon = run.daemon(run.config(AUTO))
    for version, (wanted, _) in cases.items():
        await_agent(daemon, processes[version], wanted)
        expect(DUMP not in processes[version].stdout, f"Java {version}: a thread dump")
        expect(not files_of(processes[version]) or wanted == "in use", f"Java {version}: {files_of(processes[version])}")
    return "Java 8 and 11 left alone, 17 and 25 attached to"


def case_jvm_attach_stopped(run):
    """A JVM that a signal has stopped is not asked for anything, and attached to once it goes on."""
    process = back_end(run, "stopped")
    os.kill(process.pid, signal.SIGSTOP)
    daemon = run.daemon(run.config(AUTO))
    await_agent(daemon, process, "not loaded yet: it is stopped")
    expect(status_field(process.pid, "ShdPnd")[-1].strip("0") == "", "a signal waits for it")
    os.kill(process.pid, signal.SIGCONT)
    await_agent(daemon, process, seconds=30)
    expect_untouched(process)
    return "attached to when it went on"


@contextlib.contextmanager
def frozen(process):
    """By its cgroup: it hears of signals only afterwards."""
    folder = cgroup_root() / f"tsunagi-frozen-{process.pid}"
    folder.mkdir()
    before = folder.parent / next(line.split("::/")[1] for line in
                                  pathlib.Path(f"/proc/{process.pid}/cgroup").read_text().splitlines() if "::/" in line)
    try:
        (folder / "cgroup.procs").write_text(str(process.pid))
        (folder / "cgroup.freeze").write_text("1")
        wait_until(lambda: "frozen 1" in (folder / "cgroup.events").read_text(), 5, "it is frozen")
        yield
    finally:
        (folder / "cgroup.freeze").write_text("0")
        (before / "cgroup.procs").write_text(str(process.pid))
        folder.rmdir()


def loaders_of(process):
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"--load-agent\0load\0{process.pid}\0" in (folder / "cmdline").read_text():
                found.append(int(folder.name))
    return found


def case_jvm_attach_frozen(run):
    """All of the daemon's processes are told to end while a frozen JVM has not heard of the order yet: what was begun
    is brought to its end, and nothing is left behind."""
    process = back_end(run, "frozen")
    with frozen(process):
        daemon = run.daemon(run.config(AUTO))
        wait_until(lambda: len(files_of(process)) == 2, 20, "the order lies there")
        loaders = loaders_of(process)
        expect(len(loaders) == 1, f"loaders {loaders}")
        limit = resource.prlimit(loaders[0], resource.RLIMIT_NOFILE)[0]
        expect(limit <= 1024, f"the loader may open {limit} files, as the daemon may")
        os.kill(loaders[0], signal.SIGTERM)
        expect(daemon.stop() == 0, "the daemon's end")
        expect(loaders_of(process) == loaders, "the loader ended in the middle")
    wait_until(lambda: not loaders_of(process), 20, "the loader's end")
    expect_untouched(process)
    daemon = run.daemon(run.config(AUTO), name="second-daemon")
    await_agent(daemon, process, seconds=2)
    expect(daemon.counters()["jvm_agents_loaded"] == 0, "not the agent that was there")
    return "the order went through, and nothing was left"


def case_jvm_attach_off(run):
    """None is loaded where it is off; one service may be exempt."""
    first, second = back_end(run, "first"), back_end(run, "second")
    daemon = run.daemon(run.config("jvm: {agent: off}\n"))
    await_agent(daemon, first, "off (jvm.agent)")
    expect(daemon.counters()["jvm_agents_loaded"] == 0, "loaded all the same")
    daemon.stop()
    daemon = run.daemon(run.config(f"services: [{{match: {{port: {first.port}}}, jvm: {{agent: off}}}}]\n{AUTO}"),
                        name="second-daemon")
    await_agent(daemon, second)
    await_agent(daemon, first, "off (jvm.agent)")
    expect_untouched(first)
    return "as configured"


def lost_of(daemon, process):
    return json.loads(daemon.control("processes", str(process.pid), "--json"))["processes"][0].get("handovers_lost")


def case_jvm_attach_lost(run):
    """What the agents lose is a counter of the daemon's that watched, and each process's own number stays with it."""
    front, back = java_chain(run, mode="deep", threads=16)
    daemon = run.daemon(run.config(AUTO))
    for process in (front, back):
        await_agent(daemon, process)
    wait_until(lambda: lost_of(daemon, front) == lost_of(daemon, back) == 0, 5, "nothing lost")
    requests, nested = scaled(40), 1_100 - 1_024
    run.load(front.port, requests, 4)
    wait_until(lambda: (lost_of(daemon, front) or 0) >= nested * requests, 40, f"{nested * requests} lost")
    lost, counted = lost_of(daemon, front), daemon.counters()["jvm_handovers_lost"]
    expect(nested * requests <= lost <= (nested + 8) * requests, f"{lost} lost of {requests} requests")
    expect(counted == lost and lost_of(daemon, back) == 0, f"counter {counted}, process {lost}, other {lost_of(daemon, back)}")
    shown = daemon.control("processes", str(front.pid))
    expect(re.search(rf"Hand-overs lost +{lost}\b", shown), f"tsunagictl: {shown}")
    outcome = judge_chain(run, daemon, front, back, client_may_lack_parent=True)
    return f"{lost} lost and told; {outcome}"


def case_jvm_attach_lost_before(run):
    """What was lost before a daemon came, and is lost while there is none, is no loss of its own."""
    front, _ = java_chain(run, mode="deep", threads=16)
    daemon = run.daemon(run.config(AUTO))
    await_agent(daemon, front)
    run.load(front.port, 10, 2)
    daemon.kill()
    daemon = run.daemon(run.config(AUTO), name="second-daemon")
    await_agent(daemon, front)
    lost = lost_of(daemon, front)
    expect(lost >= 760, f"{lost} lost by the first daemon's time")
    expect(daemon.counters()["jvm_handovers_lost"] == 0, "counted again")
    run.load(front.port, 10, 2, name="load-2", id="again")
    wait_until(lambda: lost_of(daemon, front) >= lost + 760, 40, "the second daemon's")
    counted = daemon.counters()["jvm_handovers_lost"]
    expect(counted == lost_of(daemon, front) - lost, f"counter {counted}")
    return f"{lost} before, {counted} since"


def case_jvm_attach_broken(run):
    """An agent in use that gives itself up is out of use within seconds, and it is said why, also by the next daemon."""
    process = back_end(run, "broken")
    daemon = run.daemon(run.config(AUTO))
    await_agent(daemon, process)
    wait_until(lambda: lost_of(daemon, process) == 0, 5, "it is read")
    state, reason = 28, 104  # struct jvm_control; the agent writes them so itself (tests/agent/java/Faults.java)
    with open(f"/proc/{process.pid}/maps", encoding="ascii") as maps, open(f"/proc/{process.pid}/mem", "rb+", 0) as memory:
        data = next(line for line in maps if "/.tsunagi-agent-" in line and " rw-p " in line).split()[0].split("-")
        begin, end = (int(word, 16) for word in data)
        memory.seek(begin)
        block = begin + memory.read(end - begin).index(b"\x7ftsunagi-jvm-agent\0")
        memory.seek(block + reason)
        memory.write(b"it failed by a test\0")
        memory.seek(block + state)
        memory.write((3).to_bytes(8, "little"))  # and 'enabled' behind it
    await_agent(daemon, process, "not in use any more: the agent gave itself up: it failed by a test", 40)
    expect(daemon.counters()["jvm_agents_broken"] == 1, "not counted")
    daemon.stop()
    daemon = run.daemon(run.config(AUTO), name="second-daemon")
    await_agent(daemon, process, "not loaded: the agent gave itself up: it failed by a test")
    expect_untouched(process)
    return "said twice"


def maven_build(folder):
    repository = os.environ.get("TSUNAGI_M2", "/var/cache/tsunagi/m2")
    return ["mvn", "-q", "-B", f"-Dmaven.repo.local={repository}", f"-Dproduct.directory={folder}", "-f",
            apps.SOURCES / "clients/pom.xml", "compile"]


def case_jvm_attach_builds(run):
    """Compilers, Maven and other JVMs that do not serve, beside the daemon: none is touched."""
    folder = run.directory / "built"
    daemon = run.daemon(f'discover:\n  include:\n    - {{language: jvm, cmd: "*{folder}*"}}\n{AUTO}')
    compiler = ["javac", "-d", folder, apps.SOURCES / "java" / "RequestLog.java"]
    maven = [maven_build(folder / f"maven-{n}") for n in range(scaled(2) if apps.have("mvn") else 0)]
    builds = [compiler] * (scaled(20) - len(maven)) + maven
    for build in builds:
        done = subprocess.run(build, capture_output=True, text=True, timeout=120 * PATIENCE, check=False)
        said = (done.stdout + done.stderr).replace("\x1b[0m", "")  # Maven, of its colours, when it has none
        expect((done.returncode, said) == (0, ""), f"{build[0]}: {done}")
    counters = daemon.counters()
    expect(counters["processes_selected"] >= len(builds), f"{counters['processes_selected']} seen")
    touched = {name: n for name, n in counters.items() if name.startswith("jvm_agents_") and n}
    expect(not touched, f"touched: {touched}")
    return f"none of {len(builds) - len(maven)} compilers and {len(maven)} of Maven's touched"
