"""The hub: where watchers who have caught up wait, and from where what happens goes out to all of them at once.

Guarantees (the others of W1 to W13 are `watching`'s):
- **One pass for all.** When the cacher has got further, the changes are matched and encoded once for each group of
  watchers who asked for the same, and each watcher is written to once, however many changes there were.
- **No watcher waits for another.** A watcher whose connection is full leaves, with its place, before it is written
  more. It costs the others nothing, and a pass gives way to other work all the time.
- **In order.** A watcher enters at exactly the revision where the hub stands, so it misses nothing and sees nothing
  twice. Bookmarks and ends come between passes: what a bookmark says has been sent has been written before it.

A watcher is a cursor over the cacher's changes. While it is behind, its own task moves the cursor (`watching`). Once
it has caught up it enters the hub, and has no cursor of its own until it leaves: the hub's revision is its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from ctrlmgr.api.resource import Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.informer.informer import Change
from ctrlmgr.server.http.framing import chunk
from ctrlmgr.server.watch.board import Board, Delivery
from ctrlmgr.server.watch.watcher import Parting, Watcher

_PASS = 500
"""Revisions that one pass covers at most, from the first that any watcher is told of, so that it cannot grow without
bound while the loop was held up."""

_SLICE = 64
"""Writes after which a pass lets others have the loop."""

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
            while self.revision < self._cacher.revision:
                await self._pass()
            self._release()
            self._attend()

    def close(self, parting: Parting = Parting.CLOSING) -> None:
        """Send all watchers away, now and from now on."""
        self._closing = self._closing or parting
        for watcher in [*self._watchers(), *self._ahead]:
            watcher.part(self._closing, self.revision)
        self._work.set()

    async def stay(self, watcher: Watcher) -> Parting:
        """Keep a watcher here and say why it left; its cursor must be at the hub's revision, or beyond.

        One that is shown what has to be converted first is told nothing here: it is sent to see for itself when the
        hub has got further. So is one beyond, when the hub gets there.
        """
        if self._closing:
            return self._closing
        if self._rewinds and watcher.cursor > self._cacher.revision:
            return Parting.REWOUND
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

    def _watchers(self) -> Iterator[Watcher]:
        for board in self._boards.values():
            yield from board.watchers()

    async def _pass(self) -> None:
        before, writes = self.revision, 0
        for delivery in self._deliveries(before):
            _count(delivery)
            for watcher in delivery.watchers:
                self._deliver(delivery, watcher, before)
                writes += 1
                if writes % _SLICE == 0:
                    await asyncio.sleep(0)

    def _deliveries(self, before: Revision) -> list[Delivery]:
        """Decide at one moment what every watcher is written: one that enters during the pass has it already."""
        found = [
            (board, self._cacher.changes_after(before, resource, _PASS)) for resource, board in self._boards.items()
        ]
        newest = self._cacher.revision
        # Revisions of which no watcher here is told may be many, as where they were recorded: passed over at once.
        first = min((changes[0].revision for _, changes in found if changes), default=newest)
        self.revision = min(newest, first + _PASS - 1)
        deliveries: list[Delivery] = []
        for board, changes in found:
            if changes is None:
                for watcher in board.watchers():
                    watcher.part(Parting.BEHIND, before)
            elif changes:
                deliveries += board.deliveries([change for change in changes if change.revision <= self.revision])
        return deliveries

    def _deliver(self, delivery: Delivery, watcher: Watcher, before: Revision) -> None:
        if not watcher.is_here:
            return  # it has left since the pass began
        stream, written = watcher.stream, before
        for piece in delivery.pieces:
            if stream.paused:
                watcher.part(Parting.BEHIND, written)
                break
            stream.write(piece.chunk)
            written = piece.revision
        if written > before:
            _move_on(watcher, self.revision)

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
                self._attend_to(watcher, now)
            elif watcher.ends_at <= now:
                watcher.part(Parting.ENDED, watcher.cursor)
        for watcher in self._watchers():
            if watcher.due_at <= now:
                self._attend_to(watcher, now)
        self._due_at = _NEVER
        self._ring_by(min((watcher.due_at for watcher in self._watchers()), default=_NEVER))
        self._ring_by(min((_due(watcher) for watcher in self._ahead), default=_NEVER))

    def _attend_to(self, watcher: Watcher, now: float) -> None:
        if watcher.take_bookmark(now) and not watcher.stream.paused and watcher.is_here:
            watcher.stream.write(chunk(watcher.presentation.bookmark(self.revision)))
            _move_on(watcher, self.revision)
        if watcher.ends_at <= now:
            watcher.part(Parting.ENDED, self.revision)

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


def _count(delivery: Delivery) -> None:
    events = sum(piece.events for piece in delivery.pieces)
    delivery.watchers[0].metrics.events.inc(events * len(delivery.watchers))
