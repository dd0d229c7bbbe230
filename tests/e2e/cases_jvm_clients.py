"""JVMs whose service has the servers and clients of libraries: Netty, reactor-netty, OkHttp, Apache HttpClient.

Every cell of server and client calls the back end once for each request: 200 in order, then 1,000 at 16 and at 64
connections that are kept alive. A call's parent is its request; absent is a failure. The clients of a case are in one
service, one after the other.
"""

import os
import time

import apps
import judge
from cases_jvm import load_agent, state_of
from harness import Skip, expect, expect_true, scaled

SOURCE = apps.SOURCES / "clients"
LOADS = [(200, 1), (1_000, 16), (1_000, 64)]  # requests, connections
# Versions of the libraries; those of "new" are the project's own.
VERSIONS = {
    "new": {},
    "old": {"netty": "4.1.137.Final", "reactor": "1.2.18", "okhttp": "4.12.0", "apache": "5.4.4"},
    "oldest": {"netty": "4.1.137.Final", "reactor": "1.2.17", "okhttp": "3.14.9", "apache": "5.2.3"},
}
BLOCKING = ["okhttp-execute", "apache-classic", "java-send", "huc"]
HANDED = ["okhttp-enqueue", "apache-async", "apache-shared", "java-sendasync"]
LOOPS = ["reactor", "reactor-nio", "netty-nio", "netty-epoll"]


def service(versions):
    """Its class path."""
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


def start(run, server, clients, versions, home):
    back = run.app("back", apps.java("Back", "{port}", "{log}"))
    java = f"{home}/bin/java" if home else "java"
    front = run.app("front", [java, "-Dsun.net.httpserver.nodelay=true", "-Dhttp.maxConnections=256", "-cp",
                              service(versions), "Front", "{port}", back.port, "{log}", server, *clients])
    return front, back


def hops(front, back, client, load):
    return [judge.Hop("server", f"/{client}/{{id}}", outer=load, inner="front", pid=front.pid),
            judge.Hop("client", "/back/{id}", outer="front", inner="back", pid=front.pid),
            judge.Hop("server", "/back/{id}", outer="front", inner="back", pid=back.pid)]


def judge_loads(run, daemon, front, back, clients):
    time.sleep(1.5)  # what is printed within 1 s has been
    run.stop_apps()
    ours = [span for span in daemon.finish() if span["pid"] in run.pids() and "-before-" not in judge.span_path(span)]
    logs = run.read_logs()
    expected = []
    for client in clients:
        for _, connections in LOADS:
            load = f"{client}-{connections}"
            expected += judge.expand(hops(front, back, client, load), logs, load)
    return expect_true(ours, expected)


def cells(run, server, clients, versions="new", home=None, is_late=False):
    """A late agent comes when there were 1,000 requests, and connections, threads and jobs are there."""
    front, back = start(run, server, clients, versions, home)
    before = []
    if is_late:
        before = [run.load_start(front.port, 1_000_000, 16, name=f"before-{client}", prefix=f"/{client}/",
                                 id=f"before-{client}", rate=200, seconds=60) for client in clients]
        time.sleep(5)
    load_agent(front, home)
    daemon = run.daemon()
    expect(state_of(daemon, front) == "in use", f"the agent: {state_of(daemon, front)}")
    for client in clients:
        for requests, connections in LOADS:
            run.load(front.port, scaled(requests), connections, name=f"{client}-{connections}", prefix=f"/{client}/",
                     id=f"{client}-{connections}")
    for load in before:
        load.stop()
    return judge_loads(run, daemon, front, back, clients)


def make(server, group, clients):
    def case(run):
        return cells(run, server, clients)
    case.__doc__ = f"Server {server}, clients that are {group}."
    case.__name__ = f"case_jvm_{server}_{group}".replace("-", "_")
    case.__module__ = __name__
    return case


SERVERS = ["jdk", *(f"netty-{transport}-{how}" for transport in ("nio", "epoll")
                    for how in ("inline", "pool", "loop", "delayed", "executor"))]
for _server in SERVERS:
    for _group, _clients in (("blocking", BLOCKING), ("handed", HANDED), ("loops", LOOPS)):
        _case = make(_server, _group, _clients)
        globals()[_case.__name__] = _case
