"""Decodes the request on stdin and compares it with what export_test_otlp put in; see otlp_decode.sh."""

import sys

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

EPOCH_NS = 1767614401234000000


def unknown_fields(message):
    """Field numbers that OpenTelemetry's definition does not have, at any depth."""
    try:
        from google.protobuf.unknown_fields import UnknownFieldSet

        found = [f.field_number for f in UnknownFieldSet(message)]
    except ImportError:
        found = [f.field_number for f in message.UnknownFields()]
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        repeated = not hasattr(value, "ListFields")
        for child in value if repeated else [value]:
            found += unknown_fields(child)
    return found


def value_of(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


def attributes_of(message):
    return [(a.key, value_of(a.value)) for a in message.attributes]


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got!r}, expected {wanted!r}")


def check_scope(resource_spans):
    expect("scopes", len(resource_spans.scope_spans), 1)
    scope = resource_spans.scope_spans[0].scope
    expect("scope name", scope.name, "tsunagi")
    if not scope.version:
        sys.exit("scope version is empty")


def check_server(resource_spans):
    expect(
        "resource",
        attributes_of(resource_spans.resource),
        [("service.name", "orders"), ("process.pid", 4711)],
    )
    (span,) = resource_spans.scope_spans[0].spans
    expect("trace id", span.trace_id.hex(), "4bf90000000000000000000001020304")
    expect("span id", span.span_id.hex(), "0000000005060708")
    expect("parent", span.parent_span_id.hex(), "00000000090a0b0c")
    expect("trace state", span.trace_state, "rojo=00f067aa0ba902b7")
    expect("name", span.name, "GET /café")
    expect("kind", span.kind, Span.SPAN_KIND_SERVER)
    expect("start", span.start_time_unix_nano, EPOCH_NS)
    expect("end", span.end_time_unix_nano, 2**64 - 1)
    expect("flags", span.flags, 0x303)
    expect("status", span.status.code, Status.STATUS_CODE_ERROR)
    expect(
        "attributes",
        attributes_of(span),
        [
            ("url.path", "/a\ufffd\0b"),
            ("url.query", ""),
            ("http.response.status_code", 503),
            ("thread.id", -(2**63)),
        ],
    )


def check_client(resource_spans):
    expect("resource", attributes_of(resource_spans.resource), [])
    (span,) = resource_spans.scope_spans[0].spans
    expect("parent", span.parent_span_id, b"")
    expect("kind", span.kind, Span.SPAN_KIND_CLIENT)
    expect("end", span.end_time_unix_nano, EPOCH_NS + 5000)
    expect("has a status", span.HasField("status"), False)
    expect("flags", span.flags, 0x103)


def main():
    request = ExportTraceServiceRequest.FromString(sys.stdin.buffer.read())
    expect("unknown fields", unknown_fields(request), [])
    expect("resources", len(request.resource_spans), 2)
    for resource_spans in request.resource_spans:
        check_scope(resource_spans)
    check_server(request.resource_spans[0])
    check_client(request.resource_spans[1])
    print("decoded as sent")


main()
