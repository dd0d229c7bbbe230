"""Ktor services with the agent in them: whatever coroutine calls the backend, by whatever client, its call has the
request for its parent. Absent is a failure.

Each case starts one service, loads the agent before its first request or after 1,000, and drives one route after the
other over connections that are kept alive.
"""

import time

import apps
from cases_chains import need
from cases_jvm_attach import AUTO, await_agent
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


def ktor(run, engine, client, home=None):
    need("java", "mvn", "go")
    try:
        jar = apps.ktor()
    except apps.BuildFailed as error:
        raise Failure(f"Ktor service: {error}") from None
    back = run.app("back", [apps.go_chain(), "back", "{port}", "{log}"])
    front = run.app("front", [f"{home}/bin/java" if home else "java", "-Dhttp.maxConnections=256", "-jar", jar, "{port}",
                              back.port, "{log}", engine, client])
    return front, back


def chain(run, engine, client, routes=ROUTES, home=None, before=0):
    """200 requests in order, 1,000 at 16 and 1,000 at 64 connections, over all routes; the verdict as text."""
    front, back = ktor(run, engine, client, home)
    for route in routes if before else ():
        run.load(front.port, before // len(routes), 64, name=f"before-{route}", prefix=f"/{route}/",
                 id=f"before-{route}")
    daemon = run.daemon(run.config(AUTO))
    await_agent(daemon, front)

    loads = []
    for route in routes:
        for requests, connections in ((200, 1), (1_000, 16), (1_000, 64)):
            name = f"{route}-{connections}"
            run.load(front.port, requests // len(routes), connections, name=name, prefix=f"/{route}/",
                     id=f"on-{name}", traceparent=20)
            loads.append((route, name))
    time.sleep(1.5)  # what is printed within 1 s has been
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids()]
    logs = run.read_logs()
    expected = [one for route, name in loads for one in expand(hops(route, name, front, back), logs, load=name)]
    return expect_true(spans, expected)


def case_ktor_cio_cio(run):
    """Ktor's CIO engine, calls by its CIO client."""
    return chain(run, "cio", "cio")


def case_ktor_cio_cio_late(run):
    """The same; the agent comes when all connections and coroutines are there."""
    return chain(run, "cio", "cio", before=1_000)


def case_ktor_cio_java(run):
    """Calls by java.net.http through Ktor's client."""
    return chain(run, "cio", "java")


def case_ktor_cio_java_late(run):
    """The same; the agent comes when all connections and coroutines are there."""
    return chain(run, "cio", "java", before=1_000)


def case_ktor_cio_jdk_send(run):
    """Calls by java.net.http's send(), in Dispatchers.IO."""
    return chain(run, "cio", "jdk-send")


def case_ktor_cio_jdk_send_async(run):
    """Calls by java.net.http's sendAsync()."""
    return chain(run, "cio", "jdk-send-async")


def case_ktor_cio_url_connection(run):
    """Calls by HttpURLConnection, in Dispatchers.IO."""
    return chain(run, "cio", "url-connection")


def case_ktor25_cio_cio(run):
    """JDK 25; a virtual thread calls too."""
    home = apps.java25_home()
    if not home:
        raise Skip("no Java 25 here")
    return chain(run, "cio", "cio", routes=(*ROUTES, "vt"), home=home)
