"""The judge's own tests: a true run passes, and every kind of falsehood turns it red under the right name."""

import copy
import tempfile
import unittest

import judge
import witness

MS = 1_000_000
T0 = 1_700_000_000_000_000_000


def record(role, request, path, status, start_ms, end_ms, **more):
    return {"id": request, "role": role, "path": path, "status": status,
            "start": T0 + start_ms * MS, "end": T0 + end_ms * MS, **more}


def logs(n, traceparent=""):
    load, front, back = {}, {}, {}
    for i in range(n):
        request, at = f"r-{i}", i * 10
        status = 404 if i % 2 else 200
        load["client", request] = record("client", request, f"/x/{request}", 200, at, at + 90,
                                         traceparent=traceparent)
        front["server", request] = record("server", request, f"/x/{request}", 200, at + 10, at + 80)
        front["client", request] = record("client", request, f"/back/{request}", status, at + 20, at + 70)
        back["server", request] = record("server", request, f"/back/{request}", status, at + 30, at + 60)
    return {"load": load, "front": front, "back": back}


HOPS = [judge.Hop("server", "/x/{id}", outer="load", inner="front", pid=1),
        judge.Hop("client", "/back/{id}", outer="front", inner="back", pid=1),
        judge.Hop("server", "/back/{id}", outer="front", inner="back", pid=2)]


def span(i, kind, pid, path, status, start_ms, end_ms, parent):
    error = status >= (400 if kind == "client" else 500)
    attributes = {"http.request.method": "GET", "http.response.status_code": status}
    attributes.update({"url.path": path} if kind == "server" else {"url.full": f"http://127.0.0.1:80{path}"})
    if error:
        attributes["error.type"] = str(status)
    return {"trace_id": f"{i + 1:032x}", "span_id": f"{(i + 1) * 16 + pid * 2 + (kind == 'client'):016x}",
            "parent_span_id": parent, "kind": kind, "name": "GET", "service": "s", "pid": pid,
            "start_unix_nano": T0 + start_ms * MS, "end_unix_nano": T0 + end_ms * MS,
            "status": "error" if error else "unset", "attributes": attributes, "links": []}


def true_spans(n):
    spans = []
    for i in range(n):
        at, status = i * 10, 404 if i % 2 else 200
        a = span(i, "server", 1, f"/x/r-{i}", 200, at + 5, at + 85, "")
        b = span(i, "client", 1, f"/back/r-{i}", status, at + 21, at + 69, a["span_id"])
        c = span(i, "server", 2, f"/back/r-{i}", status, at + 25, at + 65, b["span_id"])
        spans += [a, b, c]
    return spans


def span_ns(one):
    return one["end_unix_nano"] - one["start_unix_nano"]


class JudgeTest(unittest.TestCase):
    def setUp(self):
        self.logs = logs(4)
        self.spans = true_spans(4)

    def verdict(self, hops=HOPS, **more):
        return judge.judge(self.spans, judge.expand(hops, self.logs, **more), may_be_loose=True)

    def assert_red(self, kind, count=1):
        verdict = self.verdict()
        self.assertFalse(verdict.ok)
        self.assertEqual(getattr(verdict, kind), count, verdict.problems)

    def test_truth_passes(self):
        verdict = self.verdict()
        self.assertTrue(verdict.ok, verdict.problems)
        self.assertEqual(verdict.right, 12)

    def test_nothing_at_all_is_red(self):
        self.assertFalse(judge.judge([], []).ok)
        self.spans = []
        self.assert_red("missing", 12)

    def test_parents_swapped(self):
        a, b = self.spans[1], self.spans[4]
        a["parent_span_id"], b["parent_span_id"] = b["parent_span_id"], a["parent_span_id"]
        self.assert_red("wrong", 2)

    def test_whole_subtrees_swapped(self):
        a, b = self.spans[1], self.spans[4]
        for key in ("parent_span_id", "trace_id"):
            a[key], b[key] = b[key], a[key]
        self.assertGreaterEqual(self.verdict().wrong, 4)  # both client spans and the server spans below them

    def test_span_gone(self):
        del self.spans[5]
        self.assert_red("missing")

    def test_parent_not_exported(self):
        del self.spans[1]
        self.assert_red("missing")
        self.assert_red("wrong")

    def test_span_doubled(self):
        again = copy.deepcopy(self.spans[3])
        again["span_id"] = "00000000000000ff"
        self.spans.append(again)
        self.assert_red("extra")

    def test_span_sent_twice(self):
        self.spans.append(copy.deepcopy(self.spans[3]))
        self.assertGreaterEqual(self.verdict().extra, 1)

    def test_span_of_nothing(self):
        self.spans.append(span(77, "server", 3, "/healthz", 200, 1, 2, ""))
        self.assert_red("extra")

    def test_wrong_status(self):
        self.spans[0]["attributes"]["http.response.status_code"] = 404
        self.assert_red("wrong")

    def test_invented_status(self):
        expected = judge.expand(HOPS, self.logs)
        expected[0].status = None
        verdict = judge.judge(self.spans, expected, may_be_loose=True)
        self.assertEqual(verdict.wrong, 1)

    def test_unseen_response(self):
        expected = judge.expand(HOPS[:1], {**self.logs, "load": {k: v for k, v in self.logs["load"].items()
                                                                 if k[1] == "r-0"}})
        self.spans = self.spans[:1]
        expected[0].may_be_unseen = True
        self.assertTrue(judge.judge(self.spans, expected, may_be_loose=True).ok)
        del self.spans[0]["attributes"]["http.response.status_code"]
        self.assertEqual(judge.judge(self.spans, expected, may_be_loose=True).wrong, 1)
        self.spans[0]["attributes"]["error.type"] = "not_observed"
        self.spans[0]["status"] = "error"
        self.assertEqual(judge.judge(self.spans, expected, may_be_loose=True).wrong, 1)
        self.spans[0]["status"] = "unset"
        self.assertTrue(judge.judge(self.spans, expected, may_be_loose=True).ok)
        self.spans[0]["attributes"]["http.response.status_code"] = 200  # seen, but not the end
        self.assertTrue(judge.judge(self.spans, expected, may_be_loose=True).ok)
        self.spans[0]["attributes"]["http.response.status_code"] = 404
        self.assertEqual(judge.judge(self.spans, expected, may_be_loose=True).wrong, 1)
        del self.spans[0]["attributes"]["http.response.status_code"]
        expected[0].may_be_unseen = False
        self.assertEqual(judge.judge(self.spans, expected, may_be_loose=True).wrong, 1)

    def test_reset(self):
        expected = judge.expand(HOPS[:1], logs(1))
        expected[0].status, expected[0].error_types = None, ("connection_reset",)
        self.spans = self.spans[:1]
        self.assertEqual(judge.judge(self.spans, expected, may_be_loose=True).wrong, 1)
        del self.spans[0]["attributes"]["http.response.status_code"]
        self.spans[0]["status"] = "error"
        self.spans[0]["attributes"]["error.type"] = "connection_reset"
        self.assertTrue(judge.judge(self.spans, expected, may_be_loose=True).ok)

    def test_error_without_reason(self):
        del self.spans[4]["attributes"]["error.type"]
        self.assert_red("wrong")

    def test_wrong_path(self):
        self.spans[0]["attributes"]["url.path"] = "/x/r-9"
        self.assert_red("missing")
        self.assert_red("extra")

    def test_wrong_process(self):
        self.spans[2]["pid"] = 1
        self.assert_red("missing")

    def test_too_long(self):
        self.spans[0]["end_unix_nano"] += 16 * MS
        self.assert_red("wrong")

    def test_too_short(self):
        self.spans[0]["end_unix_nano"] -= 20 * MS
        self.assert_red("wrong")

    def measured(self, one, measured_ms, **more):
        """One request whose span 'one' was measured at the edge of its calls, and the verdict on it."""
        expected = judge.expand(HOPS, logs(1))
        for at, other in enumerate(expected):
            other.seen = [witness.Seen(measured_ms[at] * MS, *(more.get(k, 0) * MS for k in ("lost", "late")))
                          if at == one else witness.Seen(span_ns(self.spans[at]))]
        return judge.judge(self.spans, expected)

    def test_against_its_own_measurement(self):
        """A span of each kind, lengthened and shortened around what its process measured at its system calls."""
        self.spans = true_spans(1)
        lasts = [span_ns(one) // MS for one in self.spans]
        for one in range(3):
            for off, more, is_right in (
                    (0, {}, True), (4, {}, True), (6, {}, False), (-4, {}, True), (-6, {}, False),
                    (6, {"lost": 3}, False), (-6, {"lost": 3}, True), (-9, {"lost": 3}, False),
                    (6, {"late": 3}, True), (9, {"late": 3}, False), (-6, {"late": 3}, False),
                    (-104, {"lost": 100}, True), (-106, {"lost": 100}, False)):
                with self.subTest(one=one, off=off, **more):
                    verdict = self.measured(one, [last - off for last in lasts], **more)
                    self.assertEqual(verdict.wrong, 0 if is_right else 1, verdict.problems)
                    self.assertEqual(verdict.ok, is_right)

    def test_lost_more_than_can_be_judged(self):
        """Never longer all the same, and it is counted."""
        self.spans = true_spans(1)
        lasts = [span_ns(one) // MS for one in self.spans]
        verdict = self.measured(1, [last + 110 for last in lasts], lost=101)
        self.assertEqual((verdict.wrong, verdict.loose, verdict.ok), (0, 1, True))
        verdict = self.measured(1, [last - 6 for last in lasts], lost=101)
        self.assertEqual(verdict.wrong, 1)

    def test_few_may_be_loose(self):
        self.logs, self.spans = logs(100), true_spans(100)
        expected = judge.expand(HOPS, self.logs)
        for other, one in zip(expected, self.spans):
            other.seen = [witness.Seen(span_ns(one))]
        for i in range(3):
            expected[i].seen = []
        verdict = judge.judge(self.spans, expected)
        self.assertTrue(verdict.ok, verdict.problems)
        self.assertEqual((verdict.right, verdict.loose), (300, 3))
        expected[3].seen = [witness.Seen(span_ns(self.spans[3]), lost=101 * MS)]
        verdict = judge.judge(self.spans, expected)
        self.assertEqual((verdict.wrong, verdict.loose, verdict.ok), (0, 4, False))
        self.assertTrue(judge.judge(self.spans, expected, may_be_loose=True).ok)

    def test_one_may_have_lost_much(self):
        """However few there are; but none may be without a measurement."""
        self.spans = true_spans(2)
        expected = judge.expand(HOPS, logs(2))
        for other, one in zip(expected, self.spans):
            other.seen = [witness.Seen(span_ns(one))]
        expected[1].seen[0].lost = 101 * MS
        verdict = judge.judge(self.spans, expected)
        self.assertEqual((verdict.right, verdict.loose, verdict.ok), (6, 1, True))
        expected[2].seen[0].lost = 101 * MS
        self.assertFalse(judge.judge(self.spans, expected).ok)
        expected[2].seen[0].lost, expected[1].seen = 0, []
        self.assertFalse(judge.judge(self.spans, expected).ok)

    def test_several_measured(self):
        """A path that was asked for twice: one of the measurements must fit."""
        self.spans = true_spans(1)
        expected = judge.expand(HOPS, logs(1))
        for other, one in zip(expected, self.spans):
            other.seen = [witness.Seen(span_ns(one) - 30 * MS), witness.Seen(span_ns(one))]
        self.assertTrue(judge.judge(self.spans, expected).ok)
        expected[1].seen[1].measured += 6 * MS
        self.assertEqual(judge.judge(self.spans, expected).wrong, 1)

    def test_from_the_witness(self):
        """Its file as the services write it."""
        first, last = (T0, T0 + 2 * MS, 1 * MS), (T0 + 60 * MS, T0 + 70 * MS, 3 * MS)
        file = witness.HEADER_BYTES * b"\0"
        for role, head in ((1, b"GET /x/r-0?q=1 HTTP/1.1\r\nA: b"), (2, b"GET /back/r-0 HTTP/1.1"), (2, b"\x16\3\1 b")):
            file += witness.RECORD.pack(*first, *last, 0, role, 7, head)
        file += witness.RECORD.pack(*first, 0, 0, 0, 0, 2, 7, b"GET /open HTTP/1.1")
        with tempfile.NamedTemporaryFile() as out:
            out.write((4).to_bytes(8, "little") + file[8:])
            out.flush()
            seen = witness.Witness(out.name)
        self.assertEqual(seen.find("server", 7, "/x/r-0"), [witness.Seen(68 * MS, 3 * MS, 1 * MS, 7)])
        self.assertEqual(seen.find("client", 8, "/back/r-0"), [witness.Seen(70 * MS, 4 * MS, 0, 7)])
        self.assertEqual(seen.find("client", 7, "/open"), [])
        self.assertEqual(seen.find("server", 7, "/x/r-0q=1"), seen.find("server", 7, "/x/r-0"))
        self.assertEqual(len(seen.exchanges), 3)
        self.spans = true_spans(1)
        self.spans[0]["pid"] = self.spans[1]["pid"] = 7
        expected = judge.expand(HOPS, logs(1))[:2]
        for one in expected:
            one.pid = 7
        self.assertEqual(judge.judge(self.spans[:2], expected, seen).wrong, 2)  # 80 and 48 ms

    def test_elsewhere_in_time(self):
        self.spans[0]["start_unix_nano"] += 70 * MS
        self.spans[0]["end_unix_nano"] += 70 * MS
        self.assert_red("wrong")

    def test_zero_ids(self):
        self.spans[0]["trace_id"] = "0" * 32
        self.assertGreaterEqual(self.verdict().wrong, 1)

    def test_two_requests_in_one_trace(self):
        for one in self.spans[3:6]:
            one["trace_id"] = self.spans[0]["trace_id"]
        self.assert_red("wrong", 3)

    def test_absent_parent(self):
        self.spans[1]["parent_span_id"] = ""
        self.assert_red("absent")

    def test_absent_parent_allowed(self):
        lenient = copy.deepcopy(HOPS)
        lenient[1].may_lack_parent = True
        for one in self.spans[1:3]:
            one["trace_id"] = "f" * 32
        self.spans[1]["parent_span_id"] = ""
        verdict = self.verdict(lenient)
        self.assertTrue(verdict.ok, verdict.problems)
        self.assertEqual(verdict.absent_allowed, 1)
        self.spans[1]["parent_span_id"] = self.spans[3]["span_id"]
        self.assertEqual(self.verdict(lenient).wrong, 1)

    def test_root_with_a_parent(self):
        self.spans[0]["parent_span_id"] = self.spans[3]["span_id"]
        self.assert_red("wrong")

    def test_remote_parent(self):
        self.logs = logs(1, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        self.spans = true_spans(1)
        self.assert_red("wrong")
        for one in self.spans:
            one["trace_id"] = "0af7651916cd43dd8448eb211c80319c"
        self.spans[0]["parent_span_id"] = "b7ad6b7169203331"
        self.assertTrue(self.verdict().ok)

    def test_in_flight_at_the_start(self):
        del self.spans[0:3]
        self.assertTrue(self.verdict(in_flight_before=T0 + 5 * MS).ok)
        self.spans[0]["attributes"]["http.response.status_code"] = 503
        self.assertFalse(self.verdict(in_flight_before=T0 + 50 * MS).ok)

    def test_closed_in_place_of_an_answer(self):
        hops = [*HOPS[:2], judge.Hop("server", "/back/{id}", outer="front", pid=2, unanswered=True)]
        self.assertEqual(self.verdict(hops).wrong, 4)  # they say a status
        for one in self.spans[2::3]:
            del one["attributes"]["http.response.status_code"]
            one["attributes"]["error.type"], one["status"] = "closed", "error"
        self.assertTrue(self.verdict(hops).ok)

    def test_another_id_in_the_logs(self):
        for name in ("front", "back"):
            for role, request in [key for key in self.logs[name] if name == "back" or key[0] == "client"]:
                self.logs[name][role, f"a-{request}"] = self.logs[name].pop((role, request))
        hops = HOPS[:1] + [judge.Hop(h.kind, h.path, h.outer, h.inner, h.pid, record="a-{id}") for h in HOPS[1:]]
        self.assertTrue(self.verdict(hops).ok)
        with self.assertRaises(ValueError):
            self.verdict()

    def test_from_jaeger(self):
        tags = [{"key": "span.kind", "value": "server"}, {"key": "http.response.status_code", "value": 200},
                {"key": "http.request.method", "value": "GET"}, {"key": "url.path", "value": "/x/r-0"}]
        trace = {"processes": {"p1": {"serviceName": "s", "tags": [{"key": "process.pid", "value": 1}]}},
                 "spans": [{"traceID": "1" * 32, "spanID": "2" * 16, "processID": "p1", "operationName": "GET",
                            "references": [], "startTime": T0 // 1000 + 5000, "duration": 80000, "tags": tags}]}
        spans = judge.spans_from_jaeger([trace])
        verdict = judge.judge(spans, judge.expand(HOPS[:1], logs(1)), may_be_loose=True)
        self.assertTrue(verdict.ok, verdict.problems)


if __name__ == "__main__":
    unittest.main()
