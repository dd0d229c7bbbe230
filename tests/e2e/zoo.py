"""Services on the servers that people run their Java on (tests/apps/zoo): what they are, how they are built, run and
judged, with the agent in them.

Used by the end-to-end cases, which run a few of them, and by tests/zoo/run, which runs all. A service answers
GET /WAY/ID, and calls the back end once for it, in the way that is named. Each is held against itself without the
daemon: what it prints, and how it ends.
"""

import collections
import dataclasses
import os
import re
import shutil
import time

import apps
import judge
from cases_chains import need
from cases_jvm_attach import AUTO, LOADED, SETTLES_NS, await_agent
from harness import Failure, Skip, expect, scaled

SOURCES = apps.SOURCES / "zoo"
CONNECTIONS = 16
# What differs from one run to the next by itself: threads' names, cut to a width, numbers, identities of objects.
CHANGES = re.compile(r"\[ *[^][ ]*-[0-9]+]|\b0x[0-9a-f]+\b|\b[0-9a-f]{6,}\b|[0-9]+([.,:][0-9]+)*")


@dataclasses.dataclass
class Service:
    folder: str
    ways: tuple
    version: str = ""                  # of the server, as the table has it
    jdks: tuple = ("17", "25")
    maven: tuple = ()                  # properties of the build, NAME=VALUE
    arguments: tuple = ()
    options: tuple = ()                # of java
    built_by: str = ""                 # JDK; empty: the host's
    jar: str = ""                      # started by this file of the build, instead of zoo.Main
    body_ms: int = 0                   # requests have a body whose parts come so far apart


SERVICES = {
    "spring-mvc": Service("spring-mvc", ("template", "client", "web", "async", "callable", "future", "deferred"),
                          "Spring Boot 3.5.7, Tomcat"),
    "spring-mvc-virtual": Service("spring-mvc", ("template", "client", "web", "async", "callable", "deferred"),
                                  "Spring Boot 3.5.7, Tomcat, virtual threads", jdks=("21", "25"),
                                  arguments=("--spring.threads.virtual.enabled=true",)),
    "spring-webflux": Service("spring-webflux", ("web", "delay", "publish", "elastic", "future"),
                              "Spring Boot 3.5.7, WebFlux"),
    "jetty-12": Service("jetty", ("handler", "listener", "servlet", "async"), "Jetty 12.0.25"),
    "vertx-5": Service("vertx", ("web", "client", "timer", "blocking", "handler"), "Vert.x 5.0.7"),
    "vertx-4": Service("vertx", ("web", "client", "timer", "blocking", "handler"), "Vert.x 4.5.27",
                       maven=("vertx.version=4.5.27",)),
    "quarkus": Service("quarkus", ("rest", "uni", "web", "stage"), "Quarkus 3.33.2", jar="quarkus-app/quarkus-run.jar"),
    "micronaut": Service("micronaut", ("blocking", "reactive", "future"), "Micronaut 4.10.8"),
    "helidon": Service("helidon", ("own", "send", "future"), "Helidon SE 4.5.0", jdks=("21", "25"), built_by="25"),
    "javalin": Service("javalin", ("execute", "enqueue", "async"), "Javalin 6.7.0, Jetty 11"),
    "dropwizard": Service("dropwizard", ("own", "async"), "Dropwizard 4.0.16, Jetty 11"),
    "armeria": Service("armeria", ("own", "blocking", "connection"), "Armeria 1.32.0"),
    "embedded": Service("embedded", ("database", "index", "osgi"), "H2 2.3.232, Lucene 9.12.3, Felix 7.0.5",
                        arguments=("database", "index", "osgi")),
    "security-manager": Service("embedded", ("plain",), "The JDK's server, under a security manager", jdks=("17",),
                                options=("-Djava.security.manager",
                                         f"-Djava.security.policy={SOURCES / 'embedded/policy'}")),
    "grizzly-4": Service("grizzly", ("body", "own"), "Grizzly 4.0.2", body_ms=3),
    "grizzly-2": Service("grizzly", ("body", "own"), "Grizzly 2.4.4", maven=("grizzly.version=2.4.4",), body_ms=3),
    "tomcat-11": Service("tomcat", ("body", "own"), "Tomcat 11.0.13", body_ms=3),
    "tomcat-10": Service("tomcat", ("body", "own"), "Tomcat 10.1.48", maven=("tomcat.version=10.1.48",), body_ms=3),
    "undertow": Service("undertow", ("worker", "send", "future", "own"), "Undertow 2.3.24"),
}


def builder(java):
    home = apps.java_home(java) if java else None
    return {**os.environ, "JAVA_HOME": str(home)} if home else dict(os.environ)


def program(name):
    """argv of java after its options: how the service is started."""
    need("java", "mvn", "go")
    service = SERVICES[name]
    source = SOURCES / service.folder
    target = apps.CACHE / "zoo" / (name if service.maven else service.folder)
    sources = [SOURCES / "pom.xml", *SOURCES.glob("common/*.java"), *(f for f in source.rglob("*") if f.is_file())]

    def command():
        shutil.rmtree(target, ignore_errors=True)  # else libraries of other versions stay
        return apps.mvn(target, *(f"-D{one}" for one in service.maven), "package")

    try:
        apps.build(target / "service.jar", sources, command, cwd=source, env=builder(service.built_by))
    except apps.BuildFailed as error:
        raise Failure(f"service {name}: {error}") from None
    if service.jar:
        return ["-jar", target / service.jar]
    return ["-cp", f"{target}/classes:{target}/libraries/*", "zoo.Main"]


def load_options(service):
    return {"body_ms": service.body_ms} if service.body_ms else {}


def start(run, name, java, process_name="front"):
    """The service and its back end."""
    service = SERVICES[name]
    home = apps.java_home(java)
    if not home:
        raise Skip(f"no Java {java} here")
    argv = [f"{home}/bin/java", "-Dhttp.maxConnections=256", *service.options, *program(name)]
    back = run.app(f"{process_name}-back", [apps.go_chain(), "back", "{port}", "{log}"])
    front = run.app(process_name, [*argv, "{port}", back.port, "{log}", *service.arguments])
    return front, back


def printed(process):
    """What it printed, how often, without what differs from run to run and the JDK's own lines about agents."""
    lines = (process.stdout + process.stderr).splitlines()
    return collections.Counter(CHANGES.sub("#", line) for line in lines if not LOADED.match(line))


def alone(run, name, java):
    """What the service prints without the daemon, and its exit status."""
    front, back = start(run, name, java, "alone")
    for way in SERVICES[name].ways:
        run.load(front.port, 100, CONNECTIONS, name=f"alone-{way}", prefix=f"/{way}/", id=f"alone-{way}",
                 **load_options(SERVICES[name]))
    status = front.stop(20)
    back.stop()
    return printed(front), status


def expect_same(front, before):
    """It printed and ended as it did alone."""
    wanted, status = before
    found = printed(front)
    more, less = found - wanted, wanted - found
    expect(not more and not less, f"printed {list(more)[:3]} and not {list(less)[:3]}")
    expect(front.popen.returncode == status, f"ended with {front.popen.returncode}, alone with {status}")


def judge_ways(run, spans, services, name, late_ns=0):
    """The verdict over all ways, and, of those that are not right, what is wrong with them."""
    front, back = services
    ways, method = SERVICES[name].ways, "POST" if SERVICES[name].body_ms else "GET"
    total, texts, logs, rest = judge.Verdict(), [], run.read_logs(), list(spans)
    for way in ways:
        ours = [span for span in rest if judge.span_path(span).rsplit("/", 1)[-1].startswith(f"{way}-")]
        rest = [span for span in rest if span not in ours] if len(ours) < len(rest) else []
        hops = [judge.Hop("server", f"/{way}/{{id}}", outer=way, inner="front", pid=front.pid, method=method),
                judge.Hop("client", "/back/{id}", outer="front", inner="front-back", pid=front.pid),
                judge.Hop("server", "/back/{id}", outer="front", inner="front-back", pid=back.pid)]
        verdict = run.judge(ours, judge.expand(hops, logs, way, in_flight_before=late_ns), may_be_loose=True)
        for field in ("right", "wrong", "absent", "missing", "extra", "excused", "loose"):
            setattr(total, field, getattr(total, field) + getattr(verdict, field))
        if not verdict.ok:
            texts.append(f"{way}: {verdict}; " + "; ".join(verdict.problems[:3]))
    total.may_be_loose = True
    total.extra += len(rest)
    return total, texts


def finish(run, daemon, services, name, late_ns, before):
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids()]
    total, texts = judge_ways(run, spans, services, name, late_ns)
    expect(total.ok, f"{total}; " + "; ".join(texts))
    expect_same(services[0], before)
    return f"{total}, output and exit status as alone"


def daemon_with_agent(run, front):
    """And when its agent had been in use for a moment, as time.time_ns()."""
    daemon = run.daemon(run.config(AUTO))
    await_agent(daemon, front)
    return daemon, time.time_ns() + SETTLES_NS


def chain(run, name, java, before, requests=600):
    """The agent comes before the first request."""
    services = front, _ = start(run, name, java)
    daemon, _ = daemon_with_agent(run, front)
    for way in SERVICES[name].ways:
        run.load(front.port, scaled(requests), CONNECTIONS, name=way, prefix=f"/{way}/", id=way, traceparent=20,
                 **load_options(SERVICES[name]))
    return finish(run, daemon, services, name, 0, before)


def chain_late(run, name, java, before):
    """The agent comes after 1,000 requests, while connections, threads and jobs go on."""
    services = front, _ = start(run, name, java)
    ways = SERVICES[name].ways
    loads = [run.load_start(front.port, 4_800 // len(ways), max(2, CONNECTIONS // len(ways)), name=way,
                            prefix=f"/{way}/", id=way, rate=500 / len(ways), **load_options(SERVICES[name]))
             for way in ways]
    time.sleep(2.5)
    daemon, agent_ns = daemon_with_agent(run, front)
    expect(all(load.running() for load in loads), "a load was over before the agent was in use")
    for load in loads:
        expect(load.wait(60) == 0, f"requests failed: {load.stdout} {load.stderr}")
    return finish(run, daemon, services, name, agent_ns, before)
