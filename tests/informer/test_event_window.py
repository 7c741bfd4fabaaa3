from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from ctrlmgr import threads
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import Expired, LogCorrupt
from ctrlmgr.eventlog.event import Event
from ctrlmgr.informer import EventWindow
from ctrlmgr.testing import FakeClock
from tests.informer.shared_log import SharedLog, thing


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def log(clock: FakeClock) -> SharedLog:
    return SharedLog(clock=clock)


@pytest.fixture
def cache(log: SharedLog, clock: FakeClock) -> EventWindow:
    return EventWindow(log, capacity=8, clock=clock)


def write(log: SharedLog, count: int) -> None:
    for number in range(count):
        log.put(thing("a", note=str(number)))


def revisions(cache: EventWindow, after: int, limit: int = 500) -> list[int]:
    return [event.revision for event in cache.events_after(after, limit=limit)]


def test_the_window_starts_at_the_head_and_reads_older_history_from_the_log(log: SharedLog, clock: FakeClock) -> None:
    write(log, 5)
    cache = EventWindow(log, clock=clock)
    assert cache.head() == 5
    assert revisions(cache, 5) == []
    assert revisions(cache, 2) == [3, 4, 5]


def test_a_commit_between_reading_the_head_and_observing_is_not_missed(clock: FakeClock) -> None:
    class Busy(SharedLog):
        def observe(self, observer: Callable[[Sequence[Event]], None]) -> None:
            self.put(thing("meanwhile"))
            super().observe(observer)

    assert EventWindow(Busy(clock=clock), clock=clock).head() == 1


def test_own_commits_are_readable_in_order_without_the_log(log: SharedLog, cache: EventWindow) -> None:
    write(log, 3)
    log.put(thing("b"), thing("c"))
    reads = log.reads
    assert revisions(cache, 0) == [1, 2, 3, 4, 5]
    assert revisions(cache, 3) == [4, 5]
    assert cache.events_after(4)[0].key.name == "c"
    assert log.reads == reads


@pytest.mark.parametrize(
    ("after", "limit", "expected"),
    [
        pytest.param(0, 2, [1, 2], id="the limit cuts the newest off"),
        pytest.param(3, 2, [4], id="fewer are left than the limit allows"),
        pytest.param(4, 2, [], id="nothing follows the head"),
        pytest.param(9, 2, [], id="a reader from the future is given nothing yet"),
    ],
)
def test_a_read_is_a_slice(log: SharedLog, cache: EventWindow, after: int, limit: int, expected: list[int]) -> None:
    write(log, 4)
    assert revisions(cache, after, limit) == expected


def test_the_window_is_bounded_and_a_slow_reader_loses_nothing(log: SharedLog, cache: EventWindow) -> None:
    write(log, 100)
    reads = log.reads
    assert revisions(cache, 92) == list(range(93, 101))
    assert log.reads == reads
    assert revisions(cache, 89 - 1) == list(range(89, 101))
    assert log.reads == reads + 1
    assert revisions(cache, 0) == list(range(1, 101))


def test_reading_in_small_steps_returns_every_event_once_across_the_windows_start(
    log: SharedLog, cache: EventWindow
) -> None:
    write(log, 40)
    seen: list[int] = []
    while step := revisions(cache, seen[-1] if seen else 0, limit=3):
        seen += step
    assert seen == list(range(1, 41))


def test_a_reader_older_than_window_and_log_is_expired(log: SharedLog, cache: EventWindow) -> None:
    write(log, 100)
    log.compact(50)
    with pytest.raises(Expired) as raised:
        cache.events_after(49)
    assert (raised.value.asked, raised.value.oldest) == (49, 50)
    assert revisions(cache, 50) == list(range(51, 101))


def test_the_window_keeps_compacted_events(log: SharedLog, cache: EventWindow) -> None:
    write(log, 5)
    log.compact(5)
    assert revisions(cache, 0) == [1, 2, 3, 4, 5]


def test_duplicate_events_are_dropped(log: SharedLog, cache: EventWindow) -> None:
    write(log, 4)
    events = log.events_after(0)
    woken: list[int] = []
    cache.on_advance(woken.append)
    cache.publish(events)
    cache.publish(events[1:3])
    cache.publish([])
    assert revisions(cache, 0) == [1, 2, 3, 4]
    assert woken == []


def test_only_new_events_of_an_overlapping_batch_are_added(log: SharedLog, cache: EventWindow) -> None:
    with log.elsewhere():
        write(log, 4)
    events = log.events_after(0)
    cache.publish(events[:2])
    cache.publish(events[1:])
    assert revisions(cache, 0) == [1, 2, 3, 4]


def test_a_batch_with_a_gap_is_read_from_the_log(log: SharedLog, cache: EventWindow) -> None:
    with log.elsewhere():
        write(log, 3)
    first, _, third = log.events_after(0)
    cache.publish([first, third])
    assert cache.head() == 0
    assert revisions(cache, 0) == [1, 2, 3]


def test_a_log_with_a_gap_is_corrupt(log: SharedLog, cache: EventWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    with log.elsewhere():
        write(log, 3)
    first, _, third = log.events_after(0)
    monkeypatch.setattr(log, "events_after", lambda *_, **__: [first, third])
    with pytest.raises(LogCorrupt, match="revision 3 follows 1"):
        cache.catch_up()
    assert cache.head() == 0


def test_the_next_reader_closes_a_gap_instead_of_the_committing_thread(log: SharedLog, cache: EventWindow) -> None:
    with log.elsewhere():
        write(log, 2)
    reads = log.reads
    write(log, 1)
    assert log.reads == reads
    assert cache.head() == 0
    assert revisions(cache, 0) == [1, 2, 3]
    assert cache.head() == 3


def test_wait_closes_a_gap_first(log: SharedLog, cache: EventWindow) -> None:
    with log.elsewhere():
        write(log, 2)
    write(log, 1)
    assert cache.wait(0, 0) == 3


def test_a_waiter_that_sees_a_gap_closes_it(log: SharedLog, cache: EventWindow, clock: FakeClock) -> None:
    with log.elsewhere():
        write(log, 2)
    heads: list[int] = []
    thread = threads.start("waiter", lambda: heads.append(cache.wait(0, None)))
    clock.wait_for_waiters(1)
    write(log, 1)
    thread.join(10)
    assert heads == [3]


def test_catch_up_reads_events_of_other_processes(log: SharedLog, cache: EventWindow) -> None:
    with log.elsewhere():
        write(log, 1200)
    assert cache.head() == 0
    assert cache.catch_up() == 1200
    assert revisions(cache, 1192) == list(range(1193, 1201))


def test_a_compaction_of_the_next_events_resets_the_window(log: SharedLog, cache: EventWindow) -> None:
    write(log, 2)
    with log.elsewhere():
        write(log, 20)
    log.compact(20)
    woken: list[int] = []
    cache.on_advance(woken.append)
    assert cache.catch_up() == 22
    assert woken == [22]
    with pytest.raises(Expired):
        cache.events_after(2)
    write(log, 1)
    assert revisions(cache, 22) == [23]


def test_a_reset_window_wakes_its_waiters(log: SharedLog, cache: EventWindow, clock: FakeClock) -> None:
    heads: list[int] = []
    thread = threads.start("waiter", lambda: heads.append(cache.wait(0, None)))
    clock.wait_for_waiters(1)
    with log.elsewhere():
        write(log, 20)
    log.compact(20)
    cache.catch_up()
    thread.join(10)
    assert heads == [20]


def test_wait_returns_at_once_if_events_are_available(log: SharedLog, cache: EventWindow) -> None:
    write(log, 3)
    assert cache.wait(2, None) == 3


def test_wait_returns_after_its_timeout(cache: EventWindow, clock: FakeClock) -> None:
    heads: list[int] = []
    thread = threads.start("waiter", lambda: heads.append(cache.wait(0, 0.3)))
    clock.wait_for_waiters(1)
    clock.step(0.1)
    clock.step(0.2)
    thread.join(10)
    assert heads == [0]


def test_a_commit_wakes_every_waiter(log: SharedLog, cache: EventWindow, clock: FakeClock) -> None:
    heads: list[int] = []
    waiting = [threads.start(f"waiter {n}", lambda: heads.append(cache.wait(0, None))) for n in range(5)]
    clock.wait_for_waiters(5)
    write(log, 1)
    for thread in waiting:
        thread.join(10)
    assert heads == [1] * 5


def test_on_advance_is_called_once_per_batch_with_readable_events(log: SharedLog, cache: EventWindow) -> None:
    heads: list[tuple[int, int]] = []
    # this call would deadlock if it was made under the lock
    cache.on_advance(lambda head: heads.append((head, cache.head())))
    log.put(thing("a"), thing("b"), thing("c"))
    log.put(thing("a", note="x"))
    assert heads == [(3, 3), (4, 4)]


def test_on_advance_is_not_called_before_a_gap_is_closed(log: SharedLog, cache: EventWindow) -> None:
    heads: list[int] = []
    cache.on_advance(heads.append)
    with log.elsewhere():
        write(log, 1)
    write(log, 1)
    assert heads == []
    cache.catch_up()
    assert heads == [2]


class FollowedWindow:
    """An event window with a running follower; `until` waits in real time for a head."""

    def __init__(self, log: SharedLog, clock: FakeClock) -> None:
        self.cache = EventWindow(log, capacity=8, clock=clock)
        self._clock = clock
        self._stop = threading.Event()
        self._advanced = threading.Condition()
        self.cache.on_advance(self._on_advance)
        self._thread = threads.start("follower", lambda: self.cache.run(self._stop))
        clock.wait_for_waiters(1)

    def _on_advance(self, head: int) -> None:
        with self._advanced:
            self._advanced.notify_all()

    def until(self, head: int) -> None:
        with self._advanced:
            assert self._advanced.wait_for(lambda: self.cache.head() >= head, 10)

    def step_until(self, head: int) -> None:
        for _ in range(1000):
            if self.cache.head() >= head:
                return
            self._clock.step(1)
            with self._advanced:
                self._advanced.wait_for(lambda: self.cache.head() >= head, 0.01)
        pytest.fail(f"the head stays at {self.cache.head()}")

    def end(self) -> None:
        self._stop.set()
        while self._thread.is_alive():
            self._clock.step(1)
            self._thread.join(0.01)


def test_the_follower_reads_events_of_other_processes(log: SharedLog, clock: FakeClock) -> None:
    following = FollowedWindow(log, clock)
    with log.elsewhere():
        write(log, 3)
    following.until(3)
    with log.elsewhere():
        write(log, 1)
    following.until(4)
    following.end()
    assert revisions(following.cache, 0) == [1, 2, 3, 4]


def test_readers_leave_gaps_to_a_running_follower(log: SharedLog, clock: FakeClock) -> None:
    following = FollowedWindow(log, clock)
    log.outages = 1_000_000  # the gap cannot be closed, and each caller that tries raises the error
    with log.elsewhere():
        write(log, 1)
    write(log, 1)
    assert revisions(following.cache, 0) == []
    assert following.cache.wait(0, 0) == 0
    log.outages = 0
    following.step_until(2)
    following.end()
    assert revisions(following.cache, 0) == [1, 2]


def test_the_follower_survives_an_outage(log: SharedLog, clock: FakeClock) -> None:
    following = FollowedWindow(log, clock)
    log.outages = 3
    with log.elsewhere():
        write(log, 2)
    following.step_until(2)
    following.end()
    assert log.outages == 0


def test_readers_close_a_gap_of_a_stopped_follower(log: SharedLog, clock: FakeClock) -> None:
    following = FollowedWindow(log, clock)
    following.end()
    with log.elsewhere():
        write(log, 2)
    write(log, 1)
    assert revisions(following.cache, 0) == [1, 2, 3]


def test_local_and_remote_writers_with_a_follower_lose_and_duplicate_nothing() -> None:
    clock = SystemClock()
    here = SharedLog(clock=clock)
    cache = EventWindow(here, capacity=50, clock=clock)
    stop = threading.Event()
    writers = 4
    each = 150

    def keep_writing(name: str) -> None:
        for number in range(each):
            if number % 3:
                here.put(thing(name, note=str(number)))
            else:
                # the read sometimes also omits a neighbouring commit, so that all kinds of gaps occur
                with here.elsewhere():
                    here.put(thing(name, note=str(number)))

    follower = threads.start("follower", lambda: cache.run(stop))
    running = [threads.start(f"w{n}", partial(keep_writing, f"w{n}")) for n in range(writers)]
    seen: list[int] = []
    while len(seen) < writers * each:
        before = len(seen)
        cache.wait(seen[-1] if seen else 0, 10)
        seen += revisions(cache, seen[-1] if seen else 0, limit=7)
        assert len(seen) > before
    for thread in running:
        thread.join(10)
    stop.set()
    follower.join(10)
    assert not follower.is_alive()
    assert seen == list(range(1, writers * each + 1))
