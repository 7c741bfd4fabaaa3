"""A tracer that keeps its spans in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from ctrlmgr.tracing.spans import Attribute
from ctrlmgr.tracing.trace_context import TraceContext, parse_context


class MemorySpan:
    """A span in memory."""

    def __init__(
        self, name: str, above: TraceContext | None, at: TraceContext, links: Sequence[str], added: dict[str, Attribute]
    ) -> None:
        self.name = name
        self.above = above
        self.at = at
        self.links = tuple(links)
        self.attributes = added
        self.error: str | None = None
        """The error with which the span ended; None while the span has not ended."""

    @property
    def context(self) -> str:
        return str(self.at)

    def add(self, attributes: Mapping[str, Attribute]) -> None:
        self.attributes.update(attributes)

    def end(self, error: str = "") -> None:
        assert self.error is None, "a span ends once"
        self.error = error


class MemoryTracer:
    """A tracer in memory; it samples every trace that it starts."""

    def __init__(self) -> None:
        self.spans: list[MemorySpan] = []
        self.is_shut_down = False
        self._numbers = count(1)

    def start(self, name: str, parent: str, links: Sequence[str], attributes: Mapping[str, Attribute]) -> MemorySpan:
        above = parse_context(parent)
        number = next(self._numbers)
        at = TraceContext(number, number, True) if above is None else above._replace(span=number)
        span = MemorySpan(name, above, at, links, dict(attributes))
        self.spans.append(span)
        return span

    def shut_down(self) -> None:
        self.is_shut_down = True
