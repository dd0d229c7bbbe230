"""JVMs whose service has the servers and clients of libraries: Netty, reactor-netty, OkHttp, Apache HttpClient.

Every cell of server and client calls the back end once for each request: 200 in order, then 1,000 at 16 and at 64
connections that are kept alive. Its parent is that request; absent is a failure.
"""

import os
import time

import apps
from cases_chains import chain_hops
from cases_jvm import load_agent, state_of
from harness import Skip, expect, expect_true
from judge import expand

LOADS = [(200, 1), (1_000, 16), (1_000, 64)]  # requests, connections
SOURCE = apps.SOURCES / "clients"
# Versions of the libraries: the newest are the project's own.
VERSIONS = {
    "new": {},
    "old": {"netty": "4.1.137.Final", "reactor": "1.2.18", "okhttp": "4.12.0", "apache": "5.4.4"},
    "oldest": {"netty": "4.1.137.Final", "reactor": "1.2.17", "okhttp": "3.14.9", "apache": "5.2.3"},
}


def program(versions):
    """The class path of the service."""
    if not apps.have("mvn"):
        raise Skip("no mvn here")
    target = apps.CACHE / f"clients-{versions}"
    options = [f"-D{library}.version={version}" for library, version in VERSIONS[versions].items()]
    if "okhttp" in VERSIONS[versions]:
        options.append("-Dokhttp.artifact=okhttp")
    repository = os.environ.get("TSUNAGI_M2", "/var/cache/tsunagi/m2")
    apps.build(target / "clients.jar", [SOURCE / "pom.xml", *SOURCE.glob("src/main/java/*.java")],
               ["mvn", "-q", "-B", f"-Dmaven.repo.local={repository}", f"-Dproduct.directory={target}", *options,
                "package"], cwd=SOURCE)
    return f"{target}/classes:{target}/libraries/*"


def start(run, server, client, versions, home):
    back = run.app("back", apps.java("Back", "{port}", "{log}"))
    java = f"{home}/bin/java" if home else "java"
    front = run.app("front", [java, "-Dsun.net.httpserver.nodelay=true", "-Dhttp.maxConnections=256", "-cp",
                              program(versions), "Front", "{port}", back.port, "{log}", server, client])
    return front, back


def drive(run, port):
    for requests, connections in LOADS:
        run.load(port, requests, connections, name=f"load-{connections}", id=f"at{connections}x")


def judge_loads(run, daemon, front, back):
    time.sleep(1.5)  # what is printed within 1 s has been
    run.stop_apps()
    ours = [span for span in daemon.finish() if span["pid"] in run.pids()]
    logs = run.read_logs()
    logs["load"] = {key: record for _, connections in LOADS for key, record in logs[f"load-{connections}"].items()}
    return expect_true(ours, expand(chain_hops(front, back), logs))


def cell(run, server, client, versions="new", home=None, is_late=False):
    """A late agent comes when connections, threads and jobs are there already."""
    front, back = start(run, server, client, versions, home)
    if is_late:
        held = run.load_start(front.port, 100_000, 16, name="load-before", id="before", seconds=3)
    load_agent(front, home)
    daemon = run.daemon()
    expect(state_of(daemon, front) == "in use", f"the agent: {state_of(daemon, front)}")
    drive(run, front.port)
    return judge_loads(run, daemon, front, back)


def make(server, client):
    def case(run):
        return cell(run, server, client)
    case.__doc__ = f"Server {server}, client {client}."
    case.__name__ = f"case_jvm_cell_{server}_{client}".replace("-", "_")
    case.__module__ = __name__
    return case


SERVERS = ["jdk", *(f"netty-{transport}-{how}" for transport in ("nio", "epoll")
                    for how in ("inline", "pool", "loop", "delayed", "executor"))]
CLIENTS = ["okhttp-execute", "okhttp-enqueue", "apache-classic", "apache-async", "apache-shared", "reactor",
           "reactor-nio", "netty-nio", "netty-epoll", "java-send", "java-sendasync", "huc"]
for _server in SERVERS:
    for _client in CLIENTS:
        _case = make(_server, _client)
        globals()[_case.__name__] = _case
