"""The input of all checks: the history, the log, and the revisions that clients knew at each point in time."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import NamedTuple

from tests.robustness.histories.history import BOOKMARK, ERROR, SECOND, Delivery, Fault, History, Watch
from tests.robustness.histories.truth import Truth

SLACK = SECOND
"""Seconds after the end of a fault in which the fault may still have effects."""

DISRUPTIONS = frozenset({"stop", "kill", "database"})
"""Types of faults that may end streams and fail requests."""


class Stream(NamedTuple):
    """A watch stream, split into the initial state, the revision of this state, and the later events."""

    watch: Watch
    initial: list[Delivery]
    start: int | None
    """The revision of the initial state; None means that the watch ended before this revision was known."""
    live: list[Delivery]
    """Events and bookmarks."""

    @property
    def events(self) -> list[Delivery]:
        return [each for each in self.live if each.type != BOOKMARK]

    @property
    def reached(self) -> int:
        """The revision up to which the stream has sent all events."""
        return self.live[-1].revision if self.live else self.start or 0


class Evidence:
    """The history of a run together with its log; see the docstring of the module."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.truth = Truth(history)

    def known_before(self, moment: int) -> int:
        """Return the newest revision that a client had received before a point in time."""
        moments, revisions = self._told
        index = bisect_left(moments, moment)
        return revisions[index - 1] if index else 0

    @cached_property
    def _told(self) -> tuple[list[int], list[int]]:
        told: list[tuple[int, int]] = []
        for write in self.history.writes:
            if write.acknowledged:
                told += [(write.returned, event.revision) for event in self.truth.of_write.get(write.id, [])]
        for read in self.history.reads:
            told += [(page.returned, page.revision) for page in read.pages if page.code == 200]
        for watch in self.history.watches:
            told += [(each.at, each.revision) for each in watch.deliveries if each.type != ERROR]
        told.sort()
        newest, revisions = 0, []
        for _, revision in told:
            newest = max(newest, revision)
            revisions.append(newest)
        return [moment for moment, _ in told], revisions

    def floor_at(self, moment: int) -> int:
        """Return the revision up to which events may have been compacted at a point in time."""
        return max((each.before for each in self.history.compactions if each.called < moment), default=0)

    def faults(self, server: int, began: int, ended: int, kinds: frozenset[str] = DISRUPTIONS) -> list[Fault]:
        """Return the faults of a server, or of the database, between two points in time."""
        return [
            fault
            for fault in self.history.faults
            if fault.kind in kinds and fault.server in (server, -1) and fault.began <= ended + SLACK
            if began <= fault.ended + SLACK
        ]

    @cached_property
    def streams(self) -> list[Stream]:
        return [self._apart(watch) for watch in self.history.watches if watch.code == 200]

    def _apart(self, watch: Watch) -> Stream:
        told = [each for each in watch.deliveries if each.type != ERROR]
        if watch.initial:
            return _marked(watch, told)
        if watch.initial is None and watch.version in ("", "0"):
            return self._unmarked(watch, told)
        # Without a revision, a watch that requests no initial events may begin anywhere.
        start = int(watch.version or "0")
        return Stream(watch, [], start or (told[0].revision - 1 if told else None), told)

    def _unmarked(self, watch: Watch, told: list[Delivery]) -> Stream:
        """Find the end of the initial events, which the stream does not mark: these events must equal the state at some
        point in time.
        """
        longest = next((at for at, each in enumerate(told) if each.type != "ADDED"), len(told))
        for count in range(longest, -1, -1):
            start = self._moment(watch, told, count)
            if start is not None:
                return Stream(watch, told[:count], start, told[count:])
        return Stream(watch, told[:longest], None, told[longest:])

    def _moment(self, watch: Watch, told: list[Delivery], count: int) -> int | None:
        """Return a revision whose state consists of the first `count` events, while all other events are later."""
        seen = [(each.namespace, each.name, each.revision, each.digest) for each in told[:count]]
        least = max([each[2] for each in seen], default=0)
        if not watch.version:
            least = max(least, self.known_before(watch.called))
        if told[count:]:  # the moment before that event, or of that event if it is a bookmark
            candidates = [told[count].revision - (told[count].type != BOOKMARK)]
        else:
            changes = self.truth.changes(watch.resource, least, self.truth.last_before(watch.ended_at))
            candidates = [least, *(change.revision for change in changes)]
        for revision in candidates:
            if revision >= least and self.truth.state(watch.resource, watch.selection, revision) == seen:
                return revision
        return None


def _marked(watch: Watch, told: list[Delivery]) -> Stream:
    end = next((at for at, each in enumerate(told) if each.initial_end), None)
    if end is None:
        return Stream(watch, told, None, [])
    return Stream(watch, told[:end], told[end].revision, told[end + 1 :])
