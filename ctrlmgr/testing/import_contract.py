"""Defines, as tests, the contract of an event log for imported events.

Imported events keep their recorded revisions. See also `eventlog_contract`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest

from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.errors import BadRequest, Expired, LogClosed, LogCorrupt
from ctrlmgr.eventlog import Author, Event, EventLog, EventType, Imported, Proposal, verify
from ctrlmgr.eventlog.imports import ImportedRange
from ctrlmgr.eventlog.verification import Stored
from ctrlmgr.informer import EventWindow
from ctrlmgr.testing.eventlog_contract import AUTHOR, VerifiableLog, add, modify, names, remove, thing
from ctrlmgr.testing.fake_clock import FakeClock

ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED
KUBELET = Author("kubelet", "kubelet/v1.36")


def recorded(type: EventType, name: str, revision: int, *, spec: int = 0) -> Imported:
    """Return a recorded event of a pod; its revision is also its time in seconds since 1970."""
    return Imported(type, thing(name, spec=spec).at(revision), revision * 1_000_000, KUBELET)


STORY = (
    recorded(ADDED, "a", 100),
    recorded(ADDED, "b", 107),
    recorded(MODIFIED, "a", 300, spec=1),
    recorded(DELETED, "b", 301),
    recorded(ADDED, "b", 999, spec=2),
)


def brief(events: Sequence[Event]) -> list[tuple[int, int, str, str]]:
    """Return the fields of events that the tests compare."""
    return [(event.revision, event.previous, event.type.name, event.key.name) for event in events]


def append(log: EventLog, *proposals: Proposal) -> list[int]:
    """Append all proposals in one append, and return the revisions."""
    return [event.revision for event in log.append(proposals, author=AUTHOR)]


class ImportContract:
    """The tests that every event log must pass for imported events."""

    def test_events_keep_what_was_recorded_of_them(self, log: VerifiableLog) -> None:
        events = log.import_events(STORY)
        assert brief(events) == [
            (100, 0, "ADDED", "a"),
            (107, 0, "ADDED", "b"),
            (300, 100, "MODIFIED", "a"),
            (301, 107, "DELETED", "b"),
            (999, 301, "ADDED", "b"),
        ]
        assert list(events) == list(log.events_after(0)) == list(log.scan())
        assert [(each.recorded_at, each.actor, each.user_agent) for each in events[:2]] == [
            (100_000_000, "kubelet", "kubelet/v1.36"),
            (107_000_000, "kubelet", "kubelet/v1.36"),
        ]
        assert [event.object.wire() for event in events] == [each.object.wire() for each in STORY]
        assert log.head().revision == 999
        assert log.imports() == [ImportedRange(0, 999)]

    def test_the_past_can_be_read_between_revisions_too(self, log: VerifiableLog) -> None:
        log.import_events(STORY)
        expected = [(99, ""), (100, "a"), (106, "a"), (107, "ab"), (300, "ab"), (301, "a"), (998, "a"), (999, "ab")]
        assert [(at, "".join(names(log.snapshot(at=at).objects))) for at, _ in expected] == expected
        pod = log.get(PODS, Key("shop", "a"), at=299)
        assert pod is not None
        assert pod.revision == 100
        assert [event.revision for event in log.events_after(250, limit=2)] == [300, 301]
        assert [log.revision_at(moment * 1_000_000) for moment in (99, 100, 200, 301, 2000)] == [0, 100, 107, 301, 999]

    def test_imports_and_appends_follow_one_another(self, log: VerifiableLog) -> None:
        assert append(log, add(thing("mine"))) == [1]
        log.import_events(STORY[:2])
        log.import_events(STORY[2:])
        assert append(log, modify(thing("b", spec=3), 999), remove(thing("a", spec=1), None)) == [1000, 1001]
        log.import_events([recorded(MODIFIED, "mine", 5000, spec=5)])
        assert append(log, modify(thing("mine", spec=6), 5000)) == [5001]
        assert log.imports() == [ImportedRange(1, 999), ImportedRange(1001, 5000)]
        assert names(log.snapshot().objects) == ["b", "mine"]
        assert verify(log).events == 10

    def test_what_does_not_fit_is_settled(self, log: VerifiableLog) -> None:
        append(log, add(thing("there")))
        events = log.import_events(
            [
                recorded(ADDED, "there", 10, spec=1),
                recorded(MODIFIED, "new", 11),
                recorded(DELETED, "never", 12),
                recorded(DELETED, "new", 13),
                recorded(MODIFIED, "new", 14),
            ]
        )
        assert [(event.revision, event.type) for event in events] == [
            (10, MODIFIED),
            (11, ADDED),
            (13, DELETED),
            (14, ADDED),
        ]
        assert verify(log).events == 5

    def test_nothing_may_come_of_it(self, log: VerifiableLog) -> None:
        head = log.head()
        assert not log.import_events([])
        assert not log.import_events([recorded(DELETED, "never", 12)])
        assert (log.head(), log.imports()) == (head, [])

    @pytest.mark.parametrize("revisions", [(2,), (3, 3), (9, 7)])
    def test_revisions_that_do_not_go_on_are_refused(self, log: VerifiableLog, revisions: tuple[int, ...]) -> None:
        append(log, add(thing("one")), add(thing("two")))
        with pytest.raises(BadRequest, match="cannot be imported after revision"):
            log.import_events([recorded(ADDED, f"a{at}", at) for at in revisions])
        assert log.head().revision == 2
        assert append(log, add(thing("three"))) == [3]

    def test_observers_and_waiters_are_told(self, log: VerifiableLog, clock: FakeClock) -> None:
        seen: list[int] = []
        log.observe(lambda events: seen.extend(event.revision for event in events))
        reached: list[int] = []
        waiter = threading.Thread(target=lambda: reached.append(log.wait(200, None)))
        waiter.start()
        log.import_events(STORY[:3])
        for _ in range(1000):
            waiter.join(0.01)
            if not waiter.is_alive():
                break
            clock.step(0.01)  # A log that polls returns the event at its next poll.
        assert (seen, reached) == ([100, 107, 300], [300])
        assert log.peek() in (300, None)

    def test_a_feed_and_a_cacher_follow_across_gaps(self, log: VerifiableLog, clock: FakeClock) -> None:
        append(log, add(thing("mine")))
        feed = EventWindow(log, capacity=4, clock=clock)
        cacher = Cacher(log, feed)
        log.import_events(STORY[:3])
        append(log, modify(thing("mine", spec=2), 1))
        log.import_events([recorded(ADDED, "c", 400)])
        cacher.step()
        assert [event.revision for event in feed.events_after(0)] == [1, 100, 107, 300, 301, 400]
        assert [event.revision for event in feed.events_after(107, limit=2)] == [300, 301]
        assert (feed.head(), cacher.revision) == (400, 400)
        assert [obj.name for obj in cacher.list(PODS)] == ["a", "b", "c", "mine"]
        log.import_events([recorded(MODIFIED, "c", 400 + step * 10, spec=step) for step in range(1, 9)])
        assert [event.revision for event in feed.events_after(455)] == [460, 470, 480]
        assert [event.revision for event in feed.events_after(300)] == [301, 400, *range(410, 481, 10)]

    def test_what_was_imported_can_be_compacted(self, log: VerifiableLog) -> None:
        log.import_events([recorded(ADDED if at == 10 else MODIFIED, "a", at, spec=at) for at in range(10, 100, 10)])
        append(log, modify(thing("a"), 90), add(thing("b")))
        assert log.compact(50) == 4
        assert [event.revision for event in log.scan()] == [50, 60, 70, 80, 90, 91, 92]
        assert verify(log).events == 7
        log.compact(75)
        log.compact(91)
        assert [event.revision for event in log.scan()] == [91, 92]
        assert verify(log).events == 2
        with pytest.raises(Expired):
            log.snapshot(at=80)

    def test_gaps_are_right_where_the_log_was_imported_and_nowhere_else(self, log: VerifiableLog) -> None:
        append(log, add(thing("mine")), modify(thing("mine", spec=1), 1))
        log.import_events(STORY)
        append(log, modify(thing("mine", spec=2), 2), modify(thing("mine", spec=3), 1000))
        assert verify(log).events == 9
        for gone, named in ((2, 2), (107, 300), (1000, 1000)):
            with pytest.raises(LogCorrupt) as damage:
                verify(_Without(log, gone))
            assert damage.value.revision == named

    def test_imports_go_between_the_appends_of_others(self, log: VerifiableLog) -> None:
        def write(number: int) -> None:
            for each in range(15):
                append(log, add(thing(f"mine-{number}-{each}")))

        writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
        for writer in writers:
            writer.start()
        for step in range(1, 11):
            log.import_events([recorded(ADDED, f"theirs-{step}-{each}", step * 1000 + each) for each in (5, 9)])
        for writer in writers:
            writer.join()
        assert verify(log).events == len(log.snapshot().objects) == 65

    def test_a_closed_log_takes_nothing(self, log: VerifiableLog) -> None:
        log.close()
        with pytest.raises(LogClosed):
            log.import_events(STORY)

    def test_many_places_at_once(self, log: VerifiableLog) -> None:
        pods = [recorded(ADDED, f"pod-{number:03}", 10 * number + 10) for number in range(500)]
        log.import_events(pods)
        log.import_events(
            [each._replace(type=DELETED, object=each.object.at(each.object.revision + 6000)) for each in pods[:300]]
        )
        assert len(log.snapshot().objects) == 200
        assert len(log.snapshot(at=5000).objects) == 500
        assert verify(log).events == 800


class _Without:
    """A log from which one event was removed."""

    def __init__(self, log: VerifiableLog, revision: int) -> None:
        self.head, self.floor, self.epochs, self.imports = log.head, log.floor, log.epochs, log.imports
        self._log = log
        self._revision = revision

    def stored(self, *, start: int = 1) -> Iterator[Stored]:
        return (each for each in self._log.stored(start=start) if each.event.revision != self._revision)
