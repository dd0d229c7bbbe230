"""Who a process is: found in time however it was started, what it is by what it maps, its own name, no other's."""

import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time

import apps
import judge
from cases_chains import need
from cases_containers import expect_process, patched_copy, process_of
from cases_sockets import ask_pid
from containers import children_of, descendant
from harness import expect, expect_true, scaled, wait_until
from judge import Expected
from wire import Wire

SUPERVISOR = """
import os, sys, time
time.sleep(float(sys.argv[1]))
if os.fork() == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
os.wait()
"""


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def requests_of(expected, service, pid, prefix, n=2):
    """Sends n requests; adds what must come of them."""
    records = {}
    with Wire(service.port, records) as wire:
        for i in range(n):
            wire.request(f"/{prefix}/{service.name}-{i}")
    expected += [Expected(request=request, kind="server", path=record["path"], status=record["status"], pid=pid)
                 for (_, request), record in records.items()]


def case_supervisors(run):
    """Servers that a supervisor starts early or late: each has its own spans within 0.3 s, and its own name."""
    script = run.apps / "supervisor.py"
    script.write_text(SUPERVISOR)
    daemon = run.daemon()
    delays = (0, 0.01, 0.04, 0.1, 0.25, 0.6, 1.2)
    services = [run.app(f"late-{i}", [apps.PYTHON, "-B", script, delay, *apps.python("threaded.py", "{port}", "{log}")],
                        ready=None, log=False) for i, delay in enumerate(delays)]
    expected = []
    for service in services:
        service.wait_for("ready")
        time.sleep(0.3)
        requests_of(expected, service, descendant(service.pid), "late")
    time.sleep(1.2)
    names = {span["service"] for span in daemon.spans()}
    expect(names == {"threaded"}, f"names {sorted(names)}")
    return expect_true(daemon.finish(), expected)


def case_short_lives(run):
    """Hundreds of programs that live a few milliseconds: no line about any, hardly any CPU, and services go on."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon(config="discover:\n  include:\n    - {exe: \"*\"}\n"
                               "  exclude:\n    - {cmd: \"*e2e/run*\"}\n")
    time.sleep(0.5)
    n, before, seen = scaled(300, 50), cpu_seconds(daemon.pid), daemon.counters()["processes_seen"]
    for _ in range(n):
        subprocess.run(["/bin/true"], check=True)
    used = cpu_seconds(daemon.pid) - before
    looked = daemon.counters()["processes_seen"] - seen
    expected = []
    requests_of(expected, back, back.pid, "short")
    time.sleep(1.2)
    spans = [span for span in daemon.finish() if span["pid"] == back.pid]
    lines = daemon.stderr.splitlines()
    expect(len(lines) == 2, f"lines: {lines[:5]}")  # Ready, Stopped
    expect(looked < n, f"looked at {looked} processes")  # also those that others start on this machine
    expect(used < 0.002 * n, f"{used:.2f} s of CPU for {n} programs")
    return expect_true(spans, expected) + f"; {used * 1e6 / n:.0f} us for each, {looked} looked at"


def case_daemons_own_environment(run):
    """The daemon's own OTEL_SERVICE_NAME is never a service's; nor is a name missing where there is no environment."""
    plain = run.app("plain", apps.python("threaded.py", "{port}", "{log}"))
    bare = run.app("bare", ["env", "-i", *apps.python("threaded.py", "{port}", "{log}")])
    named = run.app("named", ["env", "-i", "OTEL_RESOURCE_ATTRIBUTES=service.name=b%20c,k=v=w",
                              *apps.python("threaded.py", "{port}", "{log}")])
    daemon = run.daemon(env={**os.environ, "OTEL_SERVICE_NAME": "daemon",
                             "OTEL_RESOURCE_ATTRIBUTES": "service.name=daemon,host.name=daemon"})
    expected = []
    for service in (plain, bare, named):
        requests_of(expected, service, service.pid, "own")
    time.sleep(1.2)
    spans = daemon.finish()
    names = {span["pid"]: span["service"] for span in spans}
    expect(names == {plain.pid: "threaded", bare.pid: "threaded", named.pid: "b c"}, f"names {names}")
    return expect_true(spans, expected, may_be_loose=True)  # who has no environment has no witness


def case_prefork_names(run):
    """Four workers of one listener, forked before and after the daemon's start: one name, whoever served."""
    before = run.app("before", apps.python("workers.py", "prefork", "{port}", "{log}"), log=False)
    daemon = run.daemon()
    daemon.popen.send_signal(signal.SIGSTOP)  # so that it is late for certain
    after = run.app("after", apps.python("workers.py", "prefork", "{port}", "{log}"), log=False)
    time.sleep(0.3)
    daemon.popen.send_signal(signal.SIGCONT)
    time.sleep(0.3)
    expected = []
    for master in (before, after):
        for i in range(20):
            with Wire(master.port) as wire:
                expected.append(ask_pid(wire, f"/prefork/{master.name}-{i}"))
    time.sleep(1.2)
    spans = daemon.finish()
    names = {span["service"] for span in spans}
    expect(names == {"workers"}, f"names {sorted(names)}")
    return expect_true(spans, expected) + f"; {len({e.pid for e in expected})} workers"


def case_daemonized_workers(run):
    """A server that listens, forks itself into the background and then its workers, all in a moment: all traced."""
    daemon = run.daemon()
    expected = []
    for i in range(scaled(5, 2)):
        port = run.port()
        daemon.popen.send_signal(signal.SIGSTOP if i % 2 else signal.SIGCONT)  # late for certain, and as it comes
        server = run.start(f"daemonize-{i}", apps.python("workers.py", "daemonize", port, run.apps / "daemonize.log"),
                           ready=None)
        server.wait(10)
        expect("ready" in server.stdout, server.stderr)
        time.sleep(0.3)
        daemon.popen.send_signal(signal.SIGCONT)
        time.sleep(0.2)
        for j in range(8):
            with Wire(port) as wire:
                expected.append(ask_pid(wire, f"/daemonize/{i}-{j}"))
    time.sleep(1.2)
    spans = daemon.finish()
    names = {span["service"] for span in spans}
    expect(names == {"workers"}, f"names {sorted(names)}")
    return expect_true(spans, expected) + f"; {len({e.pid for e in expected})} workers"


PORTS = """
import os, socket, subprocess, sys
workers, log, *ports = sys.argv[1:]

def serve(port):
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=16)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        while head := connection.recv(8192):
            if b"/fork" in head and os.fork() == 0:
                connection.close()
                serve(ports[1])
            if b"/exec" in head:
                subprocess.Popen([sys.executable, "-B", workers, "dup", ports[2], log])
            body = str(os.getpid()).encode()
            connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(body), body))

serve(ports[0])
"""


def case_selected_by_port(run):
    """Selected by its port: the process and what it forks, as documented; neither its launcher nor what it executes."""
    ports, script = [run.port() for _ in range(3)], run.directory / "ports.py"
    script.write_text(PORTS)
    launcher = run.start("ports", ["/bin/sh", "-c", '"$@"; true', "sh", apps.PYTHON, "-B", script,
                                   apps.SOURCES / "python/workers.py", run.directory / "ports.log", *ports])
    master = children_of(launcher.pid)[0]
    daemon = run.daemon(config=f"discover:\n  include:\n    - {{port: {ports[0]}}}\n")
    with Wire(ports[0]) as wire:
        expected = [ask_pid(wire, "/port/fork"), ask_pid(wire, "/port/exec")]
    wait_until(lambda: launcher.stdout.count("ready") == 3, 10, "the two others")
    time.sleep(0.3)
    with Wire(ports[1]) as forked, Wire(ports[2]) as executed:
        expected.append(ask_pid(forked, "/port/forked"))
        other = ask_pid(executed, "/port/executed").pid
    states = {pid: process_of(daemon, pid)["state"] for pid in (launcher.pid, master, expected[2].pid, other)}
    time.sleep(1.2)
    expect(list(states.values()) == ["left alone", "traced", "traced", "left alone"], f"{states}")
    return expect_true(daemon.finish(), expected, least=3)


def patched_header(program, to, **fields):
    """A copy with fields of its ELF header changed: at which offset, in which format (elf(5), 64 bits)."""
    places = {"e_shoff": (40, "<Q"), "e_shentsize": (58, "<H"), "e_shnum": (60, "<H"), "e_shstrndx": (62, "<H")}
    content = bytearray(program.read_bytes())
    for name, value in fields.items():
        offset, form = places[name]
        struct.pack_into(form, content, offset, value)
    to.write_bytes(content)
    to.chmod(0o755)
    return to


def odd_executables(run):
    """Copies of one Go server that no ELF reader likes, but the kernel runs."""
    program = apps.go_chain()
    yield patched_header(program, run.apps / "sections-beyond", e_shoff=1 << 62)
    yield patched_header(program, run.apps / "sections-none", e_shoff=0, e_shnum=0, e_shstrndx=0)
    yield patched_header(program, run.apps / "strings-beyond", e_shstrndx=0xfffe)
    yield patched_header(program, run.apps / "entries-odd", e_shentsize=1)
    sparse = patched_copy(program, run.apps / "sparse", {})
    os.truncate(sparse, 8 << 30)
    yield sparse
    yield patched_copy(program, run.apps / "my app (deleted)", {})
    yield patched_copy(program, run.apps / "packed", {b"Go buildinf:": b"Go buildxxx:", b".gopclntab": b".gopclnxxx"})


def case_odd_executables(run):
    """Executables with broken, missing, or gigantic parts, deleted or without a file: all traced, quickly."""
    need("go")
    services = [run.app(program.name.replace(" ", "-"), [program, "hello", "{port}", "{log}"], log=False)
                for program in odd_executables(run)]
    gone = patched_copy(apps.go_chain(), run.apps / "gone", {})
    services.append(run.app("gone", [gone, "hello", "{port}", "{log}"], log=False))
    gone.unlink()
    memory = ("import os, sys; fd = os.memfd_create('anonymous'); os.write(fd, open(sys.argv[1], 'rb').read()); "
              "os.execv('/proc/self/fd/' + str(fd), sys.argv[1:])")
    services.append(run.app("memory", [apps.PYTHON, "-c", memory, apps.go_chain(), "hello", "{port}", "{log}"], log=False))
    begin = time.monotonic()
    daemon = run.daemon()
    took = time.monotonic() - begin
    expected = []
    for service in services:
        requests_of(expected, service, service.pid, "odd")
    exes = {service.name: process_of(daemon, service.pid)["exe"] for service in services}
    rss = int(pathlib.Path(f"/proc/{daemon.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20
    time.sleep(1.2)
    expect(exes["my-app-(deleted)"] == str(run.apps / "my app (deleted)"), f"{exes['my-app-(deleted)']}")
    expect(exes["gone"] == str(gone), f"{exes['gone']}")
    expect(took < 10 and rss < 40, f"ready after {took:.1f} s, {rss} MB")
    return expect_true(daemon.finish(), expected) + f"; ready after {took:.2f} s, {rss} MB"


def case_what_is_java(run):
    """A JVM is what maps libjvm.so, whatever it is called; the word java alone makes none."""
    need("java", "javac")
    home = pathlib.Path(shutil.which("java")).resolve().parents[1]
    image = run.apps / "image"
    (image / "bin").mkdir(parents=True)
    shutil.copy(home / "bin/java", image / "bin/shop")
    for part in ("lib", "conf"):
        (image / part).symlink_to(home / part)
    script = run.apps / "javascript" / "java"
    script.parent.mkdir()
    shutil.copy(apps.c_program("tcp_proxy"), script)
    java = run.app("image", [image / "bin/shop", "-cp", apps.java_classes(), "Back", "{port}", "{log}"])
    named = run.app("java", [script, "{port}", java.port, "threads", "--java"], log=False)
    daemon = run.daemon(run.config(include=f'{{exe: "{script}"}}'))
    expected = []
    requests_of(expected, java, java.pid, "java")
    expect_process(daemon, java.pid, language="jvm", name="shop")
    expect_process(daemon, named.pid, language="other")
    time.sleep(1.2)
    return expect_true(daemon.finish(), expected)
