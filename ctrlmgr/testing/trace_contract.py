"""Defines, as tests, the contract of an event log about trace contexts: an append keeps its trace context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctrlmgr.eventlog.verification import verify
from ctrlmgr.testing.eventlog_contract import AUTHOR, VerifiableLog, add, modify, thing
from ctrlmgr.tracing import spans
from ctrlmgr.tracing.spans import Attribute

_TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"


class _Fixed:
    """A tracer, which is at the same time its only span."""

    context = f"{_TRACE}-01"

    def start(self, name: str, parent: str, links: Sequence[str], attributes: Mapping[str, Attribute]) -> _Fixed:
        """Return this object as the started span."""
        return self

    def add(self, attributes: Mapping[str, Attribute]) -> None:
        """Ignore attributes."""

    def end(self, error: str = "") -> None:
        """Do nothing at the end of the span."""

    def shut_down(self) -> None:
        """Do nothing."""


class TraceContract:
    """The tests about traces that every event log must pass; they need the fixtures of `EventLogContract`."""

    def test_the_events_of_an_append_have_its_trace_context(self, log: VerifiableLog) -> None:
        log.append([add(thing("a"))], author=AUTHOR)
        with spans.installed(_Fixed()):
            log.append([add(thing("b"))], author=AUTHOR)
            with spans.span("request"):
                log.append([add(thing("c")), add(thing("d"))], author=AUTHOR)
        assert log.traces([1, 2, 3, 4, 99]) == {3: _Fixed.context, 4: _Fixed.context}
        assert log.traces([]) == {}
        assert log.traces([4]) == {4: _Fixed.context}

    def test_compaction_removes_traces_and_the_hash_chain_does_not_contain_them(self, log: VerifiableLog) -> None:
        with spans.installed(_Fixed()), spans.span("request"):
            log.append([add(thing("a"))], author=AUTHOR)
            log.append([modify(thing("a", spec=1), 1)], author=AUTHOR)
        log.compact(2)
        assert log.traces([1, 2]) == {2: _Fixed.context}
        verify(log)
