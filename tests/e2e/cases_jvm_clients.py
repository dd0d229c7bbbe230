"""JVMs whose service has the servers and clients of libraries: Netty, reactor-netty, OkHttp, Apache HttpClient.

Every cell of server and client calls the back end once for each request: 200 in order, then 1,000 at 16 and at 64
connections that are kept alive. A call's parent is its request; absent is a failure. The clients of a case are in one
service, one after the other.
"""

import time

import apps
import judge
from cases_jvm_attach import AUTO, SETTLES_NS, await_agent
from harness import Skip, expect, expect_true, scaled

SOURCE = apps.SOURCES / "clients"
LOADS = [(200, 1), (1_000, 16), (1_000, 64)]  # requests, connections
# Versions of the libraries; those of "new" are the project's own.
VERSIONS = {
    "new": {},
    "old": {"netty": "4.1.137.Final", "reactor": "1.2.18", "okhttp": "4.12.0", "apache": "5.4.4"},
    "oldest": {"netty": "4.1.137.Final", "reactor": "1.2.17", "okhttp": "3.14.9", "apache": "5.2.3",
               "guava": "31.1-jre", "grpc": "1.58.0", "rxjava": "3.0.13", "rxjava2": "2.1.17",
               "mutiny": "2.9.5", "pekko": "1.0.1", "jetty": "9.4.53.v20231009", "vertx": "4.5.27"},
}
BLOCKING = ["okhttp-execute", "apache-classic", "java-send", "huc"]
HANDED = ["okhttp-enqueue", "apache-async", "apache-shared", "java-sendasync"]
# One result that several requests wait for.
SHARED = ["shared-cf", "shared-mono", "shared-mono-cache", "shared-mutiny", "shared-netty"]
SHARED_BY_NOBODY = ["shared-vertx", "shared-rxjava", "shared-rxjava-cache"]
# Where libraries have queues or workers of their own, or who waits has no object of his own: calls may lack a parent.
MAY_LACK = ["connection", "disruptor", "helping", "mutiny", "publisher", "reactor", "rxjava", "rxjava2",
            *SHARED_BY_NOBODY]
BY_CALLER = ["grpc-sync", "caller", "guava-future"]
ENDLESS = ["threads"]  # loops that are never left, so that the agent never gets into those that were there before it
WAYS = ["guava", "grpc", "pekko", "jetty", "vertx", "deque", "nodes", "serial", "threads",
        "akka", "scala", "reactor-cold", "rxjava-cold", "rxjava2-cold", "mutiny-cold", *BY_CALLER, *MAY_LACK, *SHARED]
LOOPS = ["reactor", "reactor-nio", "netty-nio", "netty-epoll"]


def service(versions):
    """Its class path."""
    if not apps.have("mvn"):
        raise Skip("no mvn here")
    target = apps.CACHE / f"clients-{versions}"
    options = [f"-D{library}.version={version}" for library, version in VERSIONS[versions].items()]
    if "okhttp" in VERSIONS[versions]:
        options.append("-Dokhttp.artifact=okhttp")
    apps.build(target / "clients.jar", [SOURCE / "pom.xml", *SOURCE.glob("src/main/java/*.java")],
               apps.mvn(target, *options, "package"), cwd=SOURCE)
    return f"{target}/classes:{target}/libraries/*"


def start(run, server, clients, versions, home):
    back = run.app("back", apps.java("Back", "{port}", "{log}"))
    java = f"{home}/bin/java" if home else "java"
    front = run.app("front", [java, "-Dsun.net.httpserver.nodelay=true", "-Dhttp.maxConnections=256", "-cp",
                              service(versions), "Front", "{port}", back.port, "{log}", server, *clients])
    return front, back


def hops(front, back, client, load, may_lack=False):
    return [judge.Hop("server", f"/{client}/{{id}}", outer=load, inner="front", pid=front.pid),
            judge.Hop("client", "/back/{id}", outer="front", inner="back", pid=front.pid, may_lack_parent=may_lack),
            judge.Hop("server", "/back/{id}", outer="front", inner="back", pid=back.pid)]


def judge_loads(run, daemon, services, clients, late_ns=0, may_lack=False, settling=()):
    """What the loads CLIENT-CONNECTIONS, or late-CLIENT, became. 'settling': loads of the first of 'clients' that were
    over by 'late_ns'."""
    front, back = services
    run.stop_apps()
    ours = [span for span in daemon.finish() if span["pid"] in run.pids()]
    logs = run.read_logs()
    expected = []
    for client in clients:
        for load in [f"late-{client}"] if late_ns else [f"{client}-{connections}" for _, connections in LOADS]:
            expected += judge.expand(hops(front, back, client, load, may_lack), logs, load,
                                     in_flight_before=late_ns)
    for load in settling:
        expected += judge.expand(hops(front, back, clients[0], load), logs, load, in_flight_before=late_ns)
    return expect_true(ours, expected, least=scaled(1_000))


def daemon_with_agent(run, front):
    """And when its agent had been in use for a moment, as time.time_ns()."""
    daemon = run.daemon(run.config(AUTO))
    await_agent(daemon, front)
    return daemon, time.time_ns() + SETTLES_NS


def cells(run, server, clients, versions="new", home=None, may_lack=False):
    """The agent comes before the first request."""
    services = front, _ = start(run, server, clients, versions, home)
    daemon, _ = daemon_with_agent(run, front)
    for client in clients:
        for requests, connections in LOADS:
            run.load(front.port, scaled(requests), connections, name=f"{client}-{connections}", prefix=f"/{client}/",
                     id=f"{client}-{connections}")
    return judge_loads(run, daemon, services, clients, may_lack=may_lack)


def cells_late(run, server, clients, versions="new", home=None, may_lack=False, settle_s=0, rate=500,
               requests=4_800, at_once=0):
    """The agent comes after 1,000 requests, when all connections, threads and jobs are there. A method that runs by then
    stays as it was, a loop as long as there is work: for 'settle_s' calls may lack a parent. 'at_once': requests that come
    together in that time."""
    services = front, _ = start(run, server, clients, versions, home)
    loads = [run.load_start(front.port, scaled(requests // len(clients)), 16, name=f"late-{client}",
                            prefix=f"/{client}/", id=f"late-{client}", rate=rate / len(clients)) for client in clients]
    time.sleep(1_000 / rate)
    daemon, agent_ns = daemon_with_agent(run, front)
    if at_once:
        run.load(front.port, at_once, at_once, name="settling", prefix=f"/{clients[0]}/", id="settling")
    expect(all(load.running() for load in loads), "a load was over before the agent was in use")
    for load in loads:
        status = load.wait(60)
        expect(status == 0, f"load: {load.stdout} {load.stderr}")
    return judge_loads(run, daemon, services, clients, late_ns=agent_ns + int(settle_s * 1e9), may_lack=may_lack,
                       settling=["settling"] if at_once else [])


def cells_after(run, server, clients, versions="new", home=None, may_lack=False):
    """The agent comes after 1,000 requests, when all are answered: what one thread does for others is all its own to the
    daemon alone."""
    services = front, _ = start(run, server, clients, versions, home)
    for client in clients:
        run.load(front.port, 1_000, 16, name=f"before-{client}", prefix=f"/{client}/", id=f"before-{client}")
    daemon, agent_ns = daemon_with_agent(run, front)
    for client in clients:
        run.load(front.port, scaled(2_000), 16, name=f"late-{client}", prefix=f"/{client}/", id=f"late-{client}")
    return judge_loads(run, daemon, services, clients, late_ns=agent_ns, may_lack=may_lack)


def way_late(run, way, versions="new", home=None):
    options = {"may_lack": way in MAY_LACK or way in ENDLESS, "versions": versions, "home": home}
    if way in BY_CALLER:
        return cells_after(run, f"jdk-{way}", ["huc"], **options)
    if way == "connection":
        options["at_once"] = 64  # until two write without an answer in between, a shared connection looks like a pool's
    return cells_late(run, f"jdk-{way}", ["huc"], settle_s=2, rate=200, requests=3_200, **options)  # no loop goes on for ever


def way_early(run, way, versions="new", home=None):
    return cells(run, f"jdk-{way}", ["huc"], versions, may_lack=way in MAY_LACK, home=home)


GROUPS = {"blocking": BLOCKING, "handed": HANDED, "loops": LOOPS}
# What is handed on by Netty's own executors is the same for both transports.
SERVERS = {
    **dict.fromkeys(["jdk", "netty-nio-inline", "netty-nio-pool", "netty-nio-loop", "netty-nio-delayed",
                     "netty-epoll-inline", "netty-epoll-pool", "netty-epoll-loop"], list(GROUPS)),
    **dict.fromkeys(["netty-nio-executor", "netty-nio-global", "netty-nio-ordered"], ["handed"]),
}


def make(server, group="all", versions="new", java=17, late=False):
    def case(run):
        home = apps.java_home(str(java)) if java != 17 else None
        if java != 17 and not home:
            raise Skip(f"no Java {java} here")
        clients = GROUPS.get(group, BLOCKING + HANDED + LOOPS)
        return (cells_late if late else cells)(run, server, clients, versions, home)
    case.__doc__ = (f"Server {server}, Java {java}, {versions} versions of the libraries; clients: {group}"
                    f"{'; the agent comes late' if late else ''}.")
    words = [f"jvm{java if java != 17 else ''}", server, group if group != "all" else "",
             versions if versions != "new" else "", "late" if late else ""]
    case.__name__ = "case_" + "_".join(word for word in words if word).replace("-", "_")
    case.__module__ = __name__
    globals()[case.__name__] = case


def make_way(way, late=False, java=17):
    def case(run):
        home = apps.java_home(str(java)) if java != 17 else None
        if java != 17 and not home:
            raise Skip(f"no Java {java} here")
        return (way_late if late else way_early)(run, way, home=home)
    case.__doc__ = f"Work is handed over by '{way}' of Ways.java, Java {java}{'; the agent comes late' if late else ''}."
    case.__name__ = f"case_jvm{java if java != 17 else ''}_way_{way}{'_late' if late else ''}".replace("-", "_")
    case.__module__ = __name__
    globals()[case.__name__] = case


# All cells: tests/jvm/run. These are in each one's ways.
make("jdk", "handed")
make("netty-nio-inline", "blocking")
make("netty-nio-loop", "loops")
make("netty-epoll-pool", "handed")
make("netty-epoll-inline", "loops")
make("netty-nio-executor", "handed")
make("netty-nio-global", "handed")
make("netty-nio-inline", versions="old", late=True)
make("netty-epoll-pool", versions="oldest", late=True)
make("netty-nio-delayed", java=25, late=True)
make_way("guava")
make_way("guava-future")
make_way("pekko", java=25)
make_way("reactor")
for _way in ["publisher", "rxjava2", "rxjava2-cold", "mutiny", "mutiny-cold"]:
    make_way(_way)
make_way("connection")
make_way("connection", java=25, late=True)
make_way("grpc-sync", late=True)
make_way("threads", java=25)
make_way("serial", late=True)
make_way("helping")
for _way in SHARED + SHARED_BY_NOBODY:
    make_way(_way)
