"""An append on its way into the log: what was asked, stamped once, and how it ends.

Guarantees: it ends exactly once, with events or with an error; whoever waits is woken once; the stamps (time,
append id) are made when it is submitted, so trying it again writes the same bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache

from ctrlmgr.errors import BadRequest
from ctrlmgr.eventlog.chain import content_digest
from ctrlmgr.eventlog.event import Author, Cause, Event, EventType, Fence, Proposal

Place = tuple[str, str, str]
"""Where an object lives: resource, namespace and name, as the database has them."""

resource_name = lru_cache(maxsize=1024)(str)


class PendingAppend:
    """One append; implements `log.Appending`."""

    __slots__ = (
        "_callbacks",
        "_done",
        "_ended",
        "append_id",
        "author",
        "cause",
        "digests",
        "error",
        "events",
        "fence",
        "places",
        "proposals",
        "reconcile",
        "recorded_at",
        "size",
        "term",
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
    ) -> None:
        """Stamp an append with its time (µs since 1970) and its id (positive, 63 bits).

        Raises `BadRequest` when there is nothing to append or an ADDED proposal expects a revision.
        """
        if not proposals:
            raise BadRequest("an append needs at least one proposal")
        self.proposals = proposals
        self.author = author
        self.fence = fence
        self.cause = cause
        self.term = fence.term if fence else 0  # what its events carry
        self.reconcile = cause.id if cause else 0
        self.recorded_at = recorded_at
        self.append_id = append_id
        self.places: list[Place] = []
        self.digests: list[bytes] = []
        self.size = 0
        for proposal in proposals:
            self._add(proposal)
        self.events: Sequence[Event] = ()
        self.error: BaseException | None = None
        # Held until the append has ended: a bare lock is the cheapest thing one thread can wait on.
        self._done = threading.Lock()
        self._done.acquire()
        self._ended = False
        self._callbacks: list[Callable[[PendingAppend], None]] = []

    def _add(self, proposal: Proposal) -> None:
        obj = proposal.object
        metadata = obj.metadata
        if proposal.type is EventType.ADDED and proposal.expected:
            raise BadRequest(f'{obj.resource} "{metadata.name}" cannot be created at a revision')
        place = (resource_name(obj.resource), metadata.namespace, metadata.name)
        self.places.append(place)
        self.size += len(obj.body)
        self.digests.append(
            content_digest(
                proposal.type,
                *place,
                obj.body,
                recorded_at=self.recorded_at,
                actor=self.author.actor,
                user_agent=self.author.user_agent,
                term=self.term,
                reconcile=self.reconcile,
                append_id=self.append_id,
            )
        )

    def event(self, index: int, revision: int, previous: int, hash: bytes) -> Event:
        """Return proposal number `index` as the event it became."""
        proposal = self.proposals[index]
        return Event(
            revision,
            previous,
            proposal.type,
            proposal.object.at(revision),
            self.recorded_at,
            self.author.actor,
            self.author.user_agent,
            self.term,
            self.reconcile,
            self.append_id,
            hash,
        )

    def succeed(self, events: Sequence[Event]) -> None:
        """End it: its proposals are in the log as `events`."""
        self.events = events
        self._end()

    def fail(self, error: BaseException) -> None:
        """End it: it is not in the log (or, with `OutcomeUnknown`, nobody knows)."""
        self.error = error
        self._end()

    def _end(self) -> None:
        self._ended = True
        self._done.release()
        if self._callbacks:
            self._run_callbacks()

    def _run_callbacks(self) -> None:
        # Popping is atomic, so a callback that races with the end of the append still runs exactly once.
        with suppress(IndexError):
            while True:
                self._callbacks.pop()(self)

    def result(self, timeout: float | None = None) -> Sequence[Event]:
        """Wait up to `timeout` seconds for its events; raises what it ended with, or `TimeoutError`."""
        if not self._done.acquire(timeout=-1 if timeout is None else timeout):
            raise TimeoutError("the append is still under way")
        self._done.release()  # the next one who asks finds it open
        if self.error is not None:
            raise self.error
        return self.events

    def add_done_callback(self, done: Callable[[PendingAppend], None]) -> None:
        """Call `done(self)` once it has ended, at once if it has; exactly once either way."""
        self._callbacks.append(done)
        if self._ended:
            self._run_callbacks()
