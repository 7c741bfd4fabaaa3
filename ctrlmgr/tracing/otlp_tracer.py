"""Exports spans to a trace collector with OpenTelemetry, over OTLP and gRPC as kube-apiserver does.

Guarantees: the tracer puts each ended span into a bounded queue, and a thread exports the queue in batches. A collector
that does not respond delays no other thread; the tracer drops spans that do not fit into the queue.

Source: component-base `tracing/utils.go` (`NewProvider`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, TraceIdRatioBased
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from ctrlmgr.tracing.spans import Attribute
from ctrlmgr.tracing.trace_context import TraceContext, parse_context
from ctrlmgr.tracing.tracing_configuration import DEFAULT_ENDPOINT, MILLION, TracingConfiguration

_SERVICE: Final = "ctrlmgr"
_TIMEOUT: Final = 5
"""The maximum number of seconds of one export, and of the last export when the process stops."""


class OtlpTracer:
    """A `Tracer` that exports spans."""

    def __init__(self, configuration: TracingConfiguration, instance: str) -> None:
        """Create a tracer; `instance` identifies this process in the exported resource."""
        logging.getLogger("opentelemetry").setLevel(logging.ERROR)  # a retried export is not worth a log line
        rate = configuration.sampling_rate_per_million or 0
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(rate / MILLION) if rate else ALWAYS_OFF),
            resource=Resource.create({"service.name": _SERVICE, "service.instance.id": instance}),
            shutdown_on_exit=False,
        )
        endpoint = configuration.endpoint or DEFAULT_ENDPOINT
        exporter = OTLPSpanExporter(endpoint=endpoint, insecure=True, timeout=_TIMEOUT)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(_SERVICE)

    def start(self, name: str, parent: str, links: Sequence[str], attributes: Mapping[str, Attribute]) -> _OtlpSpan:
        """Start a span at the current time."""
        above = _remote(parent)
        return _OtlpSpan(
            self._tracer.start_span(
                name,
                context=set_span_in_context(NonRecordingSpan(above), Context()) if above is not None else Context(),
                kind=SpanKind.INTERNAL,
                links=[Link(found) for each in links if (found := _remote(each)) is not None],
                attributes=attributes,
            )
        )

    def shut_down(self) -> None:
        """Export all ended spans, and stop the exporting thread."""
        self._provider.shutdown()


def _remote(context: str) -> SpanContext | None:
    found = parse_context(context)
    if found is None:
        return None
    flags = TraceFlags(TraceFlags.SAMPLED if found.is_sampled else TraceFlags.DEFAULT)
    return SpanContext(found.trace, found.span, is_remote=True, trace_flags=flags)


class _OtlpSpan:
    """A span that this tracer has started."""

    __slots__ = ("_span", "context")

    def __init__(self, span: Span) -> None:
        at = span.get_span_context()
        self._span = span
        self.context = str(TraceContext(at.trace_id, at.span_id, at.trace_flags.sampled))

    def add(self, attributes: Mapping[str, Attribute]) -> None:
        self._span.set_attributes(dict(attributes))

    def end(self, error: str = "") -> None:
        if error:
            self._span.set_status(Status(StatusCode.ERROR, error))
        self._span.end()
