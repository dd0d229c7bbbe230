"""The daemon on a kernel, or with rights, that lack something: it works without, or says in one line what is missing."""

import contextlib
import json
import subprocess

import apps
from cases_cli import daemon_once, one_line
from harness import BIN, Daemon, Failure, Skip, expect, expect_true, scaled, wait_until
from judge import Expected, Hop, expand
from wire import Wire

CAPABILITIES = ("bpf", "perfmon", "net_admin", "sys_ptrace", "sys_resource", "sys_nice", "syslog", "sys_admin")


def serves(run, daemon, back):
    """The daemon traces: two requests, two spans."""
    records = {}
    with Wire(back.port, records) as wire:
        for i in range(2):
            wire.request(f"/kernel/{daemon.name}-{i}")
    expected = [Expected(request=request, kind="server", path=record["path"], status=record["status"], pid=back.pid)
                for (_, request), record in records.items()]
    with contextlib.suppress(Failure):
        wait_until(lambda: len(daemon.spans()) >= 2, 2, "two spans")
    return expect_true(daemon.finish(), expected)


def case_capabilities(run):
    """Each capability taken away in turn, with CAP_SYS_ADMIN: traced as ever, or one line that names what is missing."""
    if not apps.have("setpriv"):
        raise Skip("no setpriv here")
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    refused, worked = [], []
    for name in CAPABILITIES:
        dropped = f"-{name}" if name == "sys_admin" else f"-{name},-sys_admin"
        daemon = Daemon(run, run.config(), name=f"without-{name}",
                        before=("setpriv", "--bounding-set", dropped, "--inh-caps", dropped))
        wait_until(lambda d=daemon: "Ready" in d.stderr or not d.running(), 20, f"'Ready' without {name}")
        if daemon.running():
            worked.append(name)
            lines = daemon.stderr.splitlines()
            expect(len(lines) <= 2 and (len(lines) == 1 or f"cap_{name}" in lines[0].lower()), f"{name}: {lines}")
            if name == "sys_ptrace":
                daemon.end()  # which processes can be read then is the kernel's to say
            else:
                serves(run, daemon, back)
        else:
            refused.append(name)
            expect(f"cap_{name}" in one_line(daemon.stderr).lower(), f"{name}: {daemon.stderr}")
    expect({"bpf", "perfmon"} <= set(refused), f"refused without {refused}")
    return f"refused without {', '.join(refused)}; works without {', '.join(worked)}"


def case_without_tracefs(run):
    """No tracefs, no debugfs, and /sys read-only: nothing of it is needed."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    hide = ("unshare", "--mount", "--propagation", "private", "/bin/sh", "-c",
            "for d in /sys/kernel/tracing /sys/kernel/debug/tracing /sys/kernel/debug /sys/fs/bpf; do "
            "umount -l $d 2>/dev/null; done; mount -o remount,bind,ro /sys; exec \"$@\"", "sh")
    daemon = Daemon(run, run.config(), before=hide).wait_ready()
    hidden = subprocess.run(["nsenter", f"--mount=/proc/{daemon.pid}/ns/mnt", "ls", "/sys/kernel/tracing"],
                            capture_output=True, text=True, check=False)
    expect(not hidden.stdout, f"tracefs is there: {hidden.stdout[:60]}")
    return serves(run, daemon, back)


def case_pid_namespace(run):
    """In a pid namespace of its own, where all processes have other numbers, it refuses to start, in one line."""
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", BIN / "tsunagid", "--runtime-dir",
                           run.directory / "run"], capture_output=True, text=True, timeout=20, check=False)
    line = one_line(done.stderr)
    expect(done.returncode != 0 and done.stdout == "" and "pid namespace" in line, f"{done.returncode}: {line}")
    status, _, _ = daemon_once(run, "--version")
    expect(status == 0, "--version fails")
    return line


def case_others_sockets(run):
    """Only one service is selected: sockets of another under load are in no map of ours, and it goes on as before."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    other_port = run.port()
    run.start("other", apps.python("threaded.py", other_port, run.directory / "other.log"))
    daemon = run.daemon()
    before = daemon.counters()
    run.load(other_port, scaled(2_000), 8, name="load-other")
    run.logs.pop("load-other")
    after = daemon.counters()
    moved = {name: after[name] - before[name] for name in after if after[name] != before[name] and
             not name.startswith(("processes_", "process_", "control_"))}
    run.load(back.port, scaled(300), 4)
    kinds = {one["type"] for one in json.loads(subprocess.run(
        ["bpftool", "-j", "map", "show"], capture_output=True, text=True, check=False).stdout or "[]")
        if any(p.get("pid") == daemon.pid for p in one.get("pids", []))}
    run.stop_apps()
    spans = daemon.finish()
    expect(not kinds & {"sockmap", "sockhash"}, f"maps: {kinds}")
    expect(not moved, f"counted: {moved}")
    hops = [Hop("server", "/x/{id}", outer="load", inner="back", pid=back.pid)]
    return expect_true(spans, expand(hops, run.read_logs()))
