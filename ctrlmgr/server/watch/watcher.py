"""Defines one watch in progress: its selection, its cursor, and its timers."""

from __future__ import annotations

import asyncio
from enum import Enum

from ctrlmgr.api.resource import Revision
from ctrlmgr.engine.watch_cache.watch import Selection
from ctrlmgr.http.response_stream import Stream
from ctrlmgr.metrics import WatchMetrics
from ctrlmgr.server.presenting.presentation import Presentation

BOOKMARK_EVERY = 60.0
"""Seconds between bookmarks (apiserver `pkg/storage/cacher/cacher.go`, defaultBookmarkFrequency)."""

BOOKMARK_BEFORE_END = 2.0
"""Seconds before the end of a watch at which the last bookmark is sent.

Because of the last bookmark, the client's next watch starts at a recent revision.
"""


class DisconnectReason(Enum):
    """The reason why a watcher leaves the hub."""

    BEHIND = "the watcher did not read its events, or the cache no longer has the next ones"
    REACHED = "the hub reached the revision that the watcher waited for"
    REWOUND = "the position in the recording moved backwards"
    FAILED = "a change cannot be encoded for the watcher"
    ENDED = "the watch reached its timeout"
    GONE = "the client disconnected"
    CLOSING = "the server is stopping"


class Watcher:
    """One watch in progress. Outside the hub, the position of a watcher is its cursor.

    Inside the hub, the position of a watcher is the hub's revision.
    """

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
        """Create a watch from `cursor` until `ends_at`, with bookmarks from `bookmarks_from` on (monotonic seconds).

        If `bookmarks_from` is None, the watch gets no bookmarks.
        """
        self.stream = stream
        self.selection = selection
        self.presentation = presentation
        """The presentation of the watch's next frame."""
        self.cursor = cursor
        """The revision up to which all events have been written to the client."""
        self.awaits: Revision = 0
        """The revision at which the watcher leaves the hub; set only if the watcher waits for a revision beyond the
        hub's.
        """
        self.ends_at = ends_at
        self.metrics = metrics
        self.parting: asyncio.Future[DisconnectReason] | None = None
        """The reason why the watcher must leave the hub; None if it may stay."""
        self._bookmark_at = float("inf")
        if bookmarks_from is not None:
            self._schedule_bookmark(bookmarks_from)

    @property
    def due_at(self) -> float:
        """The monotonic time in seconds at which the next bookmark is due or the watch ends, whichever is earlier."""
        return min(self.ends_at, self._bookmark_at)

    def take_bookmark(self, now: float) -> bool:
        """Return whether a bookmark is due; if so, schedule the next bookmark."""
        if now < self._bookmark_at:
            return False
        self._schedule_bookmark(now)
        return True

    def _schedule_bookmark(self, now: float) -> None:
        before_end = self.ends_at - BOOKMARK_BEFORE_END
        self._bookmark_at = now + BOOKMARK_EVERY if before_end <= now else min(now + BOOKMARK_EVERY, before_end)

    def part(self, reason: DisconnectReason, cursor: Revision) -> None:
        """Let the watcher leave the hub at `cursor`; further calls of `part` have no effect."""
        if self.parting is not None and not self.parting.done():
            self.cursor = cursor
            self.parting.set_result(reason)

    @property
    def is_active(self) -> bool:
        """Return whether the watcher is in the hub and does not have to leave."""
        return self.parting is not None and not self.parting.done()
