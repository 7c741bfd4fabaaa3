"""Parses a point in time: a revision, `head`, a time, or a duration before now."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource, Revision
from ctrlmgr.clock import parse_time
from ctrlmgr.errors import BadRequest, Expired
from ctrlmgr.inspection.database import Database
from ctrlmgr.settings import parse_duration

HEAD = "head"


def resolve(database: Database, text: str, *, now: int) -> Revision:
    """Return the revision that `text` stands for: `1234`, `head`, `2026-01-02T03:04:05Z`, or `10m` before `now`.

    A time stands for the newest event that was recorded at or before that time. Raises `BadRequest` for a revision
    beyond the head, and for a text that is not a point in time.
    """
    head = head_of(database)
    if text == HEAD:
        return head
    if text.isdecimal():
        if int(text) > head:
            raise BadRequest(f"revision {text} is beyond the head, {head}")
        return int(text)
    return revision_at(database, _moment(text, now), head)


def time_of(database: Database, text: str, *, now: int) -> int:
    """Return the time that `text` stands for, in microseconds since 1970.

    For a revision, the result is the time at which the revision was recorded. Raises the same errors as `resolve`, and
    `BadRequest` for a compacted revision.
    """
    if text == HEAD:
        return now
    if not text.isdecimal():
        return _moment(text, now)
    revision = resolve(database, text, now=now)
    rows = database.query("SELECT recorded_at FROM event WHERE revision = :revision", {"revision": revision}).rows
    if not rows:
        raise BadRequest(f"revision {revision} is compacted, and its time is not known; write a time instead")
    return int(rows[0][0])


def before(database: Database, text: str, *, now: int) -> Revision:
    """Return the newest revision before the point in time `text`; raises the same errors as `resolve`."""
    head = head_of(database)
    if text == HEAD or text.isdecimal():
        return max(resolve(database, text, now=now) - 1, 0)
    return revision_at(database, _moment(text, now) - 1, head)


def _moment(text: str, now: int) -> int:
    try:
        return max(now - round(parse_duration(text) * 1_000_000), 0)
    except (ValueError, OverflowError):
        pass
    try:
        return parse_time(text)
    except ValueError:
        raise BadRequest(
            f"{text!r} is not a moment; write a revision, head, a time such as 2026-01-02T03:04:05Z, or 10m for "
            "ten minutes ago"
        ) from None


def head_of(database: Database) -> Revision:
    """Return the newest revision in the log."""
    return int(database.query("SELECT revision FROM log_head WHERE id = 1").rows[0][0])


def revision_at(database: Database, moment: int, head: Revision) -> Revision:
    """Return the newest revision recorded at or before `moment` (microseconds since 1970); 0 if there is none.

    The revision is found by bisection. If the clocks of writers differ, the result can be wrong by the revisions within
    that difference.
    """
    low, high = 0, head
    probe = (
        "SELECT revision, recorded_at FROM event WHERE revision > :low AND revision <= :middle"
        " ORDER BY revision DESC LIMIT 1"
    )
    while low < high:
        middle = (low + high + 1) // 2
        rows = database.query(probe, {"low": low, "middle": middle}).rows
        if not rows or rows[0][1] <= moment:
            low = middle
        else:
            high = rows[0][0] - 1
    return low


def recorded_at(database: Database, revision: Revision) -> int:
    """Return the recording time of the newest event up to `revision`, in microseconds since 1970.

    The function returns 0 if the log contains no event up to `revision`.
    """
    statement = "SELECT recorded_at FROM event WHERE revision <= :revision ORDER BY revision DESC LIMIT 1"
    rows = database.query(statement, {"revision": revision}).rows
    return int(rows[0][0]) if rows else 0


EVERYTHING = ""
"""The resource name under which the log stores the compaction floor of all resources."""


def floors_above(database: Database, revision: Revision) -> dict[str, Revision]:
    """Return the resources whose state at `revision` was compacted, with their compaction floors.

    A reader must call this function after its last read. A compaction raises the floor before it deletes events, so
    that readers can detect deleted events. Therefore, if a read missed a deleted event, a later call of the function
    returns the raised floor.
    """
    statement = "SELECT resource, floor FROM compaction_floor WHERE floor > :revision"
    return dict(database.query(statement, {"revision": revision}).rows)


def refuse_expired(database: Database, revision: Revision, resource: Resource) -> None:
    """Raise `Expired` if the state of `resource` at `revision` was compacted.

    Call this function after reading the state.
    """
    floors = floors_above(database, revision)
    if found := [floors[each] for each in (EVERYTHING, str(resource)) if each in floors]:
        raise Expired(revision, max(found))
