"""Checks of writes against the log: acknowledged writes are in the log in the order of time, and refused writes are not
in the log.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.robustness.checks.evidence import Evidence
from tests.robustness.histories.history import Logged, Write
from tests.robustness.histories.truth import Change

_TYPES = {"create": "ADDED", "update": "MODIFIED", "patch": "MODIFIED", "delete": "DELETED"}


def _type(write: Write) -> str:
    """Return the type of a write's event; an update may create an object if its kind allows it."""
    return "ADDED" if write.code == 201 else _TYPES[write.verb]


def _told(write: Write) -> str:
    return f"{write.verb} {write.id} of {write.resource} {write.namespace}/{write.name}, answered {write.code}"


def _main_events(evidence: Evidence, write: Write) -> list[Logged]:
    """Return the event of a write, without other changes in the same append (such as the allocation of a Service's
    address).
    """
    return [event for event in evidence.truth.of_write.get(write.id, []) if event.resource == write.resource]


def acknowledged_are_logged(evidence: Evidence) -> Iterator[str]:
    """Every acknowledged write is exactly one event, with the type and the revision in the response."""
    for write in evidence.history.writes:
        events = _main_events(evidence, write)
        if len(events) > 1:
            yield f"{_told(write)}, is in the log {len(events)} times: {[event.revision for event in events]}"
        if not events or not write.acknowledged:
            if write.acknowledged:
                yield f"{_told(write)}, is not in the log"
            continue
        event = events[0]
        if (event.namespace, event.name, event.type) != (write.namespace, write.name, _type(write)):
            yield f"{_told(write)}, is in the log as {event.type} of {event.namespace}/{event.name}"
        if write.revision not in (0, event.revision):
            yield f"{_told(write)} at revision {write.revision}, is in the log at {event.revision}"


def refused_are_not_logged(evidence: Evidence) -> Iterator[str]:
    """A refused write has no event, and every event belongs to a request."""
    for write in evidence.history.writes:
        if write.refused and (events := evidence.truth.of_write.get(write.id)):
            yield f"{_told(write)}, is in the log at {events[0].revision}"
    for name, events in evidence.truth.of_write.items():
        if name not in evidence.truth.writes:
            yield f"revision {events[0].revision} comes from write {name}, which nobody made"


def revisions_have_no_gap(evidence: Evidence) -> Iterator[str]:
    """The revisions of the log increase by one."""
    for expected, event in enumerate(evidence.history.log, 1):
        if event.revision != expected:
            yield f"revision {expected} is missing: {event.revision} is there"
            return


def order_is_that_of_time(evidence: Evidence) -> Iterator[str]:
    """If a write was acknowledged before another write was requested, the first write precedes the other write in the
    log.
    """
    for write in evidence.history.writes:
        known = evidence.known_before(write.called)
        for event in evidence.truth.of_write.get(write.id, []):
            if event.revision <= known:
                yield f"{_told(write)}, is at {event.revision}; {known} was known before it was called"


def preconditions_hold(evidence: Evidence) -> Iterator[str]:
    """A write with a resourceVersion replaces exactly this version; a create replaces no object."""
    for write in evidence.history.writes:
        for event in _main_events(evidence, write):
            before = evidence.truth.at(event.resource, (event.namespace, event.name), event.revision - 1)
            was = before.revision if before is not None else 0
            if event.type == "ADDED":  # an update also creates a missing object, regardless of its revision
                if was:
                    yield f"{_told(write)}, created what was there at revision {was}"
            elif not was or write.expected not in (0, was):
                yield f"{_told(write)}, replaced revision {was}, not {write.expected}"


def refusals_are_true(evidence: Evidence) -> Iterator[str]:
    """The server responds with 404 or 409 only if this response was correct at some time during the request."""
    for write in evidence.history.writes:
        if write.code not in (404, 409):
            continue
        states = list(_possible(evidence, write))
        if write.code == 404:
            true = 0 in states
        elif write.verb == "create":
            true = any(states)
        else:
            true = any(revision != write.expected for revision in states)
        if not true:
            yield f"{_told(write)}, expecting {write.expected}, though it was at {states} all the while"


def _possible(evidence: Evidence, write: Write) -> Iterator[int]:
    """Yield the possible revisions of an object during a write; 0 means that the object did not exist."""
    truth, place = evidence.truth, (write.namespace, write.name)
    first, last = evidence.known_before(write.called), truth.last_before(write.returned)
    there = truth.at(write.resource, place, first)
    yield there.revision if there is not None else 0
    changes: list[Change] = [each for each in truth.history_of(write.resource, place) if first < each.revision <= last]
    for change in changes:
        yield change.after.revision if change.after is not None else 0


def answers_are_expected(evidence: Evidence) -> Iterator[str]:
    """A write succeeds or is refused with 404 or 409; any other failure must be caused by a fault of the server."""
    for write in evidence.history.writes:
        if write.acknowledged or write.code in (404, 409):
            continue
        if not evidence.faults(write.server, write.called, write.returned):
            yield f"{_told(write)} by server {write.server}, to which nothing was done: {write.message}"


def nothing_unexpected(evidence: Evidence) -> Iterator[str]:
    """No server logs a traceback, regardless of faults."""
    yield from evidence.history.tracebacks
