"""The data types of the event log: proposals, events, authors, fences, causes and failures."""

from __future__ import annotations

import enum
from typing import NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision


class EventType(enum.IntEnum):
    """The type of the change that an event records. The log stores these numbers, so they must never change."""

    ADDED = 1
    MODIFIED = 2
    DELETED = 3


class Author(msgspec.Struct, frozen=True):
    """The author of a write: a user or service account, such as `system:serviceaccount:kube-system:node-controller`.

    The field `user_agent` names the program that sent the request.
    """

    actor: str
    user_agent: str = ""


class Fence(msgspec.Struct, frozen=True):
    """The leader's term of an append; the log refuses the append (`Fenced`) unless `term` is the lease's current term.

    If `takeover` is set, the append *starts* a term: the log refuses it unless `term` is greater than the current term.
    The log checks the term while it holds the lock of its head. Therefore no append of an older term can follow a
    takeover. The term of a new lease is 0. Terms are never reused, even if the Lease object is deleted.
    """

    lease: str
    term: int
    takeover: bool = False


class Cause(msgspec.Struct, frozen=True):
    """The cause of an append: the reconcile that made it.

    The field `triggers` contains the revisions of *all* changes that the workqueue merged into this reconcile, in
    ascending order. The reconcile's `id` is a random positive number; `started_at` is in microseconds since 1970;
    `attempt` is 1 for the first attempt.
    """

    id: int
    controller: str
    key: str
    attempt: int
    started_at: int
    triggers: tuple[Revision, ...]


class Outcome(msgspec.Struct, frozen=True):
    """The result of a reconcile: `result` is `ok`, `requeued`, `error` or `terminal`; `duration` is in microseconds."""

    duration: int
    result: str
    message: str = ""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The failed reconciles of one key by one controller, from the first failure to the next success.

    Each retry updates the record of the failure. Times are in microseconds since 1970. `controller`, `key` and `since`
    (the time of the first failure) identify the record of a failure. `next_retry_at` is None if the controller retries
    only after an object has changed; `ended_at` is None until a reconcile succeeds.
    """

    controller: str
    key: str
    since: int
    last_at: int
    attempts: int
    kind: str
    error: str
    traceback: str = ""
    next_retry_at: int | None = None
    ended_at: int | None = None


FAILURES_KEPT = 1000
"""The number of failures that a log keeps; it keeps the most recent failures."""


class Reconcile(msgspec.Struct, frozen=True):
    """A recorded reconcile; `outcome` is None while the reconcile runs, or if the process died during the reconcile."""

    cause: Cause
    outcome: Outcome | None


class Proposal(msgspec.Struct, frozen=True):
    """A change that a caller wants to append to the log.

    A proposal's `object` is the whole object after the change, or its last state for DELETED. `expected` is the
    object's revision that the writer has seen; 0 for ADDED. Importers set `expected` to None, which accepts any
    revision; even then, ADDED requires that the object does not exist, and MODIFIED and DELETED require that it exists.

    The field `within` is the revision of the object's Namespace that the writer has seen. The append is refused if this
    Namespace has changed since or does not exist. If `within` is None, the Namespace is not checked.
    """

    type: EventType
    object: Object
    expected: Revision | None
    within: Revision | None = None


class Event(msgspec.Struct, frozen=True):
    """An event: one change, as the log stores it.

    The field `previous` is the revision of the preceding event with the same resource, namespace and name; 0 if there
    is none. If an object is created again, `previous` of its ADDED event is the revision of the earlier object's
    DELETED event. `recorded_at` is the time by the writer's clock, in microseconds since 1970; it does not define the
    order of events. The fields `term` and `reconcile` are 0 if the append had no fence or cause. All events of one
    append share an `append_id`. `hash` is the event's hash in the hash chain (`eventlog.hash_chain`).
    """

    revision: Revision
    previous: Revision
    type: EventType
    object: Object
    recorded_at: int
    actor: str
    user_agent: str
    term: int
    reconcile: int
    append_id: int
    hash: bytes

    @property
    def resource(self) -> Resource:
        """The resource of the changed object."""
        return self.object.resource

    @property
    def key(self) -> Key:
        """The namespace and name of the changed object."""
        return self.object.key


class Head(NamedTuple):
    """The end of the log: its incarnation, its newest revision, and the chain hash of that revision."""

    uuid: str
    revision: Revision
    hash: bytes


class Snapshot(NamedTuple):
    """The objects that existed at `revision`, ordered by resource, namespace and name."""

    revision: Revision
    objects: list[Object]
