"""The harness of the end-to-end tests: starts the daemon, the services, Jaeger and the load, and ends them again.

A case (cases_*.py) is a function that gets a Run and raises Failure with a reason, or Skip. Everything a Run starts
is ended by its process id when the case is over, whatever happened. Services keep their files in run.apps: the
configuration made here selects processes by that folder in their command line and so nothing else on the host.
"""

import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

import apps
import judge
import witness

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("TSUNAGI_BIN", ROOT / "build/release/bin"))
JAEGER_BINARIES = ("/var/cache/tsunagi/jaeger-v1.76.0/jaeger", "/var/cache/tsunagi/jaeger-build/jaeger")
SCALE = float(os.environ.get("TSUNAGI_E2E_SCALE", "1"))  # of the request counts that are not fixed
PATIENCE = float(os.environ.get("TSUNAGI_E2E_PATIENCE", "1"))  # of the waiting times, for machines that are slow
TAP = os.environ.get("TSUNAGI_TAP")  # the tap that every daemon is told to use

MADE = re.compile(r"spans_(server|client|exported)|parent_(header|joined|unit)|processes_se|control_requests|batches_sent")

JAEGER_CONFIG = """
service:
  extensions: [jaeger_storage, jaeger_query, healthcheckv2]
  pipelines: {{traces: {{receivers: [otlp], processors: [], exporters: [jaeger_storage_exporter]}}}}
  telemetry: {{metrics: {{level: none}}, logs: {{level: warn}}}}
extensions:
  jaeger_query: {{storage: {{traces: memory}}, http: {{endpoint: "127.0.0.1:{query}"}}, grpc: {{endpoint: "127.0.0.1:{grpc}"}}}}
  jaeger_storage: {{backends: {{memory: {{memory: {{max_traces: 100000}}}}}}}}
  healthcheckv2: {{use_v2: true, http: {{endpoint: "127.0.0.1:{health}"}}}}
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{otlp}", max_request_body_size: 67108864}}}}}}}}
exporters: {{jaeger_storage_exporter: {{trace_storage: memory}}}}
"""


class Failure(Exception):
    """The case failed; the text says by what."""


class Skip(Exception):
    """The case cannot run here; the text says why."""


def expect(condition, text):
    if not condition:
        raise Failure(text)


def scaled(n, least=1):
    return max(least, int(n * SCALE))


def wait_until(condition, seconds, what, interval=0.02):
    """Polls until the condition is true and returns its value."""
    deadline = time.monotonic() + seconds * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"{what} not within {seconds} s")
        time.sleep(interval)


def tail(path, lines=5):
    with contextlib.suppress(OSError):
        return " | ".join(pathlib.Path(path).read_text(errors="replace").splitlines()[-lines:])
    return ""


class Process:
    """A started program with its output in files."""

    def __init__(self, run, name, argv, **options):
        self.name = name
        self.stdout_path = run.directory / f"{name}.out"
        self.stderr_path = run.directory / f"{name}.err"
        with open(self.stdout_path, "wb") as out, open(self.stderr_path, "wb") as err:
            options.setdefault("stdin", subprocess.DEVNULL)
            # a group of its own: what it forks ends with it
            options.setdefault("start_new_session", True)
            self.popen = subprocess.Popen([str(a) for a in argv], stdout=out, stderr=err, **options)
        self.pid = self.popen.pid

    @property
    def stdout(self):
        return self.stdout_path.read_text(errors="replace")

    @property
    def stderr(self):
        return self.stderr_path.read_text(errors="replace")

    def running(self):
        return self.popen.poll() is None

    def expect_running(self):
        expect(self.running(), f"{self.name} ended with {self.popen.returncode}: {tail(self.stderr_path)}")

    def wait_for(self, text, seconds=30):
        """Until its standard output has the text."""
        wait_until(lambda: text in self.stdout or not self.running(), seconds, f"'{text}' from {self.name}")
        self.expect_running()

    def command(self, line, seconds=20):
        """Sends a line to its standard input; returns the line it answers with."""
        answered = self.stdout.count("\n")
        self.popen.stdin.write(f"{line}\n".encode())
        self.popen.stdin.flush()
        wait_until(lambda: self.stdout.count("\n") > answered or not self.running(), seconds,
                   f"an answer of {self.name} to '{line}'", 0.002)
        self.expect_running()
        return self.stdout.splitlines()[answered]

    def wait(self, seconds):
        try:
            return self.popen.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} did not end within {seconds} s") from None

    def stop(self, seconds=10, signal_number=signal.SIGTERM):
        """Ends it; returns the exit status."""
        if self.running():
            os.kill(self.pid, signal_number)  # the service itself, which a wrapper may stand before
        try:
            return self.popen.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            raise Failure(f"{self.name} did not end within {seconds} s of signal {int(signal_number)}") from None

    def kill(self):
        if self.running():
            self.popen.kill()
        self.popen.wait()

    def end_quickly(self):
        """SIGTERM first: some have children to end."""
        if self.running():
            self.popen.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(3)
        self.kill()


class Daemon(Process):
    """tsunagid, behind the command 'before'. Its standard output must hold spans only (--print=json)."""

    def __init__(self, run, config, arguments=("--print=json",), name="tsunagid", before=(), program="tsunagid",
                 runtime="run", **options):
        self.run = run
        self.runtime = run.directory / runtime
        if config is not None:
            if TAP and "tap:" not in config:
                config += f"tap: {TAP}\n"
            config_path = run.directory / f"{name}.yaml"
            config_path.write_text(config)
            arguments = ["--config", config_path, *arguments]
        self.noted = {}
        self.spawned_ns = time.time_ns()
        super().__init__(run, name, [*before, BIN / program, "--runtime-dir", self.runtime, *arguments], **options)
        run.processes.append(self)

    def wait_ready(self, seconds=20):
        wait_until(lambda: "Ready" in self.stderr or not self.running(), seconds, "'Ready' from the daemon", 0.005)
        self.expect_running()
        self.ready_ns = time.time_ns()
        return self

    def finish(self):
        """A clean end, and the spans it printed."""
        self.end()
        return self.spans()

    def end(self):
        """SIGTERM, and all of the contract of a clean end."""
        self.expect_running()
        self.note_counters()
        begin = time.monotonic()
        status = self.stop(15)
        expect(status == 0, f"tsunagid exited with {status}: {tail(self.stderr_path)}")
        expect(time.monotonic() - begin < 6 * PATIENCE, "tsunagid took more than 5 s to end")

    def spans(self):
        try:
            return judge.read_spans(self.stdout_path)
        except ValueError as error:
            raise Failure(f"standard output is not a span a line: {error}") from None

    def control(self, *arguments):
        done = subprocess.run([BIN / "tsunagictl", "--runtime-dir", self.runtime, *arguments], capture_output=True,
                              text=True, timeout=20 * PATIENCE, check=False)
        expect(done.returncode == 0, f"tsunagictl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def counters(self):
        """Counters by name, of both sides."""
        return {one["name"]: one["value"] for one in json.loads(self.control("counters", "--json"))["counters"]}


    def note_counters(self):
        """Keeps the counters as they are, for a case that fails later."""
        with contextlib.suppress(Failure, ValueError, subprocess.SubprocessError, OSError):
            self.noted = self.counters()


class Jaeger(Process):
    @staticmethod
    def binary():
        places = (os.environ.get("TSUNAGI_JAEGER"), *JAEGER_BINARIES)
        if not (found := next((place for place in places if place and os.path.exists(place)), None)):
            raise Skip("no Jaeger here (scripts/test builds one)")
        return found

    def __init__(self, run, binary=None):
        binary = binary or self.binary()
        self.ports = {name: run.port() for name in ("query", "grpc", "health", "otlp")}
        config = run.directory / "jaeger.yaml"
        config.write_text(JAEGER_CONFIG.format(**self.ports))
        super().__init__(run, "jaeger", [binary, "--config", config])
        run.processes.append(self)
        wait_until(self.healthy, 20, "a healthy Jaeger")
        self.endpoint = f"http://127.0.0.1:{self.ports['otlp']}"

    def healthy(self):
        self.expect_running()
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"http://127.0.0.1:{self.ports['health']}/status", timeout=1).status == 200
        return False

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['query']}{path}", timeout=60) as answer:
            return json.load(answer)

    def spans(self):
        """Every span it has, asked service by service."""
        spans = {}
        for service in self.get("/api/services")["data"] or []:
            found = self.get(f"/api/traces?service={service}&limit=100000&lookback=2h")["data"]
            for span in judge.spans_from_jaeger(found):
                spans[span["trace_id"], span["span_id"]] = span
        return list(spans.values())


class Run:
    """What one case started and made. Use as a context manager; one at a time. With 'has_witness' the services write
    down themselves how long their exchanges took (witness.py)."""

    current = None

    def __init__(self, name, has_witness=False):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"tsunagi-e2e-{name}."))
        self.apps = self.directory / "apps"
        self.apps.mkdir()
        self.processes = []
        self.logs = {}
        self.ports = set()
        self.witness_file = self.apps / "witness"
        self.has_witness = has_witness
        if has_witness:
            witness.create(self.witness_file)

    def __enter__(self):
        Run.current = self
        return self

    def __exit__(self, failure, *_):
        if failure and not issubclass(failure, Skip):
            self.note_counters()
        for process in reversed(self.processes):
            process.end_quickly()
        for process in self.processes:
            with contextlib.suppress(OSError):
                os.killpg(process.popen.pid, signal.SIGKILL)

    def note_counters(self):
        """Of daemons that still run; the others have noted theirs at their end."""
        for process in self.processes:
            if isinstance(process, Daemon) and process.running():
                process.popen.send_signal(signal.SIGCONT)
                process.note_counters()

    def losses_text(self):
        """What the daemons counted beside what they made."""
        texts = []
        for process in self.processes:
            noted = {name: n for name, n in getattr(process, "noted", {}).items() if n and not MADE.match(name)}
            if noted:
                texts.append(f"{process.name} counted " + ", ".join(f"{name} {n}" for name, n in noted.items()))
        return "; ".join(texts)

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    def port(self, first=15000, last=31000):
        """A free port; by default outside the range that outgoing connections are given."""
        while True:
            port = random.randint(first, last)
            if port in self.ports:
                continue
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                self.ports.add(port)
                return port

    def start(self, name, argv, ready="ready", **options):
        options["env"] = self.watched(options.get("env", os.environ))
        process = Process(self, name, argv, **options)
        self.processes.append(process)
        if ready:
            process.wait_for(ready)
        return process

    def watched(self, env):
        """The environment of a service that writes down how long its exchanges took."""
        if not self.has_witness:
            return env
        return {**env, "WITNESS": str(self.witness_file), "LD_PRELOAD": str(apps.witness())}

    def app(self, name, argv, port=None, log=True, **options):
        """A service of tests/apps; {port} and {log} in argv are filled in. Has .port and .log."""
        port = port or self.port()
        log_path = self.apps / f"{name}.log"
        process = self.start(name, [str(a).format(port=port, log=log_path) for a in argv], **options)
        process.port, process.log = port, log_path
        if log:
            self.logs[name] = log_path
        return process

    def config(self, extra="", endpoint=None, include="", agent="off"):
        """Selects exactly the services of this run (and what 'include' adds). 'agent': for JVMs, None: as by default."""
        lines = ["discover:", "  include:", f'    - {{cmd: "*{self.apps}/*"}}']
        lines += [f"    - {item}" for item in include.splitlines()]
        if endpoint:
            lines.append(f"endpoint: {endpoint}")
        if agent and "jvm:" not in extra:
            lines.append(f"jvm: {{agent: {agent}}}")
        return "\n".join(lines) + "\n" + extra

    def daemon(self, config=None, **options):
        return Daemon(self, self.config() if config is None else config, **options).wait_ready()

    def load_start(self, port, requests, connections, name="load", inside=(), **options):
        """Starts the load generator, behind the command 'inside'; options are its long options."""
        log = self.directory / f"{name}.log"
        argv = [*inside, apps.c_program("load"), "--port", port, "--requests", requests, "--connections", connections,
                "--log", log]
        for option, value in options.items():
            argv += [f"--{option.replace('_', '-')}"] + ([] if value is True else [value])
        process = Process(self, name, argv)
        process.log = log
        self.processes.append(process)
        self.logs[name] = log
        return process

    def load(self, port, requests, connections, seconds=120, **options):
        process = self.load_start(port, requests, connections, **options)
        status = process.wait(seconds)
        expect(status == 0, f"load: {process.stdout.strip()} {tail(process.stderr_path)}")
        return json.loads(process.stdout)

    def stop_apps(self):
        """Ends the services so that their logs are whole, a moment after the last answer; the daemon goes on, and prints
        at its own end what it still has."""
        time.sleep(0.3 * PATIENCE)
        for process in reversed(self.processes):
            if hasattr(process, "port"):
                process.stop()

    def read_logs(self):
        return {name: judge.read_log(path) for name, path in self.logs.items()}

    def judge(self, spans, expected, may_be_loose=False):
        """The judge's verdict, with what the services of this run have measured themselves."""
        return judge.judge(spans, expected, witness.Witness(self.witness_file), may_be_loose or not self.has_witness)

    def pids(self):
        return {process.pid for process in self.processes}


def expect_true(spans, expected, least=None, may_be_loose=False):
    """The judge's verdict on the spans as the case's outcome; returns it as text. 'may_be_loose': the durations of some
    cannot be judged from below; the case says why."""
    verdict = Run.current.judge(spans, expected, may_be_loose)
    expect(verdict.ok, f"{verdict}; " + "; ".join(verdict.problems[:6]))
    expect(least is None or verdict.right >= least, f"only {verdict.right} spans judged: {verdict}")
    return str(verdict)
