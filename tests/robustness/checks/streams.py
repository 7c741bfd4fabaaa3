"""Checks of the end and the latency of watches: a watch ends with a reason, and sends events in time."""

from __future__ import annotations

from collections.abc import Iterator

from tests.robustness.checks.evidence import DISRUPTIONS, Evidence, Stream
from tests.robustness.checks.watches import watch_summary
from tests.robustness.histories.history import ERROR, SECOND, Watch

PROMPT = 8 * SECOND
"""Seconds within which an event must arrive, even on a loaded machine."""

_ENDS_EARLY = SECOND // 2
_ENDS_LATE = 6 * SECOND
_STALLS = DISRUPTIONS | {"pause"}


def errors_have_reason(evidence: Evidence) -> Iterator[str]:
    """The server sends 410 only for compacted revisions, and 504 only for future revisions; no
    event follows an error.
    """
    for watch in evidence.history.watches:
        for at, error in enumerate(watch.deliveries):
            if error.type != ERROR:
                continue
            if at + 1 < len(watch.deliveries):
                yield f"{watch_summary(watch)}: goes on after {error}"
            if not _is_true(evidence, watch, error.revision, error.at):
                yield f"{watch_summary(watch)}: ends with {error}"


def _is_true(evidence: Evidence, watch: Watch, code: int, at: int) -> bool:
    asked = int(watch.version or "0")
    if code == 410:
        # The watch may also be older than the buffered events.
        reached = max([each.revision for each in watch.deliveries if each.type != ERROR], default=asked)
        return max(asked, reached) < evidence.floor_at(at)
    if code == 504 and watch.initial:
        return asked > evidence.known_before(watch.called - SECOND)
    return bool(evidence.faults(-1, watch.called, at))


def ends_have_reason(evidence: Evidence) -> Iterator[str]:
    """A stream ends at its timeout, after an error, or because of a fault."""
    for watch in evidence.history.watches:
        if watch.code not in (0, 200) and not evidence.faults(watch.server, watch.called, watch.ended_at):
            yield f"{watch_summary(watch)}: is answered {watch.code}"
        elif watch.ended in ("clean", "cut") and not _may_end(evidence, watch):
            seconds = (watch.ended_at - watch.called) / SECOND
            ending = f"ended ({watch.ended}) after {seconds:.1f} s of {watch.timeout} without a cause"
            yield f"{watch_summary(watch)}: {ending}"
    yield from _too_long(evidence)


def _may_end(evidence: Evidence, watch: Watch) -> bool:
    if watch.slow or (watch.deliveries and watch.deliveries[-1].type == ERROR):
        return True
    if evidence.faults(watch.server, watch.ended_at, watch.ended_at):
        return True
    lasted = watch.ended_at - watch.called
    return watch.ended == "clean" and watch.timeout > 0 and lasted >= watch.timeout * SECOND - _ENDS_EARLY


def _too_long(evidence: Evidence) -> Iterator[str]:
    for watch in evidence.history.watches:
        lasted = watch.ended_at - watch.called
        too_long = watch.timeout > 0 and lasted > watch.timeout * SECOND + _ENDS_LATE
        if too_long and not evidence.faults(watch.server, watch.called, watch.ended_at, _STALLS):
            yield f"{watch_summary(watch)}: lasted {lasted / SECOND:.1f} s of {watch.timeout}"


def prompt(evidence: Evidence) -> Iterator[str]:
    """A stream has sent every event that was acknowledged long before its end."""
    for stream in evidence.streams:
        watch = stream.watch
        if stream.start is None or any(each.type == ERROR for each in watch.deliveries):
            continue
        deadline = watch.ended_at - PROMPT
        if deadline <= watch.called or evidence.faults(watch.server, deadline, watch.ended_at, _STALLS):
            continue
        yield from _overdue(evidence, stream, evidence.known_before(deadline))


def _overdue(evidence: Evidence, stream: Stream, known: int) -> Iterator[str]:
    watch, reached = stream.watch, max(stream.reached, stream.start or 0)
    for event in evidence.truth.events(watch.resource, watch.selection, reached, known):
        early = f"{known} was known {PROMPT / SECOND:.0f} s before the end of the watch"
        yield f"{watch_summary(watch)}: {event} was not delivered, although {early}"
        return
