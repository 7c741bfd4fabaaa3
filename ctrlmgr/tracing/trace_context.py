"""Reads the W3C header `traceparent`, which names a trace, the parent span, and whether the trace is sampled.

Source: https://www.w3.org/TR/trace-context, section 3.2.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

TRACEPARENT: Final = b"traceparent"
"""The name of the HTTP header with the trace context."""

_FORM: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_SAMPLED: Final = 1


class TraceContext(NamedTuple):
    """The content of a `traceparent` header."""

    trace: int
    span: int
    is_sampled: bool

    def __str__(self) -> str:
        """Return the context as the value of a `traceparent` header."""
        return f"00-{self.trace:032x}-{self.span:016x}-{int(self.is_sampled):02x}"


def parse_context(header: str) -> TraceContext | None:
    """Return the content of a `traceparent` header; None if the header is missing or malformed."""
    found = _FORM.fullmatch(header)
    if found is None:
        return None
    version, trace, span, flags, rest = found.groups()
    context = TraceContext(int(trace, 16), int(span, 16), bool(int(flags, 16) & _SAMPLED))
    if version == "ff" or (version == "00" and rest) or not (context.trace and context.span):
        return None
    return context
