"""A collector of spans: an OTLP receiver over gRPC in the process of the test."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Self

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)


class CollectedSpan(NamedTuple):
    """A span that was exported."""

    trace: str
    id: str
    parent: str
    name: str
    attributes: dict[str, Any]
    links: list[str]
    """The trace contexts of the linked spans, as trace and span."""


class Collector(TraceServiceServicer):
    """A context manager; collects spans while it is open."""

    def __init__(self) -> None:
        self.spans: dict[str, CollectedSpan] = {}
        """The spans by their id."""
        self._grown = threading.Condition()
        self._server = grpc.server(ThreadPoolExecutor(1))
        add_TraceServiceServicer_to_server(self, self._server)  # type: ignore[no-untyped-call]  # generated code
        self.endpoint = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None).wait()

    def Export(self, request: ExportTraceServiceRequest, context: Any) -> ExportTraceServiceResponse:  # noqa: N802  # the name is that of the gRPC service
        with self._grown:
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        collected = _collected(span)
                        self.spans[collected.id] = collected
            self._grown.notify_all()
        return ExportTraceServiceResponse()

    def wait_for(self, condition: Callable[[list[CollectedSpan]], bool], timeout: float = 30.0) -> list[CollectedSpan]:
        """Return the spans as soon as they fulfil a condition; the timeout is in seconds."""
        with self._grown:
            fulfilled = self._grown.wait_for(lambda: condition([*self.spans.values()]), timeout)
            assert fulfilled, sorted({each.name for each in self.spans.values()})
            return [*self.spans.values()]

    def path(self, span: CollectedSpan) -> list[str]:
        """Return the names of a span and of the spans above it, up to the first span whose parent was not exported."""
        names = []
        found: CollectedSpan | None = span
        while found is not None:
            names.append(found.name)
            found = self.spans.get(found.parent)
        return names


def _collected(span: Any) -> CollectedSpan:
    attributes = {}
    for each in span.attributes:
        attributes[each.key] = getattr(each.value, each.value.WhichOneof("value"))
    links = [f"{each.trace_id.hex()}-{each.span_id.hex()}" for each in span.links]
    return CollectedSpan(
        span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(), span.name, attributes, links
    )
