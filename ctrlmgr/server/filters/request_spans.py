"""Begins and ends the span of a request, with the same name as in kube-apiserver.

Guarantees: a request continues the trace of its `traceparent` header only if its user is in the group system:masters or
system:monitoring. For all other users, the span starts a new trace and links to the trace of the header. Therefore a
client outside these groups cannot determine that its requests are sampled.

Source: apiserver `pkg/endpoints/filters/traces.go`.
"""

from __future__ import annotations

from typing import Final

from ctrlmgr.authentication.header_lines import by_name
from ctrlmgr.authentication.user import MASTERS, MONITORING
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.server.request import Request
from ctrlmgr.tracing.spans import ActiveSpan, begin
from ctrlmgr.tracing.trace_context import TRACEPARENT

_TRUSTED: Final = frozenset((MASTERS, MONITORING))
_SERVER_ERROR: Final = 500


def begin_request_span(request: Request, attributes: Attributes) -> ActiveSpan:
    """Start the span of an authenticated request, and make it the current span."""
    context = request.raw_headers.read(by_name).get(TRACEPARENT, b"").decode("latin-1")
    trusted = not _TRUSTED.isdisjoint(request.user.groups)
    return begin(
        _name(request, attributes),
        parent=context if trusted else "",
        links=() if trusted or not context else (context,),
        attributes={
            "http.method": request.method,
            "http.target": request.uri,
            "audit-id": request.id.decode("latin-1"),
            "user": request.user.name,
        },
    )


def end_request_span(request: Request) -> None:
    """End the span of a request with the status code of its response."""
    span, request.span = request.span, None
    if span is not None:
        span.add(**{"http.status_code": request.code})
        span.end(f"HTTP {request.code}" if request.code >= _SERVER_ERROR else "")


def _name(request: Request, attributes: Attributes) -> str:
    """Return a span's name, which contains the endpoint but no object's name (`getSpanNameFromRequestInfo`)."""
    if not attributes.resource:
        return request.method
    at = "/apis/" + attributes.group if attributes.group else "/api"
    namespace = "/namespaces/{:namespace}" if attributes.namespace else ""
    name = "/{:name}" if attributes.name else ""
    below = f"/{attributes.subresource}" if attributes.subresource else ""
    return f"{request.method} {at}/{attributes.version}{namespace}/{attributes.resource}{name}{below}"
