"""Go services: goroutines as units of work, and net/http's transport."""

import time
import urllib.error
import urllib.request

from cases_chains import chain_hops, go_chain, judge_chain, need
from harness import expect, expect_true, scaled
from judge import expand


def chain(run, mode=(), client_may_lack_parent=False, requests=5_000):
    need("go")
    front, back = go_chain(run, mode)
    daemon = run.daemon()
    run.load(front.port, scaled(requests), 64, traceparent=20)
    return judge_chain(run, daemon, front, back, client_may_lack_parent=client_may_lack_parent)


def case_go_chain(run):
    """The handler calls: every parent is right."""
    return chain(run, requests=10_000)


def case_go_few(run):
    """The Go chain for slow machines: 300 requests at 8 connections."""
    need("go")
    front, back = go_chain(run)
    daemon = run.daemon()
    run.load(front.port, 300, 8, traceparent=20)
    return judge_chain(run, daemon, front, back)


def case_go_chain_daemon_late(run):
    """The same with connections and goroutines that are older than the daemon."""
    need("go")
    front, back = go_chain(run)
    load = run.load_start(front.port, scaled(30_000), 64, traceparent=20, rate=3000)
    time.sleep(1.5)
    daemon = run.daemon()
    expect(load.running(), "the load was over before the daemon was ready")
    status = load.wait(120)
    expect(status == 0, f"load: {load.stdout}")
    return judge_chain(run, daemon, front, back, in_flight_before=daemon.ready_ns)


def case_go_proxy(run):
    """httputil.ReverseProxy: every parent is right."""
    return chain(run, ["proxy"])


def case_go_raw(run):
    """A connection that the handler writes to itself, without net/http: every parent is right."""
    return chain(run, ["raw"], requests=2_000)


def is_warming(span):
    return any("/warm-" in str(span["attributes"].get(name)) for name in ("url.path", "url.full"))


def warmed_chain(run, mode, **options):
    """Goroutines are followed only when one was seen to call; what came before is not judged."""
    need("go")
    front, back = go_chain(run, mode)
    daemon = run.daemon()
    for n in range(4):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{front.port}/x/warm-{n}", timeout=5).close()
        except urllib.error.HTTPError:
            pass  # the back end's statuses follow from the id
    time.sleep(0.5)
    run.load(front.port, scaled(5_000), 64, traceparent=20)
    time.sleep(1.5)
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids() and not is_warming(span)]
    return expect_true(spans, expand(chain_hops(front, back, **options), run.read_logs()))


def case_go_child(run):
    """A goroutine that the handler starts and waits for: every parent is right."""
    return warmed_chain(run, ["child"])


def case_go_grandchild(run):
    """A goroutine of a goroutine: every parent is right."""
    return warmed_chain(run, ["grandchild"])


def case_go_context(run):
    """A goroutine whose call carries the request's context, under others: every parent is right."""
    return warmed_chain(run, ["context"])


def case_go_pool_context(run):
    """Goroutines that one request started take the calls of all, with their contexts: every parent is right."""
    return warmed_chain(run, ["pool-context"])


def case_go_late(run):
    """Calls after the handler has returned, while the connection has its next request: never in that one's trace."""
    return warmed_chain(run, ["late"], client_may_lack_parent=True)


def case_go_pool(run):
    """Goroutines that one request started take the calls of all: absent, never wrong."""
    return warmed_chain(run, ["pool"], client_may_lack_parent=True)
