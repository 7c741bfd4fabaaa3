"""Commits groups of appends to PostgreSQL, with one call of `log_append` per group on a dedicated connection.

Guarantees:
- Each group of appends is one round trip and one transaction; `migrations/postgres/append.sql` states the guarantees of
  the SQL function.
- A group of appends is acknowledged only if the server confirmed the commit without a warning. A warning, such as a
  cancelled wait for a synchronous standby, makes the outcome of the group unknown.
- No append is written twice, even if an earlier try is still running on the server. The argument of every call of
  `log_append` contains a revision from before the first try, and the server searches all later events for the append.
- If the database cannot store some data, only the append with that data fails, not the whole group.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import Any

import msgspec
import psycopg
from psycopg.errors import DataError, ProgramLimitExceeded, ReadOnlySqlTransaction

from ctrlmgr.api.resource import Revision
from ctrlmgr.errors import BadRequest, CtrlmgrError, LogCorrupt, LogUnavailable, OutcomeUnknown
from ctrlmgr.eventlog.appending import failure_rows
from ctrlmgr.eventlog.appending.committer import Answer, Finished
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.eventlog.event import Cause
from ctrlmgr.eventlog.hash_chain import Place, link
from ctrlmgr.eventlog.optimistic_concurrency import EMPTY, Slot, fence_refusal, namespace_refusal, refusal
from ctrlmgr.eventlog.postgres.arrays import BigintArray, BooleanArray, ByteaArray, IntegerArray, TextArray
from ctrlmgr.eventlog.postgres.postgres_connection import COMPACTED, BoundedConnection, append_failure, is_open

_CALL = (
    b"SELECT head, verdicts, culprits, actuals, revisions, previouses, hashes FROM log_append("
    + b", ".join([b"%b"] * 23)
    + b", %t, %t)"
)
_UPSERT = failure_rows.UPSERT.replace("?", "%s").encode()
_PRUNE = failure_rows.PRUNE.encode()
_TRACE = b"INSERT INTO append_trace (append_id, trace_context) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_ANY_REVISION = -1
_LARGEST = 2**63 - 1
_OK, _ALREADY_EXISTS, _NOT_FOUND, _CONFLICT, _FENCED, _NAMESPACE_CONFLICT, _NO_NAMESPACE = range(7)
_encode_json = msgspec.json.Encoder().encode


class PostgresWriter:
    """Commits groups of appends; only one thread at a time may use a writer, except for the thread-safe `saw`."""

    def __init__(self, connect: Callable[[], BoundedConnection], known: Revision) -> None:
        """Create a writer that calls `connect` on the first write; `known` is a revision that the log has reached."""
        self._connect = connect
        self._connection: BoundedConnection | None = None
        self._warning: str | None = None  # the warning that the server sent during the current call
        # A revision that the log has certainly reached, and that is never higher than the log's head. The lower this
        # revision is, the more events the server searches for earlier tries.
        self._known = known
        self._growing = threading.Lock()
        # The group whose first try was the latest, and the value of `_known` at that time. The attribute is None after
        # the server has responded.
        self._first_try: tuple[Sequence[PendingAppend], Revision] | None = None
        self._last: tuple[Revision, bytes] | None = None  # revision and hash of this process's newest event
        self._damage: LogCorrupt | None = None

    def saw(self, revision: Revision) -> None:
        """Record that the log has reached `revision`; thread-safe."""
        with self._growing:
            self._known = max(self._known, revision)

    def commit(
        self, group: Sequence[PendingAppend], outcomes: Sequence[Finished], *, since: Revision | None
    ) -> list[Answer]:
        """Commit a group of appends, as `GroupWriter` specifies."""
        if self._damage is not None:
            raise LogCorrupt(str(self._damage), revision=self._damage.revision)
        connection = self._open()
        known = self._known_before(group, since)
        try:
            row = self._call(connection, known, group, outcomes)
        except (DataError, ProgramLimitExceeded) as error:
            return self._commit_one_by_one(group, outcomes, since, error)
        except psycopg.Error as error:
            if error.sqlstate == COMPACTED and since is None:
                # No earlier try was made, so nothing can be written twice: read the head and retry.
                self._catch_up(connection)
                return self.commit(group, outcomes, since=None)
            failure = append_failure(error, connection)
            if isinstance(failure, OutcomeUnknown) or isinstance(error, ReadOnlySqlTransaction):
                self.disconnect()  # a call may still be running on this connection, or its server is a standby
            raise failure from error
        self.saw(row[0])
        self._first_try = None
        answers = _answers(group, row)
        self._require_our_past(group, row)
        return answers

    def _require_our_past(self, group: Sequence[PendingAppend], row: Any) -> None:
        """Raise `LogCorrupt` if the event after this process's last event does not continue that event's hash."""
        _, _, _, _, revisions, previouses, hashes = row
        placed = [number for number, revision in enumerate(revisions or ()) if revision is not None]
        if not placed or (self._last is not None and revisions[placed[-1]] <= self._last[0]):
            return
        first = placed[0]
        if self._last is not None and revisions[first] == self._last[0] + 1:
            digests = list(chain.from_iterable(pending.digests for pending in group))
            if link(self._last[1], revisions[first], previouses[first], digests[first]) != hashes[first]:
                text = f"revision {self._last[0]} differs from this process's copy: the log was rewritten"
                self._damage = LogCorrupt(text, revision=self._last[0])
                raise self._damage
        self._last = revisions[placed[-1]], hashes[placed[-1]]

    def _known_before(self, group: Sequence[PendingAppend], since: Revision | None) -> Revision:
        """Return the newest revision known to be before the first try of `group`.

        The argument `since` is also a revision before the first try, but compaction may have passed `since`.
        """
        if since is None:
            self._first_try = group, self._known
            return self._known
        if self._first_try and self._first_try[0] is group:
            return self._first_try[1]
        return since

    def _open(self) -> BoundedConnection:
        if self._connection is not None and is_open(self._connection):
            return self._connection
        self.disconnect()
        try:
            self._connection = self._connect()
        except psycopg.Error as error:
            raise LogUnavailable(f"the database cannot be reached: {str(error).strip()}") from error
        self._connection.add_notice_handler(self._on_notice)
        return self._connection

    def _on_notice(self, notice: psycopg.errors.Diagnostic) -> None:
        # If the wait for a synchronous standby is cancelled, PostgreSQL reports success and a warning (01000).
        if notice.severity_nonlocalized == "WARNING":
            self._warning = notice.message_primary

    def _call(
        self,
        connection: BoundedConnection,
        known: Revision,
        group: Sequence[PendingAppend],
        outcomes: Sequence[Finished],
    ) -> Any:
        self._warning = None
        for failure in failure_rows.failures_of(outcomes):
            connection.execute(_UPSERT, [_storable(each) if isinstance(each, str) else each for each in failure])
            connection.execute(_PRUNE)
        for pending in group:
            if pending.trace:  # written first, so that a reader that sees an event also finds its trace
                connection.execute(_TRACE, [pending.stamp.append_id, pending.trace])
        row = connection.execute(_CALL, _arguments(known, group, outcomes), binary=True).fetchone()
        if self._warning:
            raise OutcomeUnknown(f"the database confirmed an append, but with a warning: {self._warning}")
        return row

    def _commit_one_by_one(
        self, group: Sequence[PendingAppend], outcomes: Sequence[Finished], since: Revision | None, error: psycopg.Error
    ) -> list[Answer]:
        """Commit the appends of a group one by one, to find the append that the database cannot store."""
        if len(group) == 1 and not outcomes:
            return [BadRequest(f"the database cannot store this: {str(error).strip()}")]
        if not group:
            raise append_failure(error, self._open()) from error
        answers = list(chain.from_iterable(self.commit([pending], (), since=since) for pending in group))
        if outcomes:
            self.commit((), outcomes, since=since)
        return answers

    def _catch_up(self, connection: BoundedConnection) -> None:
        row = connection.execute("SELECT revision FROM log_head WHERE id = 1").fetchone()
        if row is not None:
            self.saw(row[0])

    def idle(self) -> None:
        """Read the head of the log, which other processes may have moved.

        With a newer head, the next call searches fewer events.
        """
        if self._connection is None:
            return
        try:
            self._catch_up(self._connection)
        except psycopg.Error:
            self.disconnect()  # the next group opens a new connection

    def disconnect(self) -> None:
        """Close the connection; the next group opens a new connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _arguments(known: Revision, group: Sequence[PendingAppend], outcomes: Sequence[Finished]) -> tuple[Any, ...]:
    """Return the parameters of `log_append`; the SQL function's header documents each of them."""
    numbers: dict[Place, int] = {}
    places = [numbers.setdefault(place, len(numbers) + 1) for pending in group for place in pending.places]
    touched = len(numbers)
    withins = _withins(group, numbers)
    proposals = [proposal for pending in group for proposal in pending.proposals]
    sizes = [len(pending.proposals) for pending in group]
    return (
        known,
        BigintArray.of([pending.stamp.append_id for pending in group]),
        IntegerArray.of(sizes),
        *_fences(group),
        _reconciles(group),
        BigintArray.of([pending.stamp.recorded_at for pending in group]),
        TextArray.of([pending.stamp.actor.encode() for pending in group]),
        TextArray.of([pending.stamp.user_agent.encode() for pending in group]),
        TextArray.of([place[0].encode() for place in numbers]),
        TextArray.of([place[1].encode() for place in numbers]),
        TextArray.of([place[2].encode() for place in numbers]),
        IntegerArray.of(list(chain.from_iterable(map(repeat, range(1, len(group) + 1), sizes)))),
        IntegerArray.of(places),
        IntegerArray.of([proposal.type for proposal in proposals]),
        TextArray.of([proposal.object.metadata.uid.encode() for proposal in proposals]),
        BigintArray.of([_expected(proposal.expected) for proposal in proposals]),
        ByteaArray.of([digest for pending in group for digest in pending.digests]),
        TextArray.of(_bodies(group)),
        touched,
        *withins,
        _causes(group),
        _outcomes(outcomes),
    )


def _bodies(group: Sequence[PendingAppend]) -> list[bytes]:
    """Return the payloads to store."""
    bodies: list[bytes] = []
    for pending in group:
        bodies += [each.object.body for each in pending.proposals] if pending.bodies is None else pending.bodies
    return bodies


def _withins(
    group: Sequence[PendingAppend], numbers: dict[Place, int]
) -> tuple[IntegerArray | None, BigintArray | None]:
    """Return for each proposal the index of its Namespace, and the revision that this Namespace must have.

    The function returns None if no proposal has a Namespace.
    """
    if not any(pending.within for pending in group):
        return None, None
    places: list[int] = []
    revisions: list[Revision] = []
    for pending in group:
        for number, proposal in enumerate(pending.proposals):
            place = pending.within.get(number)
            places.append(numbers.setdefault(place, len(numbers) + 1) if place else 0)
            revisions.append(min(max(proposal.within or 0, 0), _LARGEST))
    return IntegerArray.of(places), BigintArray.of(revisions)


def _fences(group: Sequence[PendingAppend]) -> tuple[TextArray | None, BigintArray | None, BooleanArray | None]:
    """Return the arrays of the leases, terms and takeovers; each is None if the group has no fences."""
    fences = [pending.fence for pending in group]
    if not any(fences):
        return None, None, None
    return (
        TextArray.of([fence.lease.encode() if fence else b"" for fence in fences]),
        BigintArray.of([fence.term if fence else 0 for fence in fences]),
        BooleanArray.of([fence.takeover if fence else False for fence in fences]),
    )


def _reconciles(group: Sequence[PendingAppend]) -> BigintArray | None:
    if not any(pending.cause for pending in group):
        return None
    return BigintArray.of([pending.stamp.reconcile for pending in group])


def _expected(revision: Revision | None) -> int:
    # A revision outside the log's range conflicts like any other wrong revision.
    return _ANY_REVISION if revision is None else min(max(revision, 0), _LARGEST)


def _causes(group: Sequence[PendingAppend]) -> str | None:
    causes = [
        {"append": number, **msgspec.structs.asdict(_storable_cause(pending.cause))}
        for number, pending in enumerate(group, 1)
        if pending.cause
    ]
    return _encode_json(causes).decode() if causes else None


def _storable_cause(cause: Cause) -> Cause:
    if "\0" in cause.controller or "\0" in cause.key:
        return msgspec.structs.replace(cause, controller=_storable(cause.controller), key=_storable(cause.key))
    return cause


def _outcomes(outcomes: Sequence[Finished]) -> str | None:
    rows = [
        {"id": number, "duration": outcome.duration, "result": outcome.result, "message": _storable(outcome.message)}
        for number, outcome in failure_rows.outcomes_of(outcomes)
    ]
    return _encode_json(rows).decode() if rows else None


def _storable(text: str) -> str:
    """Replace the characters that PostgreSQL's text type cannot store; callers use this function for free text only."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def _answers(group: Sequence[PendingAppend], row: Any) -> list[Answer]:
    """Return the events or the error of each append, given the result of `log_append`."""
    _, verdicts, culprits, actuals, revisions, previouses, hashes = row
    answers: list[Answer] = []
    first = 0
    for number, pending in enumerate(group):
        last = first + len(pending.proposals)
        if verdicts[number] == _OK:
            answers.append(
                [pending.event(i - first, revisions[i], previouses[i], hashes[i]) for i in range(first, last)]
            )
        else:
            culprit = (culprits[number] or 1) - 1 - first
            answers.append(_refused(pending, verdicts[number], culprit, actuals[number]))
        first = last
    return answers


def _refused(pending: PendingAppend, verdict: int, culprit: int, actual: int | None) -> CtrlmgrError:
    """Return the error for a refusal by the database, as `eventlog.optimistic_concurrency` would return it."""
    if verdict == _FENCED:
        error: CtrlmgrError | None = fence_refusal(pending.fence, actual or 0)
    else:
        slot = EMPTY if verdict in (_NOT_FOUND, _NO_NAMESPACE) else Slot(actual or 0, True)
        judge = namespace_refusal if verdict in (_NAMESPACE_CONFLICT, _NO_NAMESPACE) else refusal
        error = judge(pending.proposals[culprit], slot)
    assert error is not None, f"verdict {verdict} is none of admission's"
    return error
