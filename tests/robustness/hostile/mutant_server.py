"""Runs `ctrlmgr` with one known fault, which the environment variable MUTANT names, to test the checks.

Each fault has occurred in systems of this kind; the module injects it by replacing one function of the running program.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ctrlmgr import cli
from ctrlmgr.api.object import Object
from ctrlmgr.engine.verbs import read_verbs
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.engine.watch_cache.resource_store import ResourceStore
from ctrlmgr.engine.watch_cache.watch import MODIFIED, Selection
from ctrlmgr.errors import Expired
from ctrlmgr.eventlog import sqllog
from ctrlmgr.informer.informer import Change
from ctrlmgr.server.event_loop_driver import Driver
from ctrlmgr.server.presenting.presentation import Plain
from ctrlmgr.server.watch.follower import Follower
from ctrlmgr.server.watch.hub import Hub
from ctrlmgr.server.watch.watching import Watches


class Mutant(NamedTuple):
    """A function to replace, and its replacement, which gets the original as its first argument."""

    owner: object
    name: str
    replacement: Callable[..., Any]

    def apply(self) -> None:
        original = getattr(self.owner, self.name)

        def replaced(*arguments: Any, **options: Any) -> Any:
            return self.replacement(original, *arguments, **options)

        setattr(self.owner, self.name, replaced)


MUTANTS: dict[str, Mutant] = {}
SOUND = "sound"
"""The value of MUTANT that stands for no fault."""


def mutant(owner: object, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        MUTANTS[function.__name__] = Mutant(owner, name, function)
        return function

    return register


@mutant(Follower, "catch_up")
async def reads_do_not_ask_the_log(original: Any, self: Any) -> None:
    """Fault: a read of the newest state returns the state of the cache."""


@mutant(Cacher, "changes_after")
def watches_begin_where_the_cache_does(original: Any, self: Any, revision: int, *rest: Any) -> Sequence[Change] | None:
    """Fault: events that the cache has dropped are omitted without an error (etcd #18089)."""
    changes: Sequence[Change] | None = original(self, max(revision, self.oldest), *rest)
    return changes


@mutant(sqllog, "_floor")
def compaction_is_silent(original: Any, *rest: Any) -> int:
    """Fault: reads do not report that requested events have been compacted."""
    return 0


@mutant(Watches, "_read")
async def whatever_is_old_has_expired(original: Any, self: Any, watcher: Any) -> None:
    """Fault: events that the cache has dropped are not read from the log."""
    raise Expired(watcher.cursor, watcher.cursor)


@mutant(Plain, "bookmark")
def bookmarks_promise_too_much(original: Any, self: Any, revision: int, **options: Any) -> bytes:
    """Fault: a bookmark has the revision of an event that is sent after the bookmark (etcd #20221)."""
    frame: bytes = original(self, revision + 1, **options)
    return frame


@mutant(Watches, "_overtake")
async def watches_join_late(original: Any, self: Any, watcher: Any) -> None:
    """Fault: a watch begins with future events, regardless of the requested revision."""
    watcher.cursor = max(watcher.cursor, self._hub.revision)


@mutant(Watches, "_cached")
def watches_repeat_an_event(original: Any, self: Any, watcher: Any, goal: int) -> Any:
    """Fault: when a watch continues, the last event is sent again."""
    watcher.cursor -= 1
    return original(self, watcher, goal)


@mutant(Selection, "transition")
def leaving_a_selection_is_not_told(original: Any, self: Any, change: Change) -> tuple[str, Object] | None:
    """Fault: no event is sent when an object stops matching the selection of a watch."""
    event: tuple[str, Object] | None = original(self, change)
    return None if event and event[0] == "DELETED" and change.new is not None else event


@mutant(Selection, "transition")
def entering_a_selection_is_a_change(original: Any, self: Any, change: Change) -> tuple[str, Object] | None:
    """Fault: when an object begins to match the selection of a watch, the event is MODIFIED instead of ADDED."""
    event: tuple[str, Object] | None = original(self, change)
    return (MODIFIED, event[1]) if event and event[0] == "ADDED" and change.old is not None else event


@mutant(Cacher, "at")
def exact_reads_show_the_present(original: Any, self: Any, revision: int, *rest: Any) -> Any:
    """Fault: a list at a past revision returns the current state."""
    return original(self, max(revision, self.revision), *rest)


@mutant(read_verbs, "_continued")
def pages_are_of_different_states(original: Any, cacher: Any, log: Any, kind: Any, span: Any, place: Any) -> Any:
    """Fault: each page of a list returns the newest state."""
    return original(cacher, log, kind, span, place._replace(revision=-1))


@mutant(ResourceStore, "apply")
def an_event_in_a_hundred_is_swallowed(original: Any, self: Any, event: Any) -> None:
    """Fault: some changes are not sent to watchers (kine #676)."""
    original(self, event)
    if event.revision % 100 == 0 and self._changes:
        del self._changes[-1], self._revisions[-1]


@mutant(Driver, "_append")
async def writes_are_unconditional(original: Any, self: Any, proposals: Any, *rest: Any) -> Any:
    """Fault: a write does not compare its resourceVersion with the stored object's."""
    loose = [each._replace(expected=None) if hasattr(each, "_replace") else _loose(each) for each in proposals]
    return await original(self, loose, *rest)


def _loose(proposal: Any) -> Any:
    return type(proposal)(proposal.type, proposal.object, None)


@mutant(Driver, "_append")
async def some_writes_are_made_twice(original: Any, self: Any, proposals: Any, *rest: Any) -> Any:
    """Fault: a write with an unknown result is sent again, although it has succeeded."""
    events = await original(self, proposals, *rest)
    if proposals[0].type.name == "MODIFIED" and events[0].revision % 20 == 0:
        await original(self, [_loose(each) for each in proposals], *rest)
    return events


@mutant(Hub, "advance")
def watchers_are_forgotten(original: Any, self: Any) -> None:
    """Fault: at some time, the server stops sending events."""
    if self.revision < 300:
        original(self)


@mutant(Watches, "_duration")
def watches_end_early(original: Any, self: Any, options: Any) -> float:
    """Fault: a watch ends before its timeout."""
    return float(original(self, options)) / 3


def main() -> None:
    """Run the program with the fault."""
    name = os.environ["MUTANT"]
    if name != SOUND:
        MUTANTS[name].apply()
    cli.main()


if __name__ == "__main__":
    main()
