"""Starts and ends spans, and keeps the current span of each thread and task.

Guarantees:
- If no tracer is installed, `span` returns a shared context manager that does nothing, and `current` returns "".
- The current span is a context variable. `call_soon_threadsafe` and new tasks copy context variables, so a write that a
  controller makes on the event loop is a child of the reconcile's span.
- A trace context is a string in the form of the header `traceparent`, because the event log and HTTP headers contain
  trace contexts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeAlias

Attribute: TypeAlias = str | int | bool


class Span(Protocol):
    """A span that a tracer has started."""

    @property
    def context(self) -> str:
        """The trace context of the span, as the value of a `traceparent` header."""

    def add(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes to the span."""

    def end(self, error: str = "") -> None:
        """End the span; `error` describes the failure of the operation, if it has failed."""


class Tracer(Protocol):
    """Starts spans, and exports them when they have ended. Any thread may use a tracer."""

    def start(self, name: str, parent: str, links: Sequence[str], attributes: Mapping[str, Attribute]) -> Span:
        """Start a span at the current time.

        `parent` and `links` are trace contexts. If `parent` is empty or malformed, the span starts a new trace.
        The tracer ignores malformed links.
        """

    def shut_down(self) -> None:
        """Export all ended spans, and stop the tracer."""


_OFF: Final[AbstractContextManager[None]] = nullcontext()
_NOT_SAMPLED: Final = "-00"
_current: ContextVar[str] = ContextVar("trace context", default="")
tracer: Tracer | None = None
"""The tracer of this process. Code that runs for every request compares the tracer with None, because a comparison is
cheaper than a call.
"""


@contextmanager
def installed(used: Tracer | None) -> Iterator[None]:
    """Use the tracer `used` for all spans of this process while the context is open; None means no tracer."""
    global tracer  # like the registry of metrics, the tracer belongs to the process
    earlier, tracer = tracer, used
    try:
        yield
    finally:
        tracer = earlier
        if used is not None:
            used.shut_down()


def is_on() -> bool:
    """Return whether a tracer is installed."""
    return tracer is not None


def current() -> str:
    """Return the trace context of the current span; "" if there is no tracer or no current span."""
    return _current.get() if tracer is not None else ""


def sampled() -> str:
    """Return the trace context of the current span if its trace is sampled, otherwise ""."""
    context = current()
    return "" if context.endswith(_NOT_SAMPLED) else context


def span(
    name: str, *, parent: str | None = None, links: Sequence[str] = (), **attributes: Attribute
) -> AbstractContextManager[ActiveSpan | None]:
    """Return a context manager that starts a span; the span is the current span while the context is open.

    The span's parent is the current span, or the trace context `parent` if the caller gives one. An error that leaves
    the context marks the span as failed. If no tracer is installed, the context manager returns None and does nothing.
    """
    if tracer is None:
        return _OFF
    return begin(name, parent=parent, links=links, attributes=attributes)


def within(context: str) -> AbstractContextManager[None]:
    """Return a context manager within which the span with the given trace context is the current span."""
    return _OFF if tracer is None else _within(context)


@contextmanager
def _within(context: str) -> Iterator[None]:
    outer = _current.get()
    _current.set(context)
    try:
        yield
    finally:
        _current.set(outer)


def begin(
    name: str, *, parent: str | None = None, links: Sequence[str] = (), attributes: Mapping[str, Attribute]
) -> ActiveSpan:
    """Start a span, and make it the current span until its `end`; the caller must check that a tracer is installed."""
    assert tracer is not None, "the caller has checked that there is a tracer"
    outer = _current.get()
    started = tracer.start(name, outer if parent is None else parent, links, attributes)
    _current.set(started.context)
    return ActiveSpan(started, outer)


class ActiveSpan:
    """The current span of a thread or task."""

    __slots__ = ("_outer", "_span")

    def __init__(self, span: Span, outer: str) -> None:
        """Store the span, and the trace context `outer` that becomes current again when the span ends."""
        self._span = span
        self._outer = outer

    @property
    def context(self) -> str:
        """The trace context of the span."""
        return self._span.context

    def add(self, **attributes: Attribute) -> None:
        """Add attributes to the span."""
        self._span.add(attributes)

    def end(self, error: str = "") -> None:
        """End the span; the enclosing span becomes the current span again."""
        # no token is reset, because a generator that the garbage collector closes has another context
        _current.set(self._outer)
        self._span.end(error)

    def __enter__(self) -> ActiveSpan:
        """Return the span itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        """End the span when the context ends."""
        self.end("" if error is None else f"{type(error).__name__}: {error}")
