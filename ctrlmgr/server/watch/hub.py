"""Sends each change to all watchers that have caught up.

Guarantees (W1 to W13 also include the guarantees in the docstring of `watching`):
- **One round for all.** When the cache advances, its changes are matched and encoded once per group of watchers with
  the same selection and presentation. Each watcher receives one write per round, even if there are many changes.
- **Rounds overlap.** If a change happens during a round, the watchers that the round has not reached yet receive the
  change in this round. All other watchers receive the change in the next round. Therefore a change reaches all watchers
  within the duration of one round.
- **Watchers are independent.** If a watcher's connection accepts no more bytes, the watcher leaves the hub, and
  therefore does not delay other watchers. During a round, the event loop regularly runs other tasks.
- **In order.** A watcher enters the hub at exactly the hub's revision, so the watcher misses no event and receives no
  event twice. The hub writes a bookmark after all events up to the bookmark's revision.

A watcher is a cursor in the sequence of the cache's changes. While a watcher is behind the hub, its own task moves its
cursor (`watching`). Once a watcher has caught up, it enters the hub; from then on, the hub moves the cursor. In the
hub, a watcher has received all events up to the hub's revision, unless its group has pending events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import structlog

from ctrlmgr.api.resource import Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.http.framing import chunk
from ctrlmgr.informer.informer import Change
from ctrlmgr.metrics import WatchMetrics
from ctrlmgr.server.watch.resource_watchers import Group, ResourceWatchers
from ctrlmgr.server.watch.watcher import DisconnectReason, Watcher

log = structlog.get_logger(__name__)

_ROUND = 500
"""Maximum number of revisions in one round, counted from the first revision that a watcher must receive.

This maximum limits the duration of a round after the event loop was blocked.
"""

_SLICE = 64
"""Number of writes after which a round yields to other tasks, and reads new changes."""

_TICK = 0.1
"""Minimum seconds between two checks of the watchers' timers."""

_NEVER = float("inf")


class Cached(Protocol):
    """The interface of the cacher that the hub uses."""

    revision: Revision

    def changes_after(self, revision: Revision, resource: Resource, limit: int = ...) -> Sequence[Change] | None:
        """Return the changes of one resource, ascending; None if the cache no longer has all of them."""


class Hub:
    """Sends each change to all watchers that have caught up. Used on the event loop's thread only."""

    def __init__(self, cacher: Cached, *, clock: Clock, rewinds: bool = False) -> None:
        """Create a hub that sends the changes that `cacher` applies from now on.

        `rewinds` says whether the log can be reset to an earlier revision. If the log is reset, a watcher beyond the
        newest revision has received events that no longer exist, so its watch ends.
        """
        self.revision: Revision = cacher.revision
        """The revision up to which all events have been sent to every watcher in the hub, or are pending for the
        watcher.
        """
        self._cacher = cacher
        self._clock = clock
        self._boards: dict[Resource, ResourceWatchers] = {}
        self._ahead: dict[Watcher, None] = {}  # watchers that wait for a later revision
        self._work = asyncio.Event()
        self._sent_counts: dict[
            WatchMetrics, int
        ] = {}  # number of events sent, added to the metrics at the end of a round
        self._due_at = _NEVER  # the time at which the timer fires
        self._timer: asyncio.TimerHandle | None = None
        self._rewinds = rewinds
        self._closing: DisconnectReason | None = None  # the reason with which all watchers leave from now on

    def advance(self) -> None:
        """Schedule a check whether the cache has new changes."""
        self._work.set()

    async def run(self) -> None:
        """Send changes to the watchers until the hub is closed."""
        while not self._closing:
            await self._work.wait()
            self._work.clear()
            self._look()
            while self._due() or self.revision < self._cacher.revision:
                await self._round()
                self._look()

    def close(self, parting: DisconnectReason = DisconnectReason.CLOSING) -> None:
        """End all watches; watches that start later end immediately."""
        self._closing = self._closing or parting
        for group, watcher in self._members():
            watcher.part(self._closing, group.reached(watcher, self.revision))
        for watcher in self._ahead:
            watcher.part(self._closing, watcher.cursor)
        self._work.set()

    async def stay(self, watcher: Watcher) -> DisconnectReason:
        """Keep a watcher in the hub until the watcher must leave; return the reason.

        The watcher must have caught up, or the watcher's time must have ended. The hub does not send events that a
        webhook must convert; a watcher that needs such events leaves when the hub advances. A watcher whose cursor is
        beyond the hub's revision leaves when the hub reaches the cursor.
        """
        if self._closing:
            return self._closing
        if self._rewinds and watcher.cursor > self._cacher.revision:
            return DisconnectReason.REWOUND
        if watcher.cursor < self.revision:
            return DisconnectReason.ENDED  # the watch ended before it caught up
        watcher.parting = asyncio.get_running_loop().create_future()
        watcher.stream.on_lost(lambda: watcher.part(DisconnectReason.GONE, self.revision))
        with self._admitted(watcher):
            self._ring_by(watcher.due_at)
            return await watcher.parting

    @contextmanager
    def _admitted(self, watcher: Watcher) -> Iterator[None]:
        converts = watcher.selection.kind.calls_out
        if converts or watcher.cursor > self.revision:
            watcher.awaits = max(watcher.cursor, self.revision + 1) if converts else watcher.cursor
            self._ahead[watcher] = None
            try:
                yield
            finally:
                del self._ahead[watcher]
            return
        board = self._boards.setdefault(watcher.selection.kind.storage, ResourceWatchers())
        group = board.add(watcher)
        try:
            yield
        finally:
            board.remove(watcher, group)

    def _members(self) -> Iterator[tuple[Group, Watcher]]:
        for board in self._boards.values():
            yield from board.members()

    def _due(self) -> list[tuple[ResourceWatchers, Group]]:
        return [(board, group) for board in self._boards.values() for group in board.due()]

    def _look(self) -> None:
        self._take_in()
        self._release()
        self._attend()

    async def _round(self) -> None:
        """Write the pending events to each watcher, in one write per watcher."""
        since, writes = self.revision, 0
        for board, group in self._due():
            for _ in range(len(group.watchers)):
                watcher = group.next_due()
                if watcher is None:
                    break
                self._tell(board, group, watcher)
                writes += 1
                if writes % _SLICE == 0:
                    await asyncio.sleep(0)
                    if self.revision - since < _ROUND:
                        self._take_in()
        self._count()

    def _take_in(self) -> None:
        """Store new changes in the groups, and advance the hub's revision."""
        before = self.revision
        if before >= self._cacher.revision:
            return
        found = [
            (board, self._cacher.changes_after(before, resource, _ROUND)) for resource, board in self._boards.items()
        ]
        newest = self._cacher.revision
        # Many revisions may have no watcher, for example in a recording; these revisions are skipped at once.
        first = min((changes[0].revision for _, changes in found if changes), default=newest)
        self.revision = min(newest, first + _ROUND - 1)
        for board, changes in found:
            if changes is None:
                for group, watcher in board.members():
                    watcher.part(DisconnectReason.BEHIND, group.reached(watcher, before))
            elif changes:
                board.note([change for change in changes if change.revision <= self.revision])

    def _tell(self, board: ResourceWatchers, group: Group, watcher: Watcher) -> None:
        """Write a watcher's pending events."""
        if not watcher.is_active:
            del group.watchers[watcher]  # the watcher is leaving, but its task has not removed it yet
            return
        try:
            pieces = group.pieces(watcher.cursor, board.made)
        except Exception:
            log.exception("encoding change for watchers failed", kind=group.selection.kind.name)
            for each in group.watchers:
                each.part(DisconnectReason.FAILED, group.reached(each, self.revision))
            group.watchers.clear()
            return
        stream = watcher.stream
        for piece in pieces:
            if stream.paused:
                watcher.part(DisconnectReason.BEHIND, watcher.cursor)
                del group.watchers[watcher]
                return
            stream.write(piece.chunk)
            watcher.cursor = piece.revision
            self._sent_counts[watcher.metrics] = self._sent_counts.get(watcher.metrics, 0) + piece.events
        watcher.cursor = self.revision
        group.watchers.move_to_end(watcher)
        _move_on(watcher, self.revision)

    def _count(self) -> None:
        for metrics, events in self._sent_counts.items():
            metrics.events.inc(events)
        self._sent_counts.clear()

    def _release(self) -> None:
        """Remove the watchers that waited for a revision that the hub has reached."""
        for watcher in self._ahead:
            if watcher.awaits <= self.revision:
                watcher.part(DisconnectReason.REACHED, watcher.cursor)

    def _attend(self) -> None:
        """Send due bookmarks, end the watches whose time has ended, and set the timer for the next bookmark or end."""
        now = self._clock.monotonic()
        if now < self._due_at:
            return
        for watcher in self._ahead:
            if watcher.selection.kind.calls_out and watcher.cursor == self.revision:
                self._attend_to(watcher, now, watcher.cursor)
            elif watcher.ends_at <= now:
                watcher.part(DisconnectReason.ENDED, watcher.cursor)
        for group, watcher in [each for each in self._members() if each[1].due_at <= now]:
            self._attend_to(watcher, now, group.reached(watcher, self.revision))
        self._due_at = _NEVER
        self._ring_by(min((watcher.due_at for _, watcher in self._members()), default=_NEVER))
        self._ring_by(min((_due(watcher) for watcher in self._ahead), default=_NEVER))

    def _attend_to(self, watcher: Watcher, now: float, reached: Revision) -> None:
        # Pending events must be sent before a bookmark; the timer fires again after the pending events.
        if reached == self.revision and watcher.take_bookmark(now) and not watcher.stream.paused and watcher.is_active:
            watcher.stream.write(chunk(watcher.presentation.bookmark(reached)))
            _move_on(watcher, reached)
        if watcher.ends_at <= now:
            watcher.part(DisconnectReason.ENDED, reached)

    def _ring_by(self, when: float) -> None:
        """Set the timer to fire no later than `when`, but after `_TICK` seconds at the earliest."""
        if when >= self._due_at:
            return
        self._due_at = when
        if self._timer is not None:
            self._timer.cancel()
        delay = max(when - self._clock.monotonic(), _TICK)
        self._timer = asyncio.get_running_loop().call_later(delay, self._ring)

    def _ring(self) -> None:
        self._due_at = -_NEVER
        self._work.set()


def _due(watcher: Watcher) -> float:
    """For a watcher that waits for a revision, return the time at which its bookmark or its end is due."""
    return watcher.due_at if watcher.selection.kind.calls_out else watcher.ends_at


def _move_on(watcher: Watcher, revision: Revision) -> None:
    """Remove a watcher from the hub if its presentation changes after its first frame.

    The watcher then enters the hub again, in another group.
    """
    following = watcher.presentation.following
    if following is not watcher.presentation:
        watcher.presentation = following
        watcher.part(DisconnectReason.REACHED, revision)
