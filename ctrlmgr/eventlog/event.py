"""What goes into the log and what comes out of it."""

from __future__ import annotations

import enum
from typing import NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision


class EventType(enum.IntEnum):
    """What happened to the object; the numbers are stored, never renumber them."""

    ADDED = 1
    MODIFIED = 2
    DELETED = 3


class Author(msgspec.Struct, frozen=True):
    """Who writes: a user such as `system:serviceaccount:kube-system:endpoint-controller`, and the program it used."""

    actor: str
    user_agent: str = ""


class Fence(msgspec.Struct, frozen=True):
    """Leadership carried by an append: refused (`Fenced`) unless `term` is the lease's current term.

    With `takeover` the append *starts* the term instead: it is refused unless `term` is newer than the current
    one. Both checks happen under the log's head lock, so once a takeover is in the log no append of an older
    term can follow it. A lease that never had a term is at 0; terms are never reused, even when the Lease
    object is deleted.
    """

    lease: str
    term: int
    takeover: bool = False


class Cause(msgspec.Struct, frozen=True):
    """The reconcile that an append comes from.

    `triggers` are *all* the revisions that the workqueue coalesced into this reconcile, ascending.
    `id` is random and positive; `started_at` is in microseconds since 1970; `attempt` counts from 1.
    """

    id: int
    controller: str
    key: str
    attempt: int
    started_at: int
    triggers: tuple[Revision, ...]


class Outcome(msgspec.Struct, frozen=True):
    """How a reconcile ended: `result` is `ok`, `requeued`, `error` or `terminal`; `duration` in microseconds."""

    duration: int
    result: str
    message: str = ""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The failed reconciles of one key by one controller, from the first until one succeeds; retries update it.

    Times are in microseconds since 1970. `controller`, `key` and `since`, the time of the first failure, identify it.
    `next_retry_at` is None if only a change of an object brings the next attempt; `ended_at` is None while it fails.
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
"""How many failures a log keeps: those that failed last."""


class Reconcile(msgspec.Struct, frozen=True):
    """A reconcile as the log remembers it; `outcome` is None while it runs, or when its process died in it."""

    cause: Cause
    outcome: Outcome | None


class Proposal(msgspec.Struct, frozen=True):
    """A change that a caller wants.

    `object` is the whole object after the change; for DELETED its last state. `expected` is the revision the
    writer believes the object to be at (0 for ADDED: it must not exist); None means whatever it is at, which
    is for importers only: ADDED still needs it absent, MODIFIED and DELETED still need it present.

    `within` is the revision the writer believes the object's Namespace to be at: the append is refused if that has
    changed since, or is gone. So what is only right in a namespace that exists and is not terminating holds when
    it is written, not only when it was decided. None: it does not matter.
    """

    type: EventType
    object: Object
    expected: Revision | None
    within: Revision | None = None


class Event(msgspec.Struct, frozen=True):
    """One change as the log holds it.

    `previous` is the revision of the event before it at the same resource, namespace and name, 0 when there
    is none (so an object created again points at the deletion of the one before). `recorded_at` is
    microseconds since 1970 by the writer's clock: data, never order. `term` and `reconcile` are 0 when the
    append carried no fence or cause. `append_id` is shared by the events of one append and no others.
    `hash` is this event's link of the chain (`eventlog.chain`).
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
        """What kind of thing changed."""
        return self.object.resource

    @property
    def key(self) -> Key:
        """Which one changed."""
        return self.object.key


class Head(NamedTuple):
    """Where the log ends: its incarnation, newest revision and that revision's chain hash."""

    uuid: str
    revision: Revision
    hash: bytes


class Snapshot(NamedTuple):
    """The objects that existed at `revision`, ordered by resource, namespace and name."""

    revision: Revision
    objects: list[Object]
