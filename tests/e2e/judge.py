"""The judge: compares the spans a daemon exported with what really happened.

What happened comes from the load generator's log and the services' own logs (JSON lines: id, role, path, status,
start, end), never from the daemon. Each request is expanded by the shape of the chain into the spans that must
exist; then every span must be one of them, exactly once, and say the truth: parent, trace, status, path, times.

    right    a span that says only the truth
    wrong    a span that says something false: a swapped parent, a neighbour's status, an impossible duration
    absent   a span without the parent it could have had (a failure unless the shape allows it)
    missing  an exchange without a span
    extra    a span without an exchange, or a second one for the same

Durations hold to 5 ms in both directions. No span is longer than its caller measured. And every span is as long as
the process that it belongs to measured itself, at the edge of its system calls (witness.py): a client span from before
the call that sent the first byte to after the one that read the last; a server span from having the request in hand to
having given away the response. From below, only what the measuring thread can prove it lost in those calls is taken
away. Where that is more than LOST_NS_MAX, or there is no such record, the span is "loose", not judged from below; a
run is red when more than LOOSE_MAX of its spans are, unless the case says that they have to be. However few there
are, one may have lost that much.

Used by the cases of this folder and, for a look by hand, as a program (see main).
"""

import argparse
import collections
import dataclasses
import json
import sys
import urllib.parse

import witness

DURATION_TOLERANCE_NS = 5_000_000
WALL_TOLERANCE_NS = 50_000_000
LOST_NS_MAX = 100_000_000
LOOSE_MAX = 0.01
PROBLEMS_MAX = 10


@dataclasses.dataclass
class Expected:
    """One exchange as one process saw it."""
    request: str                       # id of the request it belongs to; one trace each
    kind: str                          # server | client
    path: str
    status: int | None = 200           # None: the response was never seen whole, so no status may be claimed
    pid: int | None = None             # None: any
    method: str = "GET"
    parent: "Expected | None" = None
    traceparent: str = ""              # what the request carried; its span must continue that trace
    outer: tuple | None = None         # (start, end) the span must lie in: the caller's own measurement
    inner: tuple | None = None         # (start, end) that must lie in the span: the server's own measurement
    seen: list = dataclasses.field(default_factory=list)  # witness.Seen: what its own process measured; one must fit
    may_lack_parent: bool = False
    excused: bool = False              # was in flight when the daemon started: may be missing, never wrong
    error_types: tuple = ()            # with status None: what the span may say instead; empty: anything
    may_be_unseen: bool = False        # its response, or the end, may pass unseen: then it says "not_observed"
    attributes: dict = dataclasses.field(default_factory=dict)  # further attributes it must have

    def key(self):
        return self.kind, self.pid, self.path, self.method

    def __str__(self):
        return f"{self.kind} span of {self.method} {self.path}"


@dataclasses.dataclass
class Hop:
    """One kind of span in a chain: how to find the facts of a request in the logs. 'log' names hold (role, id)."""
    kind: str
    path: str                          # "{id}" is replaced
    outer: str                         # log whose client record measured the call
    inner: str | None = None           # log whose server record says what the server did
    pid: int | None = None
    may_lack_parent: bool = False
    follows: int | None = -1           # index of the parent's hop relative to this one; None: a root
    record: str = "{id}"               # the id that the logs have it under, but for the load generator's
    unanswered: bool = False           # the connection was closed instead
    method: str = "GET"                # where no log says it


@dataclasses.dataclass
class Verdict:
    right: int = 0
    wrong: int = 0
    absent: int = 0
    missing: int = 0
    extra: int = 0
    excused: int = 0
    absent_allowed: int = 0
    loose: int = 0
    unmeasured: int = 0                # of these, without any record
    may_be_loose: bool = False
    problems: list = dataclasses.field(default_factory=list)

    def fail(self, what, text):
        setattr(self, what, getattr(self, what) + 1)
        if getattr(self, what) <= PROBLEMS_MAX:  # of each kind
            self.problems.append(f"{what}: {text}")

    @property
    def ok(self):
        return not (self.wrong or self.absent or self.missing or self.extra or self.is_loose) and self.right > 0

    @property
    def is_loose(self):
        allowed = LOOSE_MAX * self.right
        return not self.may_be_loose and (self.unmeasured > allowed or self.loose > max(allowed, 1))

    def __str__(self):
        more = f", {self.absent_allowed} roots where a parent may be absent" if self.absent_allowed else ""
        more += f", {self.loose} durations not judged from below" if self.loose else ""
        more += f", {self.excused} in flight at the start" if self.excused else ""
        return (f"{self.right} right, {self.wrong} wrong, {self.absent} absent, {self.missing} missing, "
                f"{self.extra} extra{more}")


def read_log(path, prefix=""):
    """A log as {(role, id): record}, of paths that begin so. An id twice in one role is a fault of the test itself."""
    records = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if not record["path"].startswith(prefix):
                continue
            key = record["role"], record["id"]
            if key in records:
                raise ValueError(f"{path}: {key} twice")
            records[key] = record
    return records


def interval(record):
    return (record["start"], record["end"]) if record else None


def expand(hops, logs, load="load", in_flight_before=0):
    """The expected spans of every request in the load generator's log that got an answer."""
    expected = []
    for (role, request), asked in logs[load].items():
        if role != "client" or asked["status"] == 0:
            continue
        chain = []
        for index, hop in enumerate(hops):
            record = request if hop.outer == load else hop.record.format(id=request)
            outer = logs[hop.outer].get(("client", record))
            inner = logs[hop.inner].get(("server", record)) if hop.inner else None
            if outer is None and inner is None:
                raise ValueError(f"{request}: no record of {hop.path}")
            chain.append(Expected(
                request=request, kind=hop.kind, pid=hop.pid, path=hop.path.format(id=request),
                status=None if hop.unanswered else (outer or inner)["status"],
                method=(outer or inner).get("method", hop.method), outer=interval(outer), inner=interval(inner),
                parent=chain[index + hop.follows] if index and hop.follows is not None else None,
                traceparent=asked.get("traceparent", "") if index == 0 else "",
                may_lack_parent=hop.may_lack_parent, excused=asked["start"] < in_flight_before))
        expected += chain
    return expected


def span_path(span):
    attributes = span["attributes"]
    if "url.path" in attributes:
        return attributes["url.path"]
    return urllib.parse.urlsplit(attributes.get("url.full", "")).path


def read_spans(path):
    """Spans of --print=json. Anything on that stream that is not a span is a fault of the daemon."""
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def spans_from_jaeger(traces):
    """Spans as --print=json has them, from the "data" of Jaeger's /api/traces; times are whole microseconds."""
    spans = {}
    for trace in traces:
        for span in trace["spans"]:
            process = trace["processes"][span["processID"]]
            resource = {tag["key"]: tag["value"] for tag in process["tags"]}
            attributes = {tag["key"]: tag["value"] for tag in span["tags"]}
            parents = [r["spanID"] for r in span["references"] if r["refType"] == "CHILD_OF"]
            start = span["startTime"] * 1000
            spans[span["traceID"], span["spanID"]] = {
                "trace_id": span["traceID"].rjust(32, "0"), "span_id": span["spanID"].rjust(16, "0"),
                "parent_span_id": parents[0] if parents else "", "kind": attributes.get("span.kind", "internal"),
                "name": span["operationName"], "start_unix_nano": start,
                "end_unix_nano": start + span["duration"] * 1000,
                "status": attributes.get("otel.status_code", "unset").lower(),
                "service": process["serviceName"], "pid": int(resource.get("process.pid", 0)),
                "attributes": attributes, "links": []}
    return list(spans.values())


def is_id(text, length):
    return len(text) == length and all(c in "0123456789abcdef" for c in text) and text.strip("0") != ""


def given_trace(expected):
    """The trace id that the request came with; empty when it came with none."""
    while expected.parent:
        expected = expected.parent
    return expected.traceparent[3:35].lower()


def span_status(kind, status, error_type):
    """The status of a span with this status code and error.type: that an end was not seen is no error."""
    if status is not None and status >= (500 if kind == "server" else 400):
        return "error"
    return "unset" if error_type in (None, "not_observed") else "error"


def is_unseen(span, expected):
    """The span says that its response, or the end of it, was not seen, and it may say so."""
    attributes = span["attributes"]
    status = attributes.get("http.response.status_code")
    return (expected.may_be_unseen and attributes.get("error.type") == "not_observed"
            and span["status"] == span_status(expected.kind, status, "not_observed")
            and status in (None, expected.status))


def check_status(span, expected):
    """What is false about the span's outcome, as text; None when all is true."""
    attributes = span["attributes"]
    status, error_type = attributes.get("http.response.status_code"), attributes.get("error.type")
    if is_unseen(span, expected):
        return None
    if status != expected.status:
        return f"status code {status} ({error_type}), was {expected.status}"
    if expected.status is None:
        if (error_type in (expected.error_types or (error_type or "any",))
                and span["status"] == span_status(expected.kind, None, error_type)):
            return None
        return f"unfinished, but status '{span['status']}' and error.type {error_type}"
    error = expected.status >= (500 if expected.kind == "server" else 400)
    if (span["status"] == "error") != error:
        return f"span status '{span['status']}' with status code {status}"
    if error_type != (str(expected.status) if error else None):
        return f"error.type {error_type} with status code {status}"
    return None


def check_times(span, expected):
    start, end = span["start_unix_nano"], span["end_unix_nano"]
    if end < start:
        return "ends before it starts"
    if is_unseen(span, expected):
        return None  # nobody saw its end
    if expected.outer:
        first, last = expected.outer
        if end - start > last - first + DURATION_TOLERANCE_NS:
            return f"lasts {(end - start) / 1e6:.1f} ms, the caller measured {(last - first) / 1e6:.1f} ms"
        if start < first - WALL_TOLERANCE_NS or end > last + WALL_TOLERANCE_NS:
            return "lies outside the caller's own measurement"
    if expected.inner:
        first, last = expected.inner
        if end - start < last - first - DURATION_TOLERANCE_NS:
            return f"lasts {(end - start) / 1e6:.1f} ms, the server alone took {(last - first) / 1e6:.1f} ms"
        if start > first + WALL_TOLERANCE_NS or end < last - WALL_TOLERANCE_NS:
            return "does not cover what the server did"
    return check_seen(end - start, expected.seen)


def check_seen(duration, seen):
    """What is false about the duration by the process's own measurement; where there are several, one must fit."""
    problem = None
    for one in seen:
        bound = "at most" if duration > one.measured + one.late + DURATION_TOLERANCE_NS else "at least"
        if bound == "at least" and not is_short(duration, one):
            return None
        problem = (f"lasts {duration / 1e6:.1f} ms, {bound} {one.measured / 1e6:.1f} ms were measured at its system "
                   f"calls, where {one.lost / 1e6:.1f} ms were lost and {one.late / 1e6:.1f} ms late")
    return problem


def is_short(duration, seen):
    return seen.lost <= LOST_NS_MAX and duration < seen.measured - seen.lost - DURATION_TOLERANCE_NS


def is_loose(span, expected):
    """Its duration is not judged from below, and it has one."""
    if expected.status is None or is_unseen(span, expected):
        return False
    return all(one.lost > LOST_NS_MAX for one in expected.seen)


def check_facts(span, expected):
    attributes = span["attributes"]
    if not is_id(span["trace_id"], 32) or not is_id(span["span_id"], 16):
        return f"ids '{span['trace_id']}' '{span['span_id']}'"
    if not isinstance(span["start_unix_nano"], int) or not isinstance(span["end_unix_nano"], int):
        return "times are not integers"
    for key, value in expected.attributes.items():
        if attributes.get(key) != value:
            return f"{key} is {attributes.get(key)!r}, was {value!r}"
    return check_status(span, expected) or check_times(span, expected)


class Judge:
    def __init__(self, spans, expected, seen_by=None, may_be_loose=False):
        self.spans = spans
        self.expected = expected
        for one in expected if seen_by else []:
            if one.status is not None:  # what had no answer has nothing to be measured to
                one.seen = seen_by.find(one.kind, one.pid, one.path)
        self.verdict = Verdict(may_be_loose=may_be_loose)
        self.found = {}        # id(Expected) → span
        self.by_id = {}

    def judge(self):
        self.match()
        traces = {}
        for expected in self.expected:
            span = self.found.get(id(expected))
            if span:
                self.judge_span(span, expected, traces)
        return self.verdict

    def match(self):
        """Finds the one span of each exchange; counts the missing and the extra ones."""
        waiting = collections.defaultdict(list)
        for span in self.spans:
            if span["span_id"] in self.by_id:
                self.verdict.fail("extra", f"span id {span['span_id']} twice")
            self.by_id[span["span_id"]] = span
            method = span["attributes"].get("http.request.method")
            for pid in (span["pid"], None):
                waiting[span["kind"], pid, span_path(span), method].append(span)
        taken = set()
        for expected in self.expected:
            spans = [s for s in waiting.get(expected.key(), []) if id(s) not in taken]
            if spans:
                self.found[id(expected)] = spans[0]
                taken.add(id(spans[0]))
            elif expected.excused:
                self.verdict.excused += 1
            else:
                self.verdict.fail("missing", str(expected))
        for span in self.spans:
            if id(span) not in taken:
                self.verdict.fail("extra", f"{span['kind']} span '{span['name']}' of {span['service']} "
                                           f"(pid {span['pid']}) for {span_path(span)!r}")

    def judge_span(self, span, expected, traces):
        problem = check_facts(span, expected) or self.check_trace(span, expected, traces)
        if problem:
            self.verdict.fail("wrong", f"{expected}: {problem}")
            return
        if is_loose(span, expected):
            self.verdict.loose += 1
            self.verdict.unmeasured += not expected.seen
        outcome, problem = self.check_parent(span, expected)
        if outcome == "right":
            self.verdict.right += 1
        elif outcome == "absent" and (expected.may_lack_parent or expected.excused):
            self.verdict.right += 1
            self.verdict.absent_allowed += 1
        else:
            self.verdict.fail(outcome, f"{expected}: {problem}")

    def check_trace(self, span, expected, traces):
        """Two requests share a trace only where both were told to."""
        owner = traces.setdefault(span["trace_id"], expected)
        if owner.request == expected.request:
            return None
        given = given_trace(owner)
        if given and given == given_trace(expected):
            return None
        return f"in the trace of {owner.request}"

    def check_parent(self, span, expected):
        parent = span["parent_span_id"]
        if expected.traceparent:
            _, trace, remote, *_ = expected.traceparent.split("-")
            if (span["trace_id"], parent) == (trace, remote):
                return "right", None
            return "wrong", f"does not continue {expected.traceparent}: {span['trace_id']} {parent}"
        if not parent:
            return ("absent", "no parent") if expected.parent else ("right", None)
        true_parent = self.found.get(id(expected.parent)) if expected.parent else None
        if parent not in self.by_id:
            return "wrong", f"its parent {parent} was never exported"
        if not true_parent or parent != true_parent["span_id"]:
            other = self.by_id[parent]
            return "wrong", f"its parent is the {other['kind']} span of {span_path(other)}"
        if span["trace_id"] != true_parent["trace_id"]:
            return "wrong", "in another trace than its parent"
        return "right", None


def judge(spans, expected, seen_by=None, may_be_loose=False):
    """'seen_by': the witness.Witness of the services; without it only what has .seen is judged from below."""
    return Judge(spans, expected, seen_by, may_be_loose).judge()


def main():
    parser = argparse.ArgumentParser(description="Judge the spans of a run.")
    parser.add_argument("--spans", required=True, help="output of --print=json, or with --jaeger of /api/traces")
    parser.add_argument("--jaeger", action="store_true")
    parser.add_argument("--hops", required=True, help="JSON file: a list of objects with the fields of Hop")
    parser.add_argument("--witness", help="file of the services' own measurements; without it no duration is judged from below")
    parser.add_argument("--log", action="append", required=True, metavar="NAME=FILE", help="'load' must be among them")
    arguments = parser.parse_args()

    with open(arguments.hops, encoding="utf-8") as file:
        hops = [Hop(**hop) for hop in json.load(file)]
    if arguments.jaeger:
        with open(arguments.spans, encoding="utf-8") as file:
            spans = spans_from_jaeger(json.load(file)["data"])
    else:
        spans = read_spans(arguments.spans)
    logs = {name: read_log(file) for name, _, file in (log.partition("=") for log in arguments.log)}
    seen = witness.Witness(arguments.witness) if arguments.witness else None
    verdict = judge(spans, expand(hops, logs), seen, may_be_loose=not seen)
    print("\n".join(verdict.problems + [str(verdict)]))
    return 0 if verdict.ok else 1


if __name__ == "__main__":
    sys.exit(main())
