"""A submitted append: its proposals, its time and id, and its result.

Guarantees: an append ends exactly once, with events or with an error, and wakes each waiting thread once. The time and
the id of an append are fixed when the append is submitted, so a retry writes the same bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache

import structlog

from ctrlmgr.api.resource import NAMESPACES, Revision
from ctrlmgr.errors import BadRequest
from ctrlmgr.eventlog.event import Author, Cause, Event, EventType, Fence, Proposal
from ctrlmgr.eventlog.hash_chain import Place, Stamp, content_digest
from ctrlmgr.tracing import spans

log = structlog.get_logger(__name__)

resource_name = lru_cache(maxsize=1024)(str)


def namespace_place(name: str) -> Place:
    """Return the object key of a Namespace in the log."""
    return (resource_name(NAMESPACES), "", name)


class PendingAppend:
    """One append, which implements `log.Appending`."""

    __slots__ = (
        "_callbacks",
        "_ended",
        "bodies",
        "cause",
        "digests",
        "error",
        "events",
        "fence",
        "places",
        "proposals",
        "size",
        "stamp",
        "trace",
        "within",
    )

    def __init__(
        self,
        proposals: Sequence[Proposal],
        author: Author,
        fence: Fence | None,
        cause: Cause | None,
        *,
        recorded_at: int,
        append_id: int,
        stored: Callable[[Place, bytes], bytes] | None = None,
    ) -> None:
        """Create an append with its time (µs since 1970) and its id (positive, 63 bits).

        The function `stored` returns the payload that the log stores for an object; if it is None, the log stores the
        object itself. The append records the current trace context if the trace is sampled. Raises `BadRequest` if
        there are no proposals or an ADDED proposal expects a revision.
        """
        if not proposals:
            raise BadRequest("an append needs at least one proposal")
        self.proposals = proposals
        self.fence = fence
        self.cause = cause
        self.stamp = stamp = Stamp(
            recorded_at,
            author.actor,
            author.user_agent,
            fence.term if fence else 0,
            cause.id if cause else 0,
            append_id,
        )
        self.trace = "" if spans.tracer is None else spans.sampled()
        self.places: list[Place] = []
        self.within: dict[int, Place] = {}  # maps a proposal's index to the Namespace that must be unchanged
        self.digests: list[bytes] = []
        self.bodies: list[bytes] | None = None if stored is None else []  # the stored payloads, if they differ
        self.size = 0
        for proposal in proposals:
            obj = proposal.object
            metadata = obj.metadata
            place = (resource_name(obj.resource), metadata.namespace, metadata.name)
            if proposal.expected and proposal.type is EventType.ADDED:
                raise BadRequest(f'{place[0]} "{metadata.name}" already has a revision, so it cannot be created')
            if proposal.within is not None:
                self.within[len(self.places)] = namespace_place(metadata.namespace)
            self.places.append(place)
            body = obj.body
            if stored is not None and self.bodies is not None:
                body = stored(place, body)
                self.bodies.append(body)
            self.size += len(body)
            self.digests.append(content_digest(place, body, proposal.type.value, stamp))
        self.events: Sequence[Event] = ()
        self.error: BaseException | None = None
        self._ended = False
        self._callbacks: list[Callable[[PendingAppend], None]] = []

    def event(self, index: int, revision: Revision, previous: Revision, hash: bytes) -> Event:
        """Return the event of proposal number `index`."""
        proposal = self.proposals[index]
        return Event(revision, previous, proposal.type, proposal.object.at(revision), *self.stamp, hash)

    def succeed(self, events: Sequence[Event]) -> None:
        """End the append successfully: its proposals are in the log as `events`."""
        self.events = events
        self._ended = True
        if self._callbacks:
            self._run_callbacks()

    def fail(self, error: BaseException) -> None:
        """End the append with an error: the append is not in the log.

        Only if the error is `OutcomeUnknown`, the append may be in the log.
        """
        self.error = error
        self._ended = True
        self._run_callbacks()

    def _run_callbacks(self) -> None:
        callbacks = self._callbacks
        while callbacks:
            try:
                done = callbacks.pop()
            except IndexError:  # another thread has taken the last waiter
                return
            try:
                done(self)
            except Exception:
                log.exception("append callback failed")

    def result(self, timeout: float | None = None) -> Sequence[Event]:
        """Wait up to `timeout` seconds for the append's events.

        Raises the append's error if it failed, and `TimeoutError` after the timeout.
        """
        if not self._ended:
            # A bare lock is the cheapest way to wait, and only a waiting thread creates one.
            ended = threading.Lock()
            ended.acquire()
            self.add_done_callback(lambda _: ended.release())
            if not ended.acquire(timeout=-1 if timeout is None else timeout):
                raise TimeoutError("the append has not finished yet")
        if self.error is not None:
            raise self.error
        return self.events

    def add_done_callback(self, done: Callable[[PendingAppend], None]) -> None:
        """Call `done(self)` exactly once, when the append has ended.

        If the append has already ended, call `done` immediately.
        """
        self._callbacks.append(done)
        if self._ended:
            self._run_callbacks()
