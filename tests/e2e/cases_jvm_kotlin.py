"""Ktor services with the agent in them: whatever coroutine calls the backend, by whatever client, its call has the
request for its parent. Absent is a failure.

Each case has one service and drives its routes over connections that are kept alive; the agent comes before the first
request, or after 1,000.
"""

import time

import apps
from cases_chains import need
from cases_jvm_attach import AUTO, SETTLES_NS, await_agent
from harness import Failure, Skip, expect, expect_true
from judge import Hop, expand

ROUTES = ("direct", "hop", "parallel", "shared")


def calls(route):
    """What the service's calls for one request add to the request's id."""
    return ("-a", "-b") if route == "parallel" else ("",)


def hops(route, load, front, back):
    chain = [Hop("server", f"/{route}/{{id}}", outer=load, inner="front", pid=front.pid)]
    for number, suffix in enumerate(calls(route)):
        path, record = f"/back/{{id}}{suffix}", f"{{id}}{suffix}"
        chain += [Hop("client", path, outer="front", inner="back", pid=front.pid, record=record,
                      follows=-1 - 2 * number),
                  Hop("server", path, outer="front", inner="back", pid=back.pid, record=record)]
    return chain


def ktor(run, engine, client, home=None, version="3.5"):
    need("java", "mvn", "go")
    try:
        jar = apps.ktor(version)
    except apps.BuildFailed as error:
        raise Failure(f"Ktor service: {error}") from None
    back = run.app("back", [apps.go_chain(), "back", "{port}", "{log}"])
    front = run.app("front", [f"{home}/bin/java" if home else "java", "-Dhttp.maxConnections=256", "-jar", jar, "{port}",
                              back.port, "{log}", engine, client])
    return front, back


def judge_loads(run, daemon, services, loads, late_ns=0):
    """What the loads, each (route, name), became. Those before 'late_ns' may lack something."""
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids()]
    logs = run.read_logs()
    expected = [one for route, name in loads
                for one in expand(hops(route, name, *services), logs, load=name, in_flight_before=late_ns)]
    return expect_true(spans, expected)


def chain(run, engine, client, routes=ROUTES, home=None, share=None, version="3.5"):
    """200 requests in order, 1,000 at 16 and 1,000 at 64 connections, each route's 'share' of them (by default all make
    so many together); the verdict as text."""
    services = front, _ = ktor(run, engine, client, home, version)
    daemon = run.daemon(run.config(AUTO))
    await_agent(daemon, front)
    loads = []
    for route in routes:
        for requests, connections in ((200, 1), (1_000, 16), (1_000, 64)):
            name = f"{route}-{connections}"
            run.load(front.port, int(requests * (share or 1 / len(routes))), connections, name=name,
                     prefix=f"/{route}/", id=f"on-{name}", traceparent=20)
            loads.append((route, name))
    return judge_loads(run, daemon, services, loads)


def chain_late(run, engine, client, routes=ROUTES, home=None, version="3.5"):
    """The agent comes after 1,000 requests, when all connections and coroutines are there, and these go on."""
    services = front, _ = ktor(run, engine, client, home, version)
    running = [run.load_start(front.port, 4_800 // len(routes), 16, name=f"late-{route}", prefix=f"/{route}/",
                              id=f"late-{route}", rate=500 / len(routes)) for route in routes]
    time.sleep(2)
    daemon = run.daemon(run.config(AUTO))
    await_agent(daemon, front)
    late_ns = time.time_ns() + SETTLES_NS
    expect(all(load.running() for load in running), "a load was over before the agent was in use")
    for load in running:
        expect(load.wait(60) == 0, f"load: {load.stdout} {load.stderr}")
    return judge_loads(run, daemon, services, [(route, f"late-{route}") for route in routes], late_ns)


def make(engine, client, java=17, late=False, version="3.5"):
    def case(run):
        home = apps.java_home(str(java)) if java != 17 else None
        if java != 17 and not home:
            raise Skip(f"no Java {java} here")
        routes = ROUTES if java < 21 else (*ROUTES, "vt")
        return (chain_late if late else chain)(run, engine, client, routes, home, version=version)
    when = ", the agent comes late" if late else ""
    case.__doc__ = f"Ktor {version}'s {engine} engine, {client} calls, Java {java}{when}."
    words = [f"ktor{java if java != 17 else ''}", engine, client]
    words += ([version.replace(".", "_")] if version != "3.5" else []) + (["late"] if late else [])
    case.__name__ = f"case_{'_'.join(words)}".replace("-", "_")
    case.__module__ = __name__
    globals()[case.__name__] = case


# All cells: tests/jvm/run. These are in each one's ways.
for _engine, _clients in {"cio": ["cio", "java", "jdk-send", "url-connection"],
                          "netty-nio": ["okhttp", "apache5"],
                          "netty-epoll": ["okhttp-execute", "jdk-send-async"]}.items():
    for _client in _clients:
        make(_engine, _client)
make("cio", "cio", late=True)
make("netty-epoll", "okhttp-enqueue", late=True)
make("netty-nio", "cio", java=21, late=True)
make("cio", "okhttp", java=25)
make("netty-nio", "okhttp-enqueue", version="2.3")
make("cio", "cio", late=True, version="2.3")
