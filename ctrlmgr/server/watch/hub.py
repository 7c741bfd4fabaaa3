"""The hub: where watchers who have caught up wait, and from where what happens goes out to all of them at once.

Guarantees (the others of W1 to W13 are `watching`'s):
- **One round for all.** When the cacher has got further, the changes are matched and encoded once for each group of
  watchers who asked for the same, and each watcher is written to once, however many changes there were.
- **A round goes on from where it is.** What happens while a round is under way is told at once to those whose turn is
  yet to come, together with what it began with, and to the others in the next, which begins with them. So a change
  reaches everyone within the time of one round, not of the rest of one and another.
- **No watcher waits for another.** A watcher whose connection is full leaves, with its place, before it is written
  more. It costs the others nothing, and a round gives way to other work all the time.
- **In order.** A watcher enters at exactly the revision where the hub stands, so it misses nothing and sees nothing
  twice. What a bookmark says has been sent has been written before it.

A watcher is a cursor over the cacher's changes. While it is behind, its own task moves the cursor (`watching`). Once
it has caught up it enters the hub, which does; it has got to where the hub is unless its group has more to be told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import structlog

from ctrlmgr.api.resource import Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.informer.informer import Change
from ctrlmgr.metrics import WatchMetrics
from ctrlmgr.server.http.framing import chunk
from ctrlmgr.server.watch.board import Board, Group
from ctrlmgr.server.watch.watcher import Parting, Watcher

log = structlog.get_logger(__name__)

_ROUND = 500
"""Revisions that are taken in at once at most, from the first that any watcher is told of, so that a round cannot grow
without bound while the loop was held up."""

_SLICE = 64
"""Writes after which a round lets others have the loop, and looks what has happened."""

_TICK = 0.1
"""Seconds between looks at who is due, at least."""

_NEVER = float("inf")


class Cached(Protocol):
    """What the hub asks of the cacher."""

    revision: Revision

    def changes_after(self, revision: Revision, resource: Resource, limit: int = ...) -> Sequence[Change] | None:
        """Return the changes of one resource, ascending; None if some of them are no longer there."""


class Hub:
    """See the module's docstring; used on the event loop only."""

    def __init__(self, cacher: Cached, *, clock: Clock, rewinds: bool = False) -> None:
        """Tell of the changes that `cacher` takes in from now on.

        `rewinds` says that the log may be taken back: then who knows a revision of the future knows one of the past.
        """
        self.revision: Revision = cacher.revision
        """Every watcher in here has been written everything up to here, or is about to be."""
        self._cacher = cacher
        self._clock = clock
        self._boards: dict[Resource, Board] = {}
        self._ahead: dict[Watcher, None] = {}  # they wait for a revision that is not there yet
        self._work = asyncio.Event()
        self._told: dict[WatchMetrics, int] = {}  # events, to be counted at the end of a round
        self._due_at = _NEVER  # when the timer rings
        self._timer: asyncio.TimerHandle | None = None
        self._rewinds = rewinds
        self._closing: Parting | None = None  # how watchers part from here on

    def advance(self) -> None:
        """Look soon whether the cacher has got further."""
        self._work.set()

    async def run(self) -> None:
        """Pass on what happens until the hub is closed."""
        while not self._closing:
            await self._work.wait()
            self._work.clear()
            self._look()
            while self._due() or self.revision < self._cacher.revision:
                await self._round()
                self._look()

    def close(self, parting: Parting = Parting.CLOSING) -> None:
        """Send all watchers away, now and from now on."""
        self._closing = self._closing or parting
        for group, watcher in self._members():
            watcher.part(self._closing, group.reached(watcher, self.revision))
        for watcher in self._ahead:
            watcher.part(self._closing, watcher.cursor)
        self._work.set()

    async def stay(self, watcher: Watcher) -> Parting:
        """Keep a watcher here and say why it left; it must have caught up with the hub, unless its time is over.

        One that is shown what has to be converted first is told nothing here: it is sent to see for itself when the
        hub has got further. So is one beyond, when the hub gets there.
        """
        if self._closing:
            return self._closing
        if self._rewinds and watcher.cursor > self._cacher.revision:
            return Parting.REWOUND
        if watcher.cursor < self.revision:
            return Parting.ENDED  # its time was over before it had caught up
        watcher.parting = asyncio.get_running_loop().create_future()
        watcher.stream.on_lost(lambda: watcher.part(Parting.GONE, self.revision))
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
        board = self._boards.setdefault(watcher.selection.kind.storage, Board())
        group = board.add(watcher)
        try:
            yield
        finally:
            board.remove(watcher, group)

    def _members(self) -> Iterator[tuple[Group, Watcher]]:
        for board in self._boards.values():
            yield from board.members()

    def _due(self) -> list[tuple[Board, Group]]:
        return [(board, group) for board in self._boards.values() for group in board.due()]

    def _look(self) -> None:
        self._take_in()
        self._release()
        self._attend()

    async def _round(self) -> None:
        """Write once to each watcher who has been told less than there is."""
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
        """Have the groups note what happened, and stand there."""
        before = self.revision
        if before >= self._cacher.revision:
            return
        found = [
            (board, self._cacher.changes_after(before, resource, _ROUND)) for resource, board in self._boards.items()
        ]
        newest = self._cacher.revision
        # Revisions of which no watcher here is told may be many, as where they were recorded: passed over at once.
        first = min((changes[0].revision for _, changes in found if changes), default=newest)
        self.revision = min(newest, first + _ROUND - 1)
        for board, changes in found:
            if changes is None:
                for group, watcher in board.members():
                    watcher.part(Parting.BEHIND, group.reached(watcher, before))
            elif changes:
                board.note([change for change in changes if change.revision <= self.revision])

    def _tell(self, board: Board, group: Group, watcher: Watcher) -> None:
        """Write to a watcher what its group knows and it does not."""
        if not watcher.is_here:
            del group.watchers[watcher]  # it has been told to leave, and has not come round to it yet
            return
        try:
            pieces = group.pieces(watcher.cursor, board.made)
        except Exception:
            log.exception("a change cannot be shown", kind=group.selection.kind.name)
            for each in group.watchers:
                each.part(Parting.FAILED, group.reached(each, self.revision))
            group.watchers.clear()
            return
        stream = watcher.stream
        for piece in pieces:
            if stream.paused:
                watcher.part(Parting.BEHIND, watcher.cursor)
                del group.watchers[watcher]
                return
            stream.write(piece.chunk)
            watcher.cursor = piece.revision
            self._told[watcher.metrics] = self._told.get(watcher.metrics, 0) + piece.events
        watcher.cursor = self.revision
        group.watchers.move_to_end(watcher)
        _move_on(watcher, self.revision)

    def _count(self) -> None:
        for metrics, events in self._told.items():
            metrics.events.inc(events)
        self._told.clear()

    def _release(self) -> None:
        """Send those who waited for a revision to catch up with the hub."""
        for watcher in self._ahead:
            if watcher.awaits <= self.revision:
                watcher.part(Parting.REACHED, watcher.cursor)

    def _attend(self) -> None:
        """See to those to whom something is due, and have the timer ring for the next."""
        now = self._clock.monotonic()
        if now < self._due_at:
            return
        for watcher in self._ahead:
            if watcher.selection.kind.calls_out and watcher.cursor == self.revision:
                self._attend_to(watcher, now, watcher.cursor)
            elif watcher.ends_at <= now:
                watcher.part(Parting.ENDED, watcher.cursor)
        for group, watcher in [each for each in self._members() if each[1].due_at <= now]:
            self._attend_to(watcher, now, group.reached(watcher, self.revision))
        self._due_at = _NEVER
        self._ring_by(min((watcher.due_at for _, watcher in self._members()), default=_NEVER))
        self._ring_by(min((_due(watcher) for watcher in self._ahead), default=_NEVER))

    def _attend_to(self, watcher: Watcher, now: float, reached: Revision) -> None:
        # Who has more to be told is told that first, and the timer rings again.
        if reached == self.revision and watcher.take_bookmark(now) and not watcher.stream.paused and watcher.is_here:
            watcher.stream.write(chunk(watcher.presentation.bookmark(reached)))
            _move_on(watcher, reached)
        if watcher.ends_at <= now:
            watcher.part(Parting.ENDED, reached)

    def _ring_by(self, when: float) -> None:
        """Have `_attend` look at the latest at `when`, but not at once."""
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
    """Say when something is due to a watcher that is told nothing here."""
    return watcher.due_at if watcher.selection.kind.calls_out else watcher.ends_at


def _move_on(watcher: Watcher, revision: Revision) -> None:
    """Have a watcher go on with what follows its first frame, where that is another presentation: in another group."""
    following = watcher.presentation.following
    if following is not watcher.presentation:
        watcher.presentation = following
        watcher.part(Parting.REACHED, revision)
