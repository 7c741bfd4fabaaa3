"""Tests of the watch hub: it reads the log once for all watches, sends events in order, and no watch delays another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.engine.tables.table_printer import Column
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.engine.watch_cache.watch import Selection
from ctrlmgr.eventlog import Author, Proposal
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer import EventWindow
from ctrlmgr.metrics import REGISTRY, WatchMetrics
from ctrlmgr.server.presenting.negotiation import Form
from ctrlmgr.server.presenting.presentation import Plain, Presentation
from ctrlmgr.server.presenting.tabular import Table
from ctrlmgr.server.watch import hub as hubs
from ctrlmgr.server.watch.hub import Hub
from ctrlmgr.server.watch.watcher import DisconnectReason, Watcher
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.builders import a_pod
from tests.engine.stage import builtin_kinds

METRICS = WatchMetrics("", "v1", "pods", "namespace")


def sent_events() -> float:
    labels = {"group": "", "version": "v1", "resource": "pods"}
    return REGISTRY.get_sample_value("apiserver_watch_events_total", labels) or 0.0


class FakeStream:
    """A connected client that reads or does not read, as a test decides, and stores the bytes that it receives."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.paused = False
        self.lost = False
        self.lose: Callable[[], None] = lambda: None
        self.on_write: Callable[[], None] = lambda: None

    def write(self, chunks: bytes) -> None:
        self.chunks.append(chunks)
        self.on_write()

    def on_lost(self, call: Callable[[], None]) -> None:
        self.lose = call

    @property
    def events(self) -> list[Any]:
        """Return the received bytes as events."""
        lines = [line for each in self.chunks for line in each.split(b"\r\n")[1].splitlines()]
        return [json.loads(line) for line in lines]

    @property
    def seen(self) -> list[tuple[str, str]]:
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in self.events]


class FailingPresentation(Plain):
    """A presentation whose encoding always fails."""

    def frame(self, type: str, obj: Object) -> bytes:
        raise ValueError("not to be shown")


class Definition:
    columns = (Column("Name"),)
    conditions = None

    def cells(self, obj: Object, now: int) -> Sequence[Any]:
        return [obj.name]


def pods() -> Kind:
    kind = builtin_kinds().find("", "v1", "pods")
    assert kind is not None
    return kind


class Stage:
    """A watch hub on a log in memory, with a clock that does not advance."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.log = MemoryEventLog(clock=self.clock, random=Random(1))
        self.cacher = Cacher(self.log, EventWindow(self.log, clock=self.clock), window=20)
        self.hub = Hub(self.cacher, clock=self.clock)
        self.plain = Plain(pods())
        self.staying: dict[FakeStream, asyncio.Task[DisconnectReason]] = {}

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        async def running() -> None:
            running = asyncio.create_task(self.hub.run())
            await main()
            self.hub.close()
            await running

        asyncio.run(running())

    def watcher(
        self,
        selection: Selection | None = None,
        presentation: Presentation | None = None,
        *,
        ahead: int = 0,
        **times: Any,
    ) -> tuple[Watcher, FakeStream]:
        stream = FakeStream()
        defaults = {"ends_at": 1e9, "bookmarks_from": None}
        watcher = Watcher(
            stream,  # type: ignore[arg-type]  # what the hub asks of a stream
            selection or Selection(pods()),
            presentation or self.plain,
            self.hub.revision + ahead,
            metrics=METRICS,
            **{**defaults, **times},
        )
        return watcher, stream

    async def enter(self, *arguments: Any, **options: Any) -> FakeStream:
        watcher, stream = self.watcher(*arguments, **options)
        self.staying[stream] = asyncio.ensure_future(self.hub.stay(watcher))
        await self.settle()
        return stream

    async def change(self, type: EventType, *objects: Object) -> None:
        """Append changes of pods to the log, and let the hub send the events."""
        self.log.append(
            [Proposal(type, obj, None if type is not EventType.ADDED else 0) for obj in objects], author=Author("test")
        )
        await self.tell()

    async def tell(self) -> None:
        self.cacher.step()
        self.hub.advance()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(30):
            await asyncio.sleep(0)

    def parting(self, stream: FakeStream) -> DisconnectReason | None:
        task = self.staying[stream]
        return task.result() if task.done() else None


@pytest.fixture
def stage() -> Stage:
    return Stage()


ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED


def test_equal_watches_receive_the_same_bytes(stage: Stage) -> None:
    async def main() -> None:
        streams = [await stage.enter() for _ in range(3)]
        await stage.change(ADDED, a_pod("a"))
        assert streams[0].seen == [("ADDED", "a")]
        assert streams[0].chunks[0] is streams[1].chunks[0] is streams[2].chunks[0]

    stage.run(main)


def test_accumulated_events_are_sent_in_one_write(stage: Stage) -> None:
    async def main() -> None:
        stream = await stage.enter()
        await stage.change(ADDED, a_pod("a"), a_pod("b"), a_pod("c"))
        assert stream.seen == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
        assert len(stream.chunks) == 1

    stage.run(main)


def test_a_round_continues_at_its_revision(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "_SLICE", 1)  # the round checks for new events after each write

    async def main() -> None:
        first, second, third = [await stage.enter() for _ in range(3)]
        order: list[FakeStream] = []
        for stream in (first, second, third):
            stream.on_write = partial(order.append, stream)

        def happens() -> None:
            order.append(second)
            second.on_write = partial(order.append, second)
            stage.log.append([Proposal(ADDED, a_pod("b"), 0)], author=Author("test"))
            stage.cacher.step()

        second.on_write = happens
        await stage.change(ADDED, a_pod("a"))
        assert [stream.seen for stream in (first, second, third)] == [[("ADDED", "a"), ("ADDED", "b")]] * 3
        assert [len(stream.chunks) for stream in (first, second, third)] == [2, 2, 1]
        assert order == [first, second, third, first, second]
        await stage.change(ADDED, a_pod("c"))  # the client that received events least recently comes first
        assert order[-3:] == [third, first, second]

    stage.run(main)


def test_a_slow_watcher_leaves_the_batch_at_its_revision(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "_SLICE", 1)

    async def main() -> None:
        quick = await stage.enter()
        watcher, slow = stage.watcher()
        staying = asyncio.ensure_future(stage.hub.stay(watcher))
        await stage.settle()
        await stage.change(ADDED, a_pod("a"))

        def happens() -> None:
            quick.on_write = lambda: None
            slow.paused = True
            stage.log.append([Proposal(ADDED, a_pod("c"), 0)], author=Author("test"))
            stage.cacher.step()

        quick.on_write = happens
        await stage.change(ADDED, a_pod("b"))
        assert await staying is DisconnectReason.BEHIND
        assert (watcher.cursor, stage.hub.revision) == (1, 3)
        assert quick.seen == [("ADDED", name) for name in "abc"]

    stage.run(main)


def test_no_bookmark_exceeds_the_written_events(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "_SLICE", 1)

    async def main() -> None:
        marked, other = await stage.enter(bookmarks_from=0.0), await stage.enter()

        def happens() -> None:
            other.on_write = lambda: None
            stage.clock.step(61.0)
            stage.log.append([Proposal(ADDED, a_pod("b"), 0)], author=Author("test"))
            stage.cacher.step()

        other.on_write = happens
        await stage.change(ADDED, a_pod("a"))
        stage.clock.step(61.0)
        await stage.tell()
        kinds = [(event["type"], event["object"]["metadata"]["resourceVersion"]) for event in marked.events]
        assert kinds[:2] == [("ADDED", "1"), ("ADDED", "2")]
        assert kinds[2:] == [("BOOKMARK", "2")] * (len(kinds) - 2)
        assert len(kinds) > 2

    stage.run(main)


def test_a_watch_that_times_out_while_catching_up_is_not_added(stage: Stage) -> None:
    async def main() -> None:
        watcher, stream = stage.watcher(ends_at=1.0)
        await stage.change(ADDED, a_pod("a"))
        stage.clock.step(2.0)
        assert await stage.hub.stay(watcher) is DisconnectReason.ENDED
        assert stream.chunks == []

    stage.run(main)


def test_each_watcher_receives_its_selection(stage: Stage) -> None:
    async def main() -> None:
        here = await stage.enter(Selection(pods(), "here"))
        web = await stage.enter(Selection(pods(), None, LabelSelector.parse("app=web")))
        named = await stage.enter(Selection(pods(), None, LabelSelector(), FieldSelector.parse("metadata.name=b")))
        both = await stage.enter(Selection(pods(), "here", LabelSelector(), FieldSelector.parse("metadata.name=b")))
        await stage.change(ADDED, a_pod("a", namespace="here"), a_pod("b", namespace="there", labels={"app": "db"}))
        assert here.seen == [("ADDED", "a")]
        assert web.seen == [("ADDED", "a")]
        assert named.seen == [("ADDED", "b")]
        assert both.seen == []

    stage.run(main)


def test_an_object_is_added_and_deleted_by_its_labels(stage: Stage) -> None:
    async def main() -> None:
        stream = await stage.enter(Selection(pods(), None, LabelSelector.parse("app=web")))
        await stage.change(ADDED, a_pod("a", labels={"app": "db"}))
        await stage.change(MODIFIED, a_pod("a", labels={"app": "web"}))
        await stage.change(MODIFIED, a_pod("a", labels={"app": "db"}))
        await stage.change(DELETED, a_pod("a", labels={"app": "db"}))
        assert stream.seen == [("ADDED", "a"), ("DELETED", "a")]
        assert [event["object"]["metadata"]["resourceVersion"] for event in stream.events] == ["2", "3"]

    stage.run(main)


def test_an_unread_watcher_leaves_at_its_revision_at_no_cost(stage: Stage) -> None:
    async def main() -> None:
        slow, quick = await stage.enter(), await stage.enter()
        await stage.change(ADDED, a_pod("a"))
        slow.paused = True
        await stage.change(ADDED, a_pod("b"))
        assert stage.parting(slow) is DisconnectReason.BEHIND
        assert slow.seen == [("ADDED", "a")]
        assert quick.seen == [("ADDED", "a"), ("ADDED", "b")]

    stage.run(main)


def test_a_leaving_watcher_has_the_revision_it_was_sent(stage: Stage) -> None:
    async def main() -> None:
        watcher, stream = stage.watcher()
        staying = asyncio.ensure_future(stage.hub.stay(watcher))
        await stage.settle()
        await stage.change(ADDED, a_pod("a"))
        stream.paused = True
        await stage.change(ADDED, a_pod("b"))
        assert await staying is DisconnectReason.BEHIND
        assert watcher.cursor == 1

    stage.run(main)


def test_a_watcher_ahead_of_the_hub_waits_for_it(stage: Stage) -> None:
    async def main() -> None:
        stream = await stage.enter(ahead=2)
        await stage.change(ADDED, a_pod("a"))
        assert stage.parting(stream) is None
        await stage.change(ADDED, a_pod("b"))
        assert stage.parting(stream) is DisconnectReason.REACHED
        assert stream.seen == []

    stage.run(main)


def test_a_disconnected_watcher_is_removed(stage: Stage) -> None:
    async def main() -> None:
        stream = await stage.enter()
        stream.lose()
        await stage.settle()
        assert stage.parting(stream) is DisconnectReason.GONE
        await stage.change(ADDED, a_pod("a"))
        assert stream.chunks == []

    stage.run(main)


def test_a_watcher_leaving_during_a_batch_receives_nothing_more(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "_SLICE", 1)  # the pass yields to the loop after each write

    async def main() -> None:
        first, second = await stage.enter(), await stage.enter()
        first.write = lambda chunks: second.lose()  # type: ignore[method-assign]  # the moment to leave
        await stage.change(ADDED, a_pod("a"))
        assert stage.parting(second) is DisconnectReason.GONE
        assert second.chunks == []

    stage.run(main)


def test_a_hub_without_the_next_event_sends_all_watchers_to_the_log(stage: Stage) -> None:
    async def main() -> None:
        stream = await stage.enter()
        for number in range(40):  # more events than the cacher's window, before the hub checks
            stage.log.append([Proposal(ADDED, a_pod(f"p{number}"), 0)], author=Author("test"))
            stage.cacher.step()
        await stage.tell()
        assert stage.parting(stream) is DisconnectReason.BEHIND
        assert stream.chunks == []

    stage.run(main)


def test_an_encoding_error_ends_only_the_affected_watch(stage: Stage) -> None:
    async def main() -> None:
        broken, sound = await stage.enter(None, FailingPresentation(pods())), await stage.enter()
        await stage.change(ADDED, a_pod("a"))
        assert stage.parting(broken) is DisconnectReason.FAILED
        assert sound.seen == [("ADDED", "a")]

    stage.run(main)


def test_bookmarks_are_sent_every_minute_if_requested(stage: Stage) -> None:
    async def main() -> None:
        plain, marked = await stage.enter(), await stage.enter(bookmarks_from=0.0)
        await stage.change(ADDED, a_pod("a"))
        for _ in range(2):
            stage.clock.step(60.5)
            await stage.tell()
        assert plain.seen == [("ADDED", "a")]
        assert marked.seen == [("ADDED", "a"), ("BOOKMARK", ""), ("BOOKMARK", "")]
        assert marked.events[-1]["object"]["metadata"] == {"resourceVersion": "1"}

    stage.run(main)


def test_a_watch_ends_at_its_timeout_after_a_last_bookmark(stage: Stage) -> None:
    async def main() -> None:
        stream = await stage.enter(ends_at=30.0, bookmarks_from=0.0)
        stage.clock.step(28.5)
        await stage.tell()
        assert stream.seen == [("BOOKMARK", "")]
        assert stage.parting(stream) is None
        stage.clock.step(2.0)
        await stage.tell()
        assert stage.parting(stream) is DisconnectReason.ENDED

    stage.run(main)


def test_the_timer_fires_without_events(stage: Stage) -> None:
    async def main() -> None:
        stream = await stage.enter(ends_at=0.05)
        stage.clock.step(1.0)
        assert await asyncio.wait_for(stage.staying[stream], 10) is DisconnectReason.ENDED

    stage.run(main)


def test_a_future_watch_gets_no_bookmark_and_times_out(stage: Stage) -> None:
    async def main() -> None:
        stream = await stage.enter(ahead=5, ends_at=100.0, bookmarks_from=0.0)
        stage.clock.step(70.0)
        await stage.tell()
        assert stream.chunks == []
        stage.clock.step(40.0)
        await stage.tell()
        assert stage.parting(stream) is DisconnectReason.ENDED

    stage.run(main)


def test_a_table_watcher_joins_another_group_after_its_first_frame(stage: Stage) -> None:
    async def main() -> None:
        table = Table(pods(), Form("Table", "v1"), Definition(), "", stage.clock)
        watcher, stream = stage.watcher(None, table)
        staying = asyncio.ensure_future(stage.hub.stay(watcher))
        await stage.settle()
        await stage.change(ADDED, a_pod("a"), a_pod("b"))
        assert await staying is DisconnectReason.REACHED
        assert watcher.cursor == stage.hub.revision
        assert watcher.presentation is table.following
        assert [event["object"]["columnDefinitions"] is None for event in stream.events] == [False, True]

    stage.run(main)


def test_closing_refuses_current_and_later_callers(stage: Stage) -> None:
    async def main() -> None:
        inside, ahead = await stage.enter(), await stage.enter(ahead=3)
        stage.hub.close()
        await stage.settle()
        assert (stage.parting(inside), stage.parting(ahead)) == (DisconnectReason.CLOSING, DisconnectReason.CLOSING)
        assert stage.parting(await stage.enter()) is DisconnectReason.CLOSING

    stage.run(main)


def test_events_are_counted_for_each_watcher(stage: Stage) -> None:
    async def main() -> None:
        before = sent_events()
        for _ in range(3):
            await stage.enter()
        await stage.change(ADDED, a_pod("a"), a_pod("b"))
        assert sent_events() - before == 6

    stage.run(main)
