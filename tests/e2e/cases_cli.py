"""The daemon as a person meets it: options, mistakes in the configuration, a second start, Ctrl-C, what it says."""

import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import time

import apps
from harness import BIN, PATIENCE, ROOT, Process, expect, wait_until
from wire import Wire


def daemon_once(run, *arguments, **options):
    """Runs it to its end; returns exit status, standard output, standard error."""
    done = subprocess.run([str(a) for a in (BIN / "tsunagid", "--runtime-dir", run.directory / "run", *arguments)],
                          capture_output=True, text=True, timeout=20 * PATIENCE, check=False, stdin=subprocess.DEVNULL, **options)
    return done.returncode, done.stdout, done.stderr


def one_line(text):
    lines = text.strip().splitlines()
    expect(len(lines) == 1, f"not one line but {len(lines)}: {lines[:4]}")
    return lines[0]


def case_version(run):
    """--version says the version; an unknown option is refused in one line or with the usage."""
    status, out, _ = daemon_once(run, "--version")
    expect(status == 0 and re.search(r"\d+\.\d+\.\d+", out), f"--version: {status} '{out}'")
    status, out, err = daemon_once(run, "--no-such-option")
    expect(status != 0 and out == "" and err, f"--no-such-option: {status} '{err}'")
    return out.strip() or "ok"


def in_session(leader):
    """Processes of a session, and those whose parent it was; services have sessions of their own, and end with it."""
    found = subprocess.run(["ps", "-o", "pid=", "-s", str(leader)], capture_output=True, text=True, check=False)
    return found.stdout.split()


MISTAKES = [  # configuration, line of the mistake, what the message must name
    ("endpont: http://localhost:4318\n", 1, "endpoint"),
    ("discover:\n  includ:\n    - {port: 80}\n", 2, "include"),
    ("discover:\n  include:\n    - {exes: /srv/x}\n", 3, "exe"),
    ("discover:\n  include:\n    - {language: jawa}\n", 3, "jawa"),
    ("limits:\n  ring_bytes: 65537\n", 2, "power of two"),
    ("limits:\n  ring_bytes: lots\n", 2, "lots"),
    ("export:\n  timeout: 5 parsecs\n", 2, "5 parsecs"),
    ("endpoint: ftp://x\n", 1, "http"),
    ("services:\n  - {match: {port: 99999}, name: x}\n", 2, "99999"),
    ("discover:\n  include:\n    - {}\n", 3, "at least one"),
    ("discover:\n  exclude:\n    - {exe: '/srv/[a'}\n", 3, "/srv/[a"),
    ("http: [1, 2]\n", 1, "mapping"),
    ("a: b: c\n", 1, ""),
    ("\tendpoint: x\n", 1, ""),
    ("endpoint: 'unclosed\n", 1, ""),
]


def case_config_mistakes(run):
    """Each mistake is one line FILE:LINE:COLUMN with what was expected; nothing starts on a bad file."""
    path = run.directory / "bad.yaml"
    for text, line, named in MISTAKES:
        path.write_text(text)
        for arguments in (["--check-config"], []):
            status, out, err = daemon_once(run, "--config", path, *arguments)
            message = one_line(err)
            expect(status != 0 and out == "", f"{text!r}: status {status}, output {out!r}")
            expect(re.search(re.escape(str(path)) + r":\d+:\d+: ", message), f"no place in: {message}")
            place = int(re.search(r":(\d+):\d+: ", message)[1])
            expect(place == line or named == "", f"line {place}, not {line}, in: {message}")
            expect(named in message, f"'{named}' is not in: {message}")
    return f"{len(MISTAKES)} mistakes"


def case_config_files(run):
    """Files that are no configuration: missing, a folder, a FIFO, binary; and odd ones: empty, a pipe, with CRLF."""
    path = run.directory / "odd.yaml"
    for content in (None, b"\xff\xfe\x00\x01" * 50, b"a: &a [*a, *a]\n" * 3, b"[" * 100_000, b"- " * 100_000):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        begin = time.monotonic()
        status, _, err = daemon_once(run, "--config", path, "--check-config")
        expect(status not in (0, -signal.SIGSEGV, -signal.SIGABRT), f"status {status} for {content and content[:8]}")
        one_line(err)
        expect(time.monotonic() - begin < 2, "took too long")
    expect(daemon_once(run, "--config", run.directory, "--check-config")[0] not in (0, -signal.SIGSEGV), "a folder")
    for content in (b"", b"# nothing\n", b"\xef\xbb\xbflog_level: info\n", b"log_level: info\r\nlimits:\r\n  processes: 5\r\n"):
        path.write_bytes(content)
        status, _, err = daemon_once(run, "--config", path, "--check-config")
        expect(status == 0, f"refused {content!r}: {err}")
    path.write_text("discover:\n  exclude: [{user: no-such-user}]\n")
    status, _, err = daemon_once(run, "--config", path, "--check-config")
    expect(status == 0 and f"{path}:2:20: user: " in one_line(err), f"a user that is not there: {status}: {err}")
    os.mkfifo(fifo := run.directory / "fifo.yaml")
    begin = time.monotonic()
    for arguments in (["--check-config"], []):
        status, _, err = daemon_once(run, "--config", fifo, *arguments)
        expect(status not in (0, -signal.SIGSEGV) and f"{fifo}: " in one_line(err), f"a FIFO: {status}: {err}")
    expect(time.monotonic() - begin < 2 * PATIENCE, "a FIFO without a writer was waited for")
    piped = ["bash", "-c", '"$0" --check-config --config <(sleep 0.2; echo "$1")', BIN / "tsunagid"]
    for text, good in (("tap: fentry", True), ("tap: fentri", False)):
        done = subprocess.run([*piped, text], capture_output=True, text=True, timeout=20 * PATIENCE, check=False)
        expect((done.returncode == 0) == good, f"'{text}' by <(...): {done.returncode}: {done.stderr}")
    return "ok"


def case_config_reference(run):
    """The file that is shipped is accepted as it is."""
    status, _, err = daemon_once(run, "--config", ROOT / "config/tsunagi.yaml", "--check-config")
    expect(status == 0, err)
    return "ok"


def case_not_root(run):
    """Not root, and root without the right to load BPF: one clear line each, and no half start."""
    nobody = pwd.getpwnam("nobody")
    copy = pathlib.Path("/var/tmp") / f"tsunagid-{os.getpid()}"
    try:
        shutil.copy(BIN / "tsunagid", copy)
        copy.chmod(0o755)
        done = subprocess.run([copy, "--runtime-dir", "/var/tmp/tsunagi-nobody"], capture_output=True, text=True,
                              timeout=20, check=False, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
    finally:
        copy.unlink()
    message = one_line(done.stderr)
    expect(done.returncode != 0 and "root" in message, f"{done.returncode}: {message}")
    if not apps.have("setpriv"):
        return message
    for dropped in ("-bpf,-sys_admin", "-perfmon,-sys_admin"):
        done = subprocess.run(["setpriv", "--bounding-set", dropped, "--inh-caps", dropped, BIN / "tsunagid",
                               "--runtime-dir", run.directory / "run"], capture_output=True, text=True, timeout=20,
                              check=False)
        line = one_line(done.stderr)
        expect(done.returncode != 0 and "cap" in line.lower(), f"{dropped}: {done.returncode}: {line}")
    return f"{message} | {line}"


def case_second_start(run):
    """A second daemon says that one is running and ends; the first goes on. Another runtime directory is another."""
    first = run.daemon()
    status, out, err = daemon_once(run, "--print=json")
    message = one_line(err)
    expect(status != 0 and out == "" and re.search("runs|running", message), f"{status}: {message}")
    first.expect_running()
    json.loads(first.control("counters", "--json"))
    first.finish()
    return message


def case_stale_socket(run):
    """After SIGKILL the files that it left do not stop the next one; nor does a stale socket of anybody's."""
    first = run.daemon()
    first.kill()
    second = run.daemon(name="second")
    second.control("status")
    second.finish()
    expect("Removed the control socket of a daemon that had died" in second.stderr, second.stderr)
    expect(not (run.directory / "run").exists(), "the directory was left behind")
    return "ok"


def case_ctrl_c(run):
    """Ctrl-C: what is known is printed, exit status 0, no error line."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    daemon = run.daemon()
    with Wire(back.port) as wire:
        wire.request("/ctrl/c-1")
    status = daemon.stop(7, signal.SIGINT)
    expect(status == 0, f"exit status {status}")
    expect(len(daemon.spans()) == 1, f"{len(daemon.spans())} spans")
    expect("rror" not in daemon.stderr, daemon.stderr)
    expect("Stopped, 1 spans made" in daemon.stderr, f"no line at the end: {daemon.stderr}")
    return "ok"


def changes():
    """What git says of the tree that is tested; nothing where it is no repository."""
    done = subprocess.run(["git", "-C", ROOT, "status", "--porcelain"], capture_output=True, text=True, check=False)
    return done.stdout


def case_script_run(run):
    """scripts/run --demo, twice, each ended by Ctrl-C: a trace of three spans, the second time at once, nothing left."""
    before, said = changes(), []
    own_run = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c",
               "mount -t tmpfs none /run && exec \"$@\"", "sh"]  # no other daemon answers there
    demo = run.directory / "demo"
    demo.mkdir()
    for name, at_most in (("first", 60), ("second", 5)):
        begin = time.monotonic()
        script = Process(run, name, [*own_run, ROOT / "scripts/run", "--demo"], env={**os.environ, "TMPDIR": str(demo)})
        run.processes.append(script)
        wait_until(lambda p=script: "Ready" in p.stderr or not p.running(), at_most, f"'Ready' of the {name} run")
        ready = time.monotonic() - begin
        wait_until(lambda p=script: "3 spans" in p.stdout or not p.running(), 60, f"a trace of the {name} run")
        script.expect_running()
        trace = time.monotonic() - begin
        os.killpg(script.pid, signal.SIGINT)
        status = script.wait(10)
        expect(status == 0, f"the {name} run exited with {status}: {script.stderr[-300:]}")
        wait_until(lambda: not in_session(script.pid), 5, f"an end of all that the {name} run started")
        said.append(f"{name}: ready after {ready:.1f} s, a trace after {trace:.1f} s")
    expect(not list(demo.iterdir()), f"left: {list(demo.iterdir())}")
    expect(changes() == before, f"the tree is not as before: {changes()}")
    return "; ".join(said)


def case_control(run):
    """tsunagictl: status, processes, one process, traces, one trace, counters; JSON where asked; root only."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    other = run.start("other", apps.python("raw.py", run.port()))
    daemon = run.daemon(arguments=())
    with Wire(back.port) as wire:
        for i in range(5):
            wire.request(f"/control/c-{i}")
    time.sleep(2.5)
    status = daemon.control("status")
    expect("tap" in status.lower(), f"status says nothing of the tap: {status}")
    expect("receives by io_uring: " in status, f"status does not say what the tap can see: {status}")
    json.loads(daemon.control("status", "--json"))
    processes = daemon.control("processes")
    expect(str(back.pid) in processes, f"the traced process is not listed: {processes}")
    of_one = daemon.control("processes", str(other.pid))
    expect("not selected" in of_one.lower(), f"why not is missing: {of_one}")
    traces = daemon.control("traces", "--json")
    trace_id = re.search(r"[0-9a-f]{32}", traces)
    expect(trace_id, f"no trace in: {traces[:300]}")
    expect("/control/c-" in daemon.control("trace", trace_id[0]), "the trace is not shown")
    expect(daemon.counters()["spans_server"] == 5, "spans_server is not 5")
    mode = next(p for p in (run.directory / "run").iterdir() if p.is_socket()).stat().st_mode & 0o777
    expect(mode & 0o077 == 0, f"socket mode {mode:o}")
    expect(daemon.stop() == 0, "no clean end")
    gone = subprocess.run([BIN / "tsunagictl", "--runtime-dir", run.directory / "run", "status"], capture_output=True,
                          text=True, check=False)
    expect(gone.returncode != 0, "tsunagictl succeeds without a daemon")
    one_line(gone.stderr)
    return "ok"


def case_print_tree(run):
    """--print draws the finished trace of a chain as a tree, soon after it ended."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    front = run.app("front", apps.python("threaded.py", "{port}", "{log}", back.port))
    daemon = run.daemon(arguments=("--print",))
    with Wire(front.port) as wire:
        wire.request("/tree/t-1")
    wait_until(lambda: daemon.stdout.count("t-1") >= 3, 4, "a tree of three spans")
    expect(daemon.stop() == 0, "no clean end")
    return " / ".join(line.strip() for line in daemon.stdout.splitlines() if "t-1" in line)


def case_print_hints(run):
    """With --print and no span for 10 s it says of each listening process why there is none."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    port = run.port()
    other = run.start("other", apps.python("raw.py", port))
    daemon = run.daemon(arguments=("--print",))
    wait_until(lambda: f"{port}" in daemon.stdout + daemon.stderr, 14, "a line on the process that is not selected")
    said = daemon.stdout + daemon.stderr
    expect(str(back.port) in said, "no line on the process without a request")
    expect(str(other.pid) in said or "raw.py" in said, "the process is not named")
    daemon.stop()
    return next(line for line in said.splitlines() if str(port) in line).strip()


def case_foreign_files(run):
    """A file in the runtime directory that is not the daemon's stays."""
    runtime = run.directory / "run"
    runtime.mkdir(mode=0o755)
    blocker = runtime / "unrelated"
    blocker.write_text("keep me")
    daemon = run.daemon()
    daemon.finish()
    expect(blocker.read_text() == "keep me", "a file that is not ours was removed")
    return "ok"
