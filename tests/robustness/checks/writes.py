"""Writes against the log: what was promised is there, what was refused is not, and in the order of time."""

from __future__ import annotations

from collections.abc import Iterator

from tests.robustness.checks.evidence import Evidence
from tests.robustness.histories.history import Logged, Write
from tests.robustness.histories.truth import Change

_TYPES = {"create": "ADDED", "update": "MODIFIED", "patch": "MODIFIED", "delete": "DELETED"}


def _type(write: Write) -> str:
    """Return the type of event that a write becomes; an update may create, where the kind allows that."""
    return "ADDED" if write.code == 201 else _TYPES[write.verb]


def _told(write: Write) -> str:
    return f"{write.verb} {write.id} of {write.resource} {write.namespace}/{write.name}, answered {write.code}"


def _main_events(evidence: Evidence, write: Write) -> list[Logged]:
    """Return what a write became, without what came along with it (a Service's address)."""
    return [event for event in evidence.truth.of_write.get(write.id, []) if event.resource == write.resource]


def acknowledged_are_logged(evidence: Evidence) -> Iterator[str]:
    """Every acknowledged write is one event, of the type and at the revision that was answered."""
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
    """Refused writes have no event, and there is no event without a request."""
    for write in evidence.history.writes:
        if write.refused and (events := evidence.truth.of_write.get(write.id)):
            yield f"{_told(write)}, is in the log at {events[0].revision}"
    for name, events in evidence.truth.of_write.items():
        if name not in evidence.truth.writes:
            yield f"revision {events[0].revision} comes from write {name}, which nobody made"


def revisions_have_no_gap(evidence: Evidence) -> Iterator[str]:
    """Revisions count up by one."""
    for expected, event in enumerate(evidence.history.log, 1):
        if event.revision != expected:
            yield f"revision {expected} is missing: {event.revision} is there"
            return


def order_is_that_of_time(evidence: Evidence) -> Iterator[str]:
    """A write that was acknowledged before another one was requested precedes it in the log."""
    for write in evidence.history.writes:
        known = evidence.known_before(write.called)
        for event in evidence.truth.of_write.get(write.id, []):
            if event.revision <= known:
                yield f"{_told(write)}, is at {event.revision}; {known} was known before it was called"


def preconditions_hold(evidence: Evidence) -> Iterator[str]:
    """A write that named a revision replaced just that one; what created something, nothing."""
    for write in evidence.history.writes:
        for event in _main_events(evidence, write):
            before = evidence.truth.at(event.resource, (event.namespace, event.name), event.revision - 1)
            was = before.revision if before is not None else 0
            if event.type == "ADDED":  # an update, too, creates what is not there, whatever revision it was for
                if was:
                    yield f"{_told(write)}, created what was there at revision {was}"
            elif not was or write.expected not in (0, was):
                yield f"{_told(write)}, replaced revision {was}, not {write.expected}"


def refusals_are_true(evidence: Evidence) -> Iterator[str]:
    """404 and 409 are answered only to whom they were true at some moment of the request."""
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
    """Yield at which revisions an object may have been while a write was under way, 0 for not at all."""
    truth, place = evidence.truth, (write.namespace, write.name)
    first, last = evidence.known_before(write.called), truth.last_before(write.returned)
    there = truth.at(write.resource, place, first)
    yield there.revision if there is not None else 0
    changes: list[Change] = [each for each in truth.history_of(write.resource, place) if first < each.revision <= last]
    for change in changes:
        yield change.after.revision if change.after is not None else 0


def answers_are_expected(evidence: Evidence) -> Iterator[str]:
    """A write is done or refused with 404 or 409; it fails only where something was done to its server."""
    for write in evidence.history.writes:
        if write.acknowledged or write.code in (404, 409):
            continue
        if not evidence.faults(write.server, write.called, write.returned):
            yield f"{_told(write)} by server {write.server}, to which nothing was done: {write.message}"


def nothing_unexpected(evidence: Evidence) -> Iterator[str]:
    """No server logs a traceback, whatever happens to it."""
    yield from evidence.history.tracebacks
