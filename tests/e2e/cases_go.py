"""Go services: goroutines as units of work, and net/http's transport."""

import time
import urllib.error
import urllib.request

import apps
from cases_chains import chain_hops, go_chain, judge_chain, need
from harness import expect, expect_true, scaled
from judge import Hop, expand, span_path


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
    return any("warm-" in str(span["attributes"].get(name)) for name in ("url.path", "url.full"))


def warm(port, prefix="/x/", name="warm"):
    """Goroutines are followed only when one was seen to call; what came before is not judged."""
    for n in range(4):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{prefix}{name}-{n}", timeout=10).close()
        except urllib.error.HTTPError:
            pass  # the back end's statuses follow from the id
    time.sleep(0.5)


def judge_warmed(run, daemon, hops):
    """Ends services and daemon, judges what the daemon printed after the warming. Attempts come in their order."""
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] in run.pids() and not is_warming(span)]
    spans.sort(key=lambda span: span["start_unix_nano"])
    return spans, expand(hops, run.read_logs())


def warmed_chain(run, mode, hops=None, requests=5_000, program=None, **options):
    need("go")
    front, back = go_chain(run, mode, program)
    daemon = run.daemon()
    warm(front.port)
    run.load(front.port, scaled(requests), 64, traceparent=20)
    return expect_true(*judge_warmed(run, daemon, (hops or chain_hops)(front, back, **options)))


def case_go_child(run):
    """A goroutine that the handler starts and waits for: every parent is right."""
    return warmed_chain(run, ["child"])


def case_go_grandchild(run):
    """A goroutine of a goroutine: every parent is right."""
    return warmed_chain(run, ["grandchild"])


def case_go_context(run):
    """A goroutine whose call carries the request's context, under others: every parent is right."""
    return warmed_chain(run, ["context"])


def case_go_pie(run):
    """Loaded wherever the kernel likes, goroutines that one request started take calls with contexts: every parent is right."""
    need("go")
    return warmed_chain(run, ["pool-context"], requests=2_000, program=apps.go_chain_pie())


def case_go_pool_context(run):
    """Goroutines that one request started take the calls of all, with their contexts: every parent is right."""
    return warmed_chain(run, ["pool-context"])


def case_go_drain(run):
    """A goroutine that one request started takes others' calls, with contexts of all kinds: every parent is right."""
    return ", ".join(f"{mode}: {warmed_chain(run, [mode], requests=2_000)}"
                     for mode in ("drain-embedded", "drain-boxed", "drain-detached"))


def case_go_drain_hidden(run):
    """The same with contexts that hide what they hang on: absent, never wrong."""
    return warmed_chain(run, ["drain-hidden"], requests=2_000, client_may_lack_parent=True)


def case_go_shared_connection(run):
    """One connection of the program's own takes the calls of all (net/http.ClientConn, Go 1.26): never another's parent."""
    return chain(run, ["shared"], client_may_lack_parent=True, requests=2_000)


def case_go_late(run):
    """Calls after the handler has returned, while the connection has its next request: never in that one's trace."""
    return warmed_chain(run, ["late"], client_may_lack_parent=True)


def case_go_pool(run):
    """Goroutines that one request started take the calls of all: absent, never wrong."""
    return warmed_chain(run, ["pool"], client_may_lack_parent=True)


def case_go_late_open(run):
    """Calls 100 ms after the handler has returned, while the next request of its goroutine is open: never that one's."""
    return warmed_chain(run, ["late-open"], requests=2_000, client_may_lack_parent=True)


def case_go_timer(run):
    """Calls by timers that the handler has set: never another request's."""
    return warmed_chain(run, ["timer"], client_may_lack_parent=True)


def case_go_reuse(run):
    """Goroutines that outlive the request that started them, and then work for others: absent, never wrong."""
    return warmed_chain(run, ["reuse"], client_may_lack_parent=True)


def parallel_hops(front, back, n):
    """A front that calls n times at once."""
    hops = [Hop("server", "/x/{id}", outer="load", inner="front", pid=front.pid)]
    for letter in "abc"[:n]:
        one = {"path": f"/back/{letter}-{{id}}", "record": f"{letter}-{{id}}", "outer": "front", "inner": "back"}
        hops += [Hop("client", pid=front.pid, follows=-len(hops), **one), Hop("server", pid=back.pid, **one)]
    return hops


def case_go_twice(run):
    """Two goroutines that call at the same time: every parent is right."""
    return warmed_chain(run, ["twice"], hops=lambda front, back: parallel_hops(front, back, 2))


def case_go_group(run):
    """Three goroutines with a context derived from the request's: every parent is right."""
    return warmed_chain(run, ["group"], hops=lambda front, back: parallel_hops(front, back, 3))


def case_go_wrapped(run):
    """Connections wrapped in a type of the program: every parent is right."""
    return chain(run, ["wrapped"])


def case_go_race(run):
    """Calls that get connections which were dialed for others: every parent is right."""
    return chain(run, ["race"], requests=3_000)


def case_go_via_proxy(run):
    """Calls through an HTTP proxy: every parent is right."""
    return chain(run, ["via-proxy"], requests=2_000)


def case_go_redirect(run):
    """Each request of a redirection is a span of its own, with the right parent."""
    def hops(front, back):
        first = {"path": "/back/hop-{id}", "record": "hop-{id}"}
        return [Hop("server", "/x/{id}", outer="load", inner="front", pid=front.pid),
                Hop("client", outer="front", inner="back", pid=front.pid, **first),
                Hop("server", outer="front", inner="back", pid=back.pid, **first),
                Hop("client", "/back/{id}", outer="front", inner="back", pid=front.pid, follows=-3),
                Hop("server", "/back/{id}", outer="front", inner="back", pid=back.pid)]
    return warmed_chain(run, ["redirect"], hops=hops, requests=2_000)


def case_go_retry(run):
    """A call that the transport makes again, as the connection was closed: a span for each attempt, the right parent."""
    def hops(front, back):
        first = {"path": "/back/a-{id}", "record": "a-{id}", "outer": "front", "inner": "back"}
        again = {"path": "/back/drop-{id}", "record": "drop-{id}", "outer": "front"}
        return [Hop("server", "/x/{id}", outer="load", inner="front", pid=front.pid),
                Hop("client", pid=front.pid, **first), Hop("server", pid=back.pid, **first),
                Hop("client", pid=front.pid, follows=-3, unanswered=True, **again),
                Hop("server", pid=back.pid, unanswered=True, **again),
                Hop("client", pid=front.pid, follows=-5, inner="back", **again),
                Hop("server", pid=back.pid, inner="back", **again)]
    return warmed_chain(run, ["retry"], hops=hops, requests=1_000)


def case_go_pulled(run):
    """Iterators whose values are pulled call (iter.Pull): absent, never wrong; with the request's context right."""
    return ", ".join(f"{mode}: {warmed_chain(run, [mode], requests=2_000, client_may_lack_parent=mode == 'pulled')}"
                     for mode in ("pulled", "pulled-context"))


def case_go_copied(run):
    """Connections that copy what they send, from which nothing leads to the caller, and that others dialed: absent, never
    wrong."""
    need("go")
    front, back = go_chain(run, ["child,copied"])
    daemon = run.daemon()
    warm(front.port, "/child/")
    run.load(front.port, scaled(2_000), 16, prefix="/copied/", traceparent=20)
    hops = chain_hops(front, back, client_may_lack_parent=True)
    hops[0].path = "/copied/{id}"
    return expect_true(*judge_warmed(run, daemon, hops))


def case_go_two_runtimes(run):
    """A library with a Go runtime of its own calls in a Go server, by goroutines of the same numbers: its calls are roots."""
    need("go", "cc")
    program, library = apps.go_two()
    back = run.app("back", [apps.go_chain(), "back", "{port}", "{log}"])
    front = run.app("front", [program, "{port}", library, back.port, "{log}"], log=False)
    daemon = run.daemon()
    run.load(front.port, scaled(2_000), 64)
    run.stop_apps()
    spans = [span for span in daemon.finish() if span["pid"] == front.pid]
    polls = [span for span in spans if span["kind"] == "client" and "/poll-" in span_path(span)]
    wrong = [span for span in polls if span["parent_span_id"]]
    expect(len(polls) > 50 and len(spans) - len(polls) == scaled(2_000), f"{len(polls)} of {len(spans)} spans are of polls")
    expect(not wrong, f"{len(wrong)} of {len(polls)} calls have a parent, which is none of theirs: {wrong[:2]}")
    return f"{len(polls)} calls of the library are roots"


def case_go_poller(run):
    """A goroutine that calls all the time while requests do: its calls are roots."""
    need("go")
    front, back = go_chain(run, ["poller"])
    daemon = run.daemon()
    warm(front.port)
    run.load(front.port, scaled(5_000), 64, traceparent=20)
    spans, expected = judge_warmed(run, daemon, chain_hops(front, back))
    polls = [Hop("client", "/back/{id}", outer="polls", inner="back", pid=front.pid),
             Hop("server", "/back/{id}", outer="polls", inner="back", pid=back.pid)]
    logs = run.read_logs()
    logs["polls"] = {key: record for key, record in logs["front"].items() if key[1].startswith("poll-")}
    # the last one was under way when the front was ended
    spans = [s for s in spans if "/poll-" not in span_path(s) or ("client", span_path(s)[6:]) in logs["polls"]]
    expect(len(logs["polls"]) > 100, f"only {len(logs['polls'])} polls")
    expected += expand(polls, logs, load="polls", in_flight_before=daemon.ready_ns)
    return expect_true(spans, expected)


def case_go_pool_open(run):
    """The request that started the goroutines is open for 5 s while they take the calls of others: absent, never its own."""
    need("go")
    front, back = go_chain(run, ["child,pool-open"])
    daemon = run.daemon()
    warm(front.port, "/child/")
    opening = run.load_start(front.port, 1, 1, name="opening", prefix="/pool-open/", id="opening")
    time.sleep(0.3)
    run.load(front.port, 50, 50, prefix="/pool-open/", rate=25)
    expect(opening.running(), "the request that started the goroutines was over too soon")
    opening.wait(10)
    hops = chain_hops(front, back, client_may_lack_parent=True)
    hops[0].path = "/pool-open/{id}"
    spans, expected = judge_warmed(run, daemon, hops)
    expected += expand([Hop("server", "/pool-open/{id}", outer="opening", inner="front", pid=front.pid)], run.read_logs(),
                       load="opening")
    return expect_true(spans, expected)
