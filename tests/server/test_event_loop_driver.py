"""Tests of the driver and the follower: the results of an operation's commands, and how current the cacher is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from random import Random
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Resource, Revision
from ctrlmgr.engine.operations import REFRESH, Append, Await, Command, Operation, Read
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.errors import AlreadyExists, Fenced, LogUnavailable, RequestTimeout
from ctrlmgr.eventlog import Author, Fence, Head, Proposal
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.eventlog.event import Event, EventType, Snapshot
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer import EventWindow
from ctrlmgr.server import event_loop_driver as driving
from ctrlmgr.server.event_loop_driver import Driver
from ctrlmgr.server.watch.follower import Follower
from ctrlmgr.server.workers import Workers
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.builders import a_namespace

AUTHOR = Author("alice", "test")


def added(name: str) -> list[Proposal]:
    return [Proposal(EventType.ADDED, a_namespace(name), 0)]


class RemoteLog(MemoryEventLog):
    """A log that, like PostgreSQL's, reports its head only to callers that wait; `held` delays the results."""

    def __init__(self) -> None:
        super().__init__(clock=FakeClock(), random=Random(1))
        self.held = threading.Event()
        self.held.set()
        self.put = threading.Event()
        self.asked = 0
        self.away = False

    def peek(self) -> Revision:
        return None  # type: ignore[return-value]  # what it says is that it cannot tell

    def head(self) -> Head:
        self.asked += 1
        head = super().head()
        self.put.set()
        assert self.held.wait(10)
        if self.away:
            raise LogUnavailable("connection refused")
        return head


class DriverParts:
    """A driver and the components that it uses."""

    def __init__(self, log: MemoryEventLog, *, capacity: int = 10_000) -> None:
        self.log = log
        self.feed = EventWindow(log, capacity=capacity, clock=FakeClock())
        self.cacher = Cacher(log, self.feed)
        self.workers = Workers(2)
        self.follower = Follower(log, self.feed, self.cacher, self.workers)
        self.driver = Driver(log, self.follower, self.workers, self.cacher, computing=self.workers)

    def run(self, main: Callable[[], Awaitable[Any]]) -> Any:
        async def running() -> Any:
            self.workers.start()
            self.follower.start()
            try:
                return await main()
            finally:
                self.workers.stop()

        return asyncio.run(running())


@pytest.fixture
def near() -> DriverParts:
    return DriverParts(MemoryEventLog(clock=FakeClock(), random=Random(1)))


@pytest.fixture
def far() -> DriverParts:
    return DriverParts(RemoteLog())


def obeyed(*commands: Command) -> Operation[list[Any]]:
    """Yield the commands and return their results; an error is also a result."""
    answers: list[Any] = []
    for command in commands:
        try:
            answers.append((yield command))
        except Exception as error:
            answers.append(error)
    return answers


def test_an_operation_without_commands_returns_its_result(near: DriverParts) -> None:
    def operation() -> Generator[Command, Any, str]:
        yield from ()
        return "done"

    assert near.run(lambda: near.driver.run(operation())) == "done"


def test_an_append_is_in_the_log_and_in_the_cacher_when_the_operation_continues(near: DriverParts) -> None:
    def operation() -> Operation[tuple[Sequence[Any], Object | None]]:
        events = yield Append(added("a"), AUTHOR)
        return events, near.cacher.get(NAMESPACES, Key("", "a"))

    events, cached = near.run(lambda: near.driver.run(operation()))
    assert [event.revision for event in events] == [1]
    assert near.log.events_after(0)[0].actor == "alice"
    assert cached is not None


class BatchRecorder:
    """An observer that records the begin and end of each batch, and the events within the batch."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def begin_batch(self) -> None:
        self.told.append("begin")

    def end_batch(self) -> None:
        self.told.append("end")


def test_operations_whose_appends_end_together_continue_in_one_round(near: DriverParts) -> None:
    heard = BatchRecorder()
    near.driver.round = heard

    def operation(name: str) -> Operation[None]:
        yield Append(added(name), AUTHOR)
        heard.told.append(name)

    async def several() -> None:
        await asyncio.gather(*(near.driver.run(operation(name)) for name in "abc"))
        await near.driver.run(operation("d"))

    near.run(several)
    assert heard.told == ["begin", "a", "b", "c", "end", "begin", "d", "end"]


def test_every_append_of_an_operation_carries_its_fence(near: DriverParts) -> None:
    near.log.append(added("lease"), author=AUTHOR, fence=Fence("l", 2, takeover=True))

    async def both() -> list[Any]:
        await near.driver.run(obeyed(Append(added("a"), AUTHOR)), fence=Fence("l", 2))
        return await near.driver.run(obeyed(Append(added("b"), AUTHOR)), fence=Fence("l", 1))

    [refused] = near.run(both)
    assert isinstance(refused, Fenced)
    assert [event.term for event in near.log.events_after(0)] == [2, 2]


def test_after_a_refused_append_the_cacher_has_the_conflicting_event(near: DriverParts) -> None:
    near.log.append(added("a"), author=AUTHOR)

    def operation() -> Operation[tuple[Exception, Object | None]]:
        try:
            yield Append(added("a"), AUTHOR)
        except AlreadyExists as error:
            return error, near.cacher.get(NAMESPACES, Key("", "a"))
        raise AssertionError

    error, cached = near.run(lambda: near.driver.run(operation()))
    assert isinstance(error, AlreadyExists)
    assert cached is not None


def test_concurrent_appends_return_their_own_events(near: DriverParts) -> None:
    async def main() -> Any:
        names = [f"n{number}" for number in range(50)]
        return await asyncio.gather(*[near.driver.run(obeyed(Append(added(name), AUTHOR))) for name in names])

    answers = near.run(main)
    assert [answer[0][0].object.name for answer in answers] == [f"n{number}" for number in range(50)]


def test_an_append_above_its_timeout_has_an_unknown_outcome(near: DriverParts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driving, "WRITE_PATIENCE", 0.01)

    def never(proposals: Sequence[Proposal], *, author: Author, **_: Any) -> PendingAppend:
        return PendingAppend(proposals, author, None, None, recorded_at=0, append_id=1)

    monkeypatch.setattr(near.log, "submit", never)
    (answer,) = near.run(lambda: near.driver.run(obeyed(Append(added("a"), AUTHOR))))
    assert isinstance(answer, RequestTimeout)


def test_a_read_runs_on_another_thread(near: DriverParts) -> None:
    here = threading.get_ident()
    there, failed = near.run(
        lambda: near.driver.run(
            obeyed(Read(threading.get_ident), Read(lambda: near.log.get(NAMESPACES, Key("", "a"), at=9)))
        )
    )
    assert there != here
    assert isinstance(failed, Exception)


def test_a_refresh_shows_earlier_appends(near: DriverParts) -> None:
    def operation() -> Operation[Object | None]:
        near.log.append(added("a"), author=AUTHOR)
        yield REFRESH
        return near.cacher.get(NAMESPACES, Key("", "a"))

    assert near.run(lambda: near.driver.run(operation())) is not None


def test_awaiting_a_future_revision_times_out(near: DriverParts) -> None:
    near.log.append(added("a"), author=AUTHOR)
    assert near.run(lambda: near.driver.run(obeyed(Await(1, 10.0), Await(2, 0.01)))) == [None, None]
    assert near.cacher.revision == 1


def test_awaiting_a_revision_ends_when_it_exists(near: DriverParts) -> None:
    async def main() -> None:
        waiting = asyncio.ensure_future(near.driver.run(obeyed(Await(1, 10.0))))
        await asyncio.sleep(0)
        near.log.append(added("a"), author=AUTHOR)
        await waiting
        assert near.cacher.revision == 1

    near.run(main)


def test_a_remote_log_is_queried_on_another_thread(far: DriverParts) -> None:
    def operation() -> Operation[Object | None]:
        far.log.append(added("a"), author=AUTHOR)
        yield REFRESH
        return far.cacher.get(NAMESPACES, Key("", "a"))

    assert far.run(lambda: far.driver.run(operation())) is not None


def test_one_query_serves_only_earlier_callers(far: DriverParts) -> None:
    log = far.log
    assert isinstance(log, RemoteLog)

    async def main() -> int:
        log.asked = 0
        log.put.clear()
        log.held.clear()
        first = asyncio.ensure_future(far.follower.catch_up())
        assert await far.workers.run(lambda: log.put.wait(10))
        log.append(added("a"), author=AUTHOR)  # the running answer may not contain it
        later = [asyncio.ensure_future(far.follower.catch_up()) for _ in range(20)]
        await asyncio.sleep(0)
        log.held.set()
        await asyncio.gather(first, *later)
        assert far.cacher.revision == 1
        return log.asked

    assert far.run(main) == 2


def test_callers_get_an_error_if_the_log_is_unavailable(far: DriverParts) -> None:
    log = far.log
    assert isinstance(log, RemoteLog)

    async def main() -> None:
        log.away = True
        with pytest.raises(LogUnavailable, match="connection refused"):
            await far.follower.catch_up()
        log.away = False
        await far.follower.catch_up()

    far.run(main)


class WatchedLog(MemoryEventLog):
    """A log that records the threads that read it; if `away` is set, reads fail."""

    def __init__(self) -> None:
        super().__init__(clock=FakeClock(), random=Random(1))
        self.readers: set[int] = set()
        self.away = False

    def _read(self) -> None:
        self.readers.add(threading.get_ident())
        if self.away:
            raise LogUnavailable("connection refused")

    def events_after(
        self, revision: Revision, *, resource: Resource | None = None, limit: int = 500
    ) -> Sequence[Event]:
        self._read()
        return super().events_after(revision, resource=resource, limit=limit)

    def snapshot(
        self, resource: Resource | None = None, *, namespace: str | None = None, at: Revision | None = None
    ) -> Snapshot:
        self._read()
        return super().snapshot(resource, namespace=namespace, at=at)


def lost(names: str, *, compacted: Revision) -> tuple[WatchedLog, DriverParts]:
    """Return components whose feed contains only the last of these namespaces."""
    log = WatchedLog()
    parts = DriverParts(log, capacity=1)
    log.append([proposal for name in names for proposal in added(name)], author=AUTHOR)
    if compacted:
        log.compact(compacted)
    log.readers.clear()
    return log, parts


@pytest.mark.parametrize("compacted", [0, 3])
def test_events_discarded_by_the_feed_are_read_on_another_thread(compacted: Revision) -> None:
    log, parts = lost("abcd", compacted=compacted)
    heard: list[Revision] = []
    parts.follower.on_advance(lambda: heard.append(parts.cacher.revision))
    parts.run(parts.follower.catch_up)
    assert [obj.name for obj in parts.cacher.list(NAMESPACES)] == ["a", "b", "c", "d"]
    assert len(log.readers) == 1
    assert threading.get_ident() not in log.readers
    assert heard == [0, 4]


def test_events_discarded_by_the_feed_are_read_after_the_log_recovers() -> None:
    log, parts = lost("abcd", compacted=0)

    async def main() -> None:
        log.away = True
        assert not await parts.follower.reach(4, 0.05)
        log.away = False
        await parts.follower.catch_up()

    parts.run(main)
    assert parts.cacher.revision == 4


def test_listeners_are_notified_once_for_several_events(near: DriverParts) -> None:
    heard: list[Revision] = []
    near.follower.on_advance(lambda: heard.append(near.cacher.revision))

    async def main() -> None:
        heard.clear()
        for name in "abc":
            near.log.append(added(name), author=AUTHOR)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    near.run(main)
    assert heard == [3]
