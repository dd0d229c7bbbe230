"""Chains of real services under load: every request becomes exactly the spans it should, and nothing else."""

import time

import apps
from harness import PATIENCE, Failure, Jaeger, Skip, expect, expect_true, scaled
from judge import Hop, expand

REQUESTS = 10_000  # never scaled


def need(*programs):
    for program in programs:
        if not apps.have(program):
            raise Skip(f"no {program} here")


def java_chain(run, home=None, mode="same", threads=64, options=()):
    back = run.app("back", apps.java("Back", "{port}", "{log}", home=home, options=options))
    front = run.app("front", apps.java("Front", "{port}", back.port, "{log}", threads, mode, home=home, options=options))
    return front, back


def go_chain(run, mode=(), program=None):
    program = program or apps.go_chain()
    back = run.app("back", [program, "back", "{port}", "{log}"])
    front = run.app("front", [program, "front", "{port}", "{log}", back.port, *mode])
    return front, back


def chain_hops(front, back, client_may_lack_parent=False):
    return [Hop("server", "/x/{id}", outer="load", inner="front", pid=front.pid),
            Hop("client", "/back/{id}", outer="front", inner="back", pid=front.pid,
                may_lack_parent=client_may_lack_parent),
            Hop("server", "/back/{id}", outer="front", inner="back", pid=back.pid)]


def judge_chain(run, daemon, front, back, **options):
    """Ends services and daemon, judges what the daemon printed."""
    in_flight_before = options.pop("in_flight_before", 0)
    run.stop_apps()
    ours = [span for span in daemon.finish() if span["pid"] in run.pids()]
    expected = expand(chain_hops(front, back, **options), run.read_logs(), in_flight_before=in_flight_before)
    return expect_true(ours, expected)


def case_java_chain(run):
    """10,000 requests at 32 connections with the default configuration; the agent comes under load."""
    need("java", "javac")
    front, back = java_chain(run)
    daemon = run.daemon(run.config(agent=None))
    run.load(front.port, REQUESTS, 32, traceparent=20)
    expect(daemon.counters()["jvm_agents_loaded"] == 2, "agents are not loaded by default")
    return judge_chain(run, daemon, front, back)


def case_java_chain_threads(run):
    """The same without agents: threads are the units of work."""
    need("java", "javac")
    front, back = java_chain(run)
    daemon = run.daemon()
    run.load(front.port, REQUESTS, 32, traceparent=20)
    return judge_chain(run, daemon, front, back)


def case_java_few(run):
    """500 requests at 8 connections: the Java chain for slow machines."""
    need("java", "javac")
    front, back = java_chain(run)
    daemon = run.daemon()
    run.load(front.port, 500, 8, traceparent=20)
    return judge_chain(run, daemon, front, back)


def case_java_chain_jaeger(run):
    """The same, judged by what a real Jaeger answers."""
    need("java", "javac")
    jaeger = Jaeger(run)
    front, back = java_chain(run)
    daemon = run.daemon(run.config(endpoint=jaeger.endpoint, agent=None))
    run.load(front.port, REQUESTS, 32, traceparent=20)
    run.stop_apps()
    daemon.finish()
    expected = expand(chain_hops(front, back), run.read_logs())
    deadline = time.monotonic() + 10
    while len(spans := jaeger.spans()) < len(expected) and time.monotonic() < deadline:
        time.sleep(0.5)
    return expect_true(spans, expected)


def case_java_chain_daemon_late(run):
    """The daemon starts in the middle of the load: only requests in flight then may lack a span."""
    need("java", "javac")
    front, back = java_chain(run)
    load = run.load_start(front.port, REQUESTS, 32, traceparent=20, rate=700)
    time.sleep(2.5)
    daemon = run.daemon(run.config(agent=None))
    expect(load.running(), "the load was over before the daemon was ready")
    status = load.wait(120)
    expect(status == 0, f"load: {load.stdout}")
    return judge_chain(run, daemon, front, back, in_flight_before=daemon.ready_ns)


def case_java_few_daemon_late(run):
    """500 requests at 8 connections, the daemon starts in the middle: the same for slow machines."""
    need("java", "javac")
    front, back = java_chain(run)
    load = run.load_start(front.port, 500, 8, traceparent=20, rate=max(12, int(100 / PATIENCE)))
    time.sleep(1.5)
    daemon = run.daemon()
    expect(load.running(), "the load was over before the daemon was ready")
    status = load.wait(120)
    expect(status == 0, f"load: {load.stdout}")
    return judge_chain(run, daemon, front, back, in_flight_before=daemon.ready_ns)


def case_java25_chain(run):
    """Java 25, both services, with the default configuration."""
    need("javac")
    home = apps.java25_home()
    if not home:
        raise Skip("no Java 25 here")
    front, back = java_chain(run, home)
    daemon = run.daemon(run.config(agent=None))
    run.load(front.port, scaled(5_000), 32, traceparent=20)
    return judge_chain(run, daemon, front, back)


def case_java25_virtual_threads(run):
    """A virtual thread for each request; a client's parent may be absent, never wrong."""
    need("javac")
    home = apps.java25_home()
    if not home:
        raise Skip("no Java 25 here")
    front, back = java_chain(run, home, "virtual")
    daemon = run.daemon()
    run.load(front.port, scaled(5_000), 64, traceparent=20)
    return judge_chain(run, daemon, front, back, client_may_lack_parent=True)


def hand_over(run, mode, threads):
    front, back = java_chain(run, mode=mode, threads=threads)
    daemon = run.daemon()
    run.load(front.port, scaled(3_000), 32, traceparent=20)
    return judge_chain(run, daemon, front, back, client_may_lack_parent=True)


def case_java_handover(run):
    """Another thread of the same pool calls and answers, from the first request on: absent, never wrong."""
    return hand_over(run, "handover", 64)


def case_java_handover_2(run):
    """The same in a pool of two, where the receiver often answers by chance."""
    return hand_over(run, "handover", 2)


def case_java_handover_5(run):
    """The same in a pool of five."""
    return hand_over(run, "handover", 5)


def case_java_handover_late(run):
    """Its threads were seen to answer a hundred requests that they received; then they hand on what comes."""
    return hand_over(run, "late", 5)


def case_python_threaded(run):
    """A thread for each connection: the client's parent is its thread's request, always."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    front = run.app("front", apps.python("threaded.py", "{port}", "{log}", back.port))
    daemon = run.daemon()
    run.load(front.port, scaled(4_000), 16, traceparent=20)
    return judge_chain(run, daemon, front, back)


def case_python_asyncio(run):
    """One thread, 64 requests at once; a client's parent may be absent, never wrong."""
    back = run.app("back", apps.python("threaded.py", "{port}", "{log}"))
    front = run.app("front", apps.python("aio.py", "{port}", "{log}", back.port))
    daemon = run.daemon()
    run.load(front.port, scaled(4_000), 64, traceparent=20)
    return judge_chain(run, daemon, front, back, client_may_lack_parent=True)


def ktor_chain(run, client):
    need("java", "mvn")
    try:
        jar = apps.ktor()
    except apps.BuildFailed as error:
        raise Failure(f"Ktor service: {error}") from None
    back = run.app("back", apps.java("Back", "{port}", "{log}"))
    front = run.app("front", ["java", "-jar", jar, "{port}", back.port, "{log}", "netty-epoll", client])
    daemon = run.daemon()
    run.load(front.port, scaled(3_000), 64, traceparent=20)
    return judge_chain(run, daemon, front, back, client_may_lack_parent=True)


def case_ktor_netty_okhttp(run):
    """Ktor on Netty at 64 connections, calls by OkHttp."""
    return ktor_chain(run, "okhttp")


def case_ktor_netty_cio(run):
    """The same, calls by the CIO client."""
    return ktor_chain(run, "cio")
