"""One watch in progress: who watches what, how far they have got, and when something is due to them."""

from __future__ import annotations

import asyncio
from enum import Enum

from ctrlmgr.api.resource import Revision
from ctrlmgr.engine.watch import Selection
from ctrlmgr.metrics import WatchMetrics
from ctrlmgr.server.http.stream import Stream
from ctrlmgr.server.presenting.presentation import Presentation

BOOKMARK_EVERY = 60.0
"""Seconds between bookmarks (apiserver `pkg/storage/cacher/cacher.go`, defaultBookmarkFrequency)."""

BOOKMARK_BEFORE_END = 2.0
"""Seconds before a watch ends at which it gets its last one, so that the next begins as near to the present."""


class Parting(Enum):
    """Why a watcher leaves the hub."""

    BEHIND = "it has not read what it was sent, or the cache has lost what comes next"
    REACHED = "what it waited for is there"
    REWOUND = "what it has been told is no more: the log has been taken back"
    FAILED = "what happened cannot be shown to it"
    ENDED = "its time is over"
    GONE = "its client has gone away"
    CLOSING = "the server stops"


class Watcher:
    """One watch. Its cursor counts while it is not in the hub; in there, the hub's revision is its own."""

    __slots__ = (
        "_bookmark_at",
        "awaits",
        "cursor",
        "ends_at",
        "metrics",
        "parting",
        "presentation",
        "selection",
        "stream",
    )

    def __init__(
        self,
        stream: Stream,
        selection: Selection,
        presentation: Presentation,
        cursor: Revision,
        *,
        ends_at: float,
        bookmarks_from: float | None,
        metrics: WatchMetrics,
    ) -> None:
        """Watch from `cursor` until `ends_at`, with bookmarks from `bookmarks_from` on if at all (both monotonic)."""
        self.stream = stream
        self.selection = selection
        self.presentation = presentation
        """What its next frame is made with."""
        self.cursor = cursor
        """Everything up to here has been written to it."""
        self.awaits: Revision = 0
        """Where the hub has to be for it to be of use there again: it has no place among those who are told there."""
        self.ends_at = ends_at
        self.metrics = metrics
        self.parting: asyncio.Future[Parting] | None = None
        """What it waits for in the hub."""
        self._bookmark_at = float("inf")
        if bookmarks_from is not None:
            self._schedule_bookmark(bookmarks_from)

    @property
    def due_at(self) -> float:
        """When something is due to it, even if nothing happens."""
        return min(self.ends_at, self._bookmark_at)

    def take_bookmark(self, now: float) -> bool:
        """Say whether a bookmark is due, and if so when the next one is."""
        if now < self._bookmark_at:
            return False
        self._schedule_bookmark(now)
        return True

    def _schedule_bookmark(self, now: float) -> None:
        before_end = self.ends_at - BOOKMARK_BEFORE_END
        self._bookmark_at = now + BOOKMARK_EVERY if before_end <= now else min(now + BOOKMARK_EVERY, before_end)

    def part(self, reason: Parting, cursor: Revision) -> None:
        """Have it leave the hub, having been written everything up to `cursor`; the first reason counts."""
        if self.parting is not None and not self.parting.done():
            self.cursor = cursor
            self.parting.set_result(reason)

    @property
    def is_here(self) -> bool:
        """Whether it is in the hub and has not been told to leave."""
        return self.parting is not None and not self.parting.done()
