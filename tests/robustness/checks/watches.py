"""Checks of watches against the log, event by event: the guarantees of etcd, and those that Kubernetes adds."""

from __future__ import annotations

from collections.abc import Iterator

from tests.robustness.checks.evidence import Evidence, Stream
from tests.robustness.histories.history import BOOKMARK, Delivery, Watch

_Identity = tuple[int, str, str]


def watch_summary(watch: Watch) -> str:
    asked = f"from '{watch.version}'" + (f" initial={watch.initial}" if watch.initial is not None else "")
    return f"watch of {watch.resource} {watch.selection} {asked} by {watch.server}, called at {watch.called}"


def _identity(event: Delivery) -> _Identity:
    return event.revision, event.namespace, event.name


def _expected(evidence: Evidence, stream: Stream, after: int, until: int) -> list[Delivery]:
    watch = stream.watch
    return list(evidence.truth.events(watch.resource, watch.selection, after, until))


def _live(evidence: Evidence) -> Iterator[tuple[Stream, int]]:
    """Yield the streams whose beginning is known, each with its beginning."""
    for stream in evidence.streams:
        if stream.start is not None:
            yield stream, stream.start


def ordered(evidence: Evidence) -> Iterator[str]:
    """Revisions never decrease."""
    for stream in evidence.streams:
        for one, next_one in zip(stream.live, stream.live[1:], strict=False):
            if next_one.revision < one.revision:
                yield f"{watch_summary(stream.watch)}: {next_one} after {one}"


def unique(evidence: Evidence) -> Iterator[str]:
    """No event is sent twice."""
    for stream in evidence.streams:
        seen: set[_Identity] = set()
        for event in stream.events:
            if _identity(event) in seen:
                yield f"{watch_summary(stream.watch)}: {event} a second time"
            seen.add(_identity(event))


def reliable(evidence: Evidence) -> Iterator[str]:
    """No event between two sent events is missing."""
    for stream in evidence.streams:
        events = stream.events
        if not events:
            continue
        seen = set(map(_identity, events))
        first, last = min(seen)[0], max(seen)[0]
        for event in _expected(evidence, stream, first, last):
            if _identity(event) not in seen:
                yield f"{watch_summary(stream.watch)}: {event} is left out"


def resumable(evidence: Evidence) -> Iterator[str]:
    """The first event of a stream is the first event after the requested revision."""
    for stream, start in _live(evidence):
        if stream.events:
            first = stream.events[0]
            missed = _expected(evidence, stream, start, first.revision - 1)
            if missed:
                yield f"{watch_summary(stream.watch)}: begins with {first}, not {missed[0]} (after {start})"


def bookmarkable(evidence: Evidence) -> Iterator[str]:
    """Events up to a bookmark's revision are sent before the bookmark, and later events after the bookmark."""
    for stream, start in _live(evidence):
        bookmarks = [(at, each) for at, each in enumerate(stream.live) if each.type == BOOKMARK]
        for at, bookmark in bookmarks:
            before = {_identity(event) for event in stream.live[:at] if event.type != BOOKMARK}
            for event in _expected(evidence, stream, start, bookmark.revision):
                if _identity(event) not in before:
                    yield f"{watch_summary(stream.watch)}: {event} does not come before {bookmark}"
            for event in stream.live[at + 1 :]:
                if event.revision <= bookmark.revision and event.type != BOOKMARK:
                    yield f"{watch_summary(stream.watch)}: {event} comes after {bookmark}"
            if bookmark.revision > evidence.truth.last_before(bookmark.at):
                yield f"{watch_summary(stream.watch)}: {bookmark} is of the future"
        if bookmarks and not stream.watch.bookmarks:
            yield f"{watch_summary(stream.watch)}: has a bookmark that it did not ask for"


def filtered(evidence: Evidence) -> Iterator[str]:
    """A stream contains only events of objects that match the selection, or matched it before the event."""
    for stream in evidence.streams:
        for event in stream.events:
            if not _expected(evidence, stream, event.revision - 1, event.revision):
                yield f"{watch_summary(stream.watch)}: {event} is nothing to it"


def true_to_type(evidence: Evidence) -> Iterator[str]:
    """ADDED means that an object begins to match the selection, DELETED that it no longer matches; the event contains
    the object as of the event.
    """
    for stream in evidence.streams:
        for event in stream.events:
            for expected in _expected(evidence, stream, event.revision - 1, event.revision):
                if event[:5] != expected[:5]:
                    yield f"{watch_summary(stream.watch)}: {event} should be {expected}"


def nothing_before_its_start(evidence: Evidence) -> Iterator[str]:
    """No event at or before the requested revision is sent, whether this revision is in the past or in the future."""
    for stream, start in _live(evidence):
        for event in stream.live:
            if event.revision < start or (event.revision == start and event.type != BOOKMARK):
                yield f"{watch_summary(stream.watch)}: {event} is not after {start}"


def initial_state(evidence: Evidence) -> Iterator[str]:
    """The initial events are the state at one point in time, which is not older than requested."""
    for stream in evidence.streams:
        watch = stream.watch
        begins_with_state = watch.initial or (watch.initial is None and watch.version in ("", "0"))
        if not begins_with_state:
            continue
        if stream.start is None:
            if stream.live or (watch.ended == "clean" and not _failed(watch)):
                yield f"{watch_summary(watch)}: begins with no state there ever was: {stream.initial}"
            continue
        least = int(watch.version) if watch.version else evidence.known_before(watch.called)
        if stream.start < least:
            yield f"{watch_summary(watch)}: begins at {stream.start}, before {least}"
        seen = [(each.namespace, each.name, each.revision, each.digest) for each in stream.initial]
        state = evidence.truth.state(watch.resource, watch.selection, stream.start)
        if seen != state or any(each.type != "ADDED" for each in stream.initial):
            yield f"{watch_summary(watch)}: begins with {stream.initial}, not {state} of {stream.start}"


def _failed(watch: Watch) -> bool:
    return bool(watch.deliveries) and watch.deliveries[-1].type == "ERROR"
