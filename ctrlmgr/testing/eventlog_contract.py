"""Defines the contract of an event log as tests, which run on every implementation of a log.

To test a log, subclass `EventLogContract` in a test module. The module must provide a fixture `log` with an empty, open
log that uses the `FakeClock` of the fixture `clock`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, PODS, SERVICES, Key
from ctrlmgr.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Fenced,
    LogClosed,
    NotFound,
)
from ctrlmgr.eventlog import (
    Appending,
    Author,
    Cause,
    Event,
    EventLog,
    EventType,
    Fence,
    Outcome,
    Proposal,
    verify,
)
from ctrlmgr.eventlog.verification import Verifiable
from ctrlmgr.testing.fake_clock import FakeClock

AUTHOR = Author("alice", "kubectl/v1.36.2")


class VerifiableLog(EventLog, Verifiable, Protocol):
    """The type of the tested logs: every implementation of a log that can be verified."""


def thing(name: str, *, namespace: str = "shop", kind: str = "Pod", **fields: object) -> Object:
    """Return an object of a kind, with a uid and the given fields."""
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
    return Object.from_dict({"kind": kind, "apiVersion": "v1", "metadata": metadata, **fields})


def add(obj: Object) -> Proposal:
    """Return a proposal to create `obj`."""
    return Proposal(EventType.ADDED, obj, 0)


def modify(obj: Object, expected: int | None) -> Proposal:
    """Return a proposal to change an object at a revision."""
    return Proposal(EventType.MODIFIED, obj, expected)


def remove(obj: Object, expected: int | None) -> Proposal:
    """Return a proposal to delete an object at a revision."""
    return Proposal(EventType.DELETED, obj, expected)


def names(objects: Sequence[Object]) -> list[str]:
    """Return the names of objects in the given order."""
    return [obj.name for obj in objects]


class EventLogContract:
    """The tests that every event log must pass."""

    def put(self, log: EventLog, *proposals: Proposal, author: Author = AUTHOR) -> Sequence[Event]:
        """Append all proposals in one append."""
        return log.append(proposals, author=author)

    # Tests of revisions and conditions.

    def test_revisions_count_from_one_without_gaps_whatever_is_refused(self, log: VerifiableLog) -> None:
        assert log.head().revision == 0
        assert [event.revision for event in self.put(log, add(thing("a")), add(thing("b")))] == [1, 2]
        with pytest.raises(AlreadyExists):
            self.put(log, add(thing("a")))
        assert [event.revision for event in self.put(log, add(thing("c")))] == [3]
        assert log.head().revision == 3

    def test_a_peek_is_the_head_or_nothing(self, log: VerifiableLog) -> None:
        for expected in (0, 2, 3):
            assert log.peek() in (log.head().revision, None)
            assert log.head().revision == expected
            self.put(log, *([add(thing("a")), add(thing("b"))] if not expected else [modify(thing("a"), None)]))

    def test_creating_what_exists_is_refused(self, log: VerifiableLog) -> None:
        self.put(log, add(thing("a")))
        with pytest.raises(AlreadyExists, match='pods "a" already exists'):
            self.put(log, add(thing("a")))

    def test_creating_at_a_revision_makes_no_sense(self, log: VerifiableLog) -> None:
        with pytest.raises(BadRequest):
            log.append([Proposal(EventType.ADDED, thing("a"), 3)], author=AUTHOR)

    def test_an_append_without_proposals_makes_no_sense(self, log: VerifiableLog) -> None:
        with pytest.raises(BadRequest):
            log.append([], author=AUTHOR)

    @pytest.mark.parametrize("propose", [modify, remove])
    def test_changing_what_does_not_exist_is_refused(self, log: VerifiableLog, propose: type) -> None:
        with pytest.raises(NotFound, match='pods "a" not found'):
            self.put(log, propose(thing("a"), 1))
        with pytest.raises(NotFound):
            self.put(log, propose(thing("a"), None))

    @pytest.mark.parametrize("propose", [modify, remove])
    def test_changing_from_a_stale_revision_is_refused(self, log: VerifiableLog, propose: type) -> None:
        self.put(log, add(thing("a")))
        self.put(log, modify(thing("a", spec=1), 1))
        with pytest.raises(Conflict, match="the object has been modified") as refused:
            self.put(log, propose(thing("a", spec=2), 1))
        assert (refused.value.expected, refused.value.actual) == (1, 2)
        self.put(log, propose(thing("a", spec=2), 2))

    def test_an_importer_may_expect_any_revision(self, log: VerifiableLog) -> None:
        self.put(log, add(thing("a")))
        event = self.put(log, modify(thing("a", spec=1), None), remove(thing("a", spec=1), None))[-1]
        assert (event.revision, event.previous, event.type) == (3, 2, EventType.DELETED)

    def test_one_refused_proposal_refuses_the_whole_append(self, log: VerifiableLog) -> None:
        self.put(log, add(thing("a")))
        with pytest.raises(Conflict):
            self.put(log, add(thing("b")), modify(thing("a"), 7), add(thing("c")))
        assert names(log.snapshot().objects) == ["a"]
        assert log.head().revision == 1

    def test_one_append_may_touch_a_place_more_than_once(self, log: VerifiableLog) -> None:
        events = self.put(
            log,
            add(thing("a")),
            modify(thing("a", spec=1), 1),
            add(thing("b")),
            remove(thing("a", spec=1), None),
            add(thing("a", spec=2)),
        )
        assert [(event.revision, event.previous) for event in events] == [(1, 0), (2, 1), (3, 0), (4, 2), (5, 4)]
        assert log.snapshot().objects[0].to_dict()["spec"] == 2

    def test_an_append_sees_what_it_has_done_itself(self, log: VerifiableLog) -> None:
        with pytest.raises(AlreadyExists):
            self.put(log, add(thing("a")), add(thing("a")))
        with pytest.raises(NotFound):
            self.put(log, add(thing("a")), remove(thing("a"), 1), modify(thing("a"), None))
        assert log.head().revision == 0

    def test_what_was_deleted_can_be_created_again(self, log: VerifiableLog) -> None:
        self.put(log, add(thing("a")))
        self.put(log, remove(thing("a"), 1))
        with pytest.raises(NotFound):
            self.put(log, modify(thing("a"), 2))
        event = self.put(log, add(thing("a")))[0]
        assert (event.revision, event.previous) == (3, 2)

    def test_places_differ_by_resource_namespace_and_name(self, log: VerifiableLog) -> None:
        self.put(log, add(thing("a")), add(thing("a", namespace="bank")), add(thing("a", kind="Service")))
        assert len(log.snapshot().objects) == 3

    # Tests of the content of an event.

    def test_events_record_who_wrote_what_when(self, log: VerifiableLog, clock: FakeClock) -> None:
        clock.set(1_700_000_000_000_000)
        written = self.put(log, add(thing("a", spec={"b": "ü"})))[0]
        read = log.events_after(0)[0]
        for event in (written, read):
            assert (event.actor, event.user_agent) == ("alice", "kubectl/v1.36.2")
            assert event.recorded_at == 1_700_000_000_000_000
            assert (event.term, event.reconcile) == (0, 0)
            assert event.object.to_dict()["spec"] == {"b": "ü"}
            assert event.object.to_dict()["metadata"]["resourceVersion"] == "1"
            assert (event.resource, event.key) == (PODS, Key("shop", "a"))
        assert (written.hash, written.append_id) == (read.hash, read.append_id)

    def test_the_events_of_one_append_share_its_id(self, log: VerifiableLog) -> None:
        first = self.put(log, add(thing("a")), add(thing("b")))
        second = self.put(log, add(thing("c")))
        assert first[0].append_id == first[1].append_id != second[0].append_id

    def test_a_reconcile_keeps_all_its_triggers_and_how_it_ended(self, log: VerifiableLog) -> None:
        self.put(log, add(thing("a")), add(thing("b")))
        cause = Cause(77, "endpoint-controller", "shop/a", 2, 1_700_000_000_000_000, (1, 2))
        event = log.append([add(thing("c"))], author=AUTHOR, cause=cause)[0]
        log.append([add(thing("d"))], author=AUTHOR, cause=cause)
        assert event.reconcile == 77
        running = log.reconcile(77)
        assert running is not None
        assert running.cause == cause
        assert running.outcome is None
        log.finish(77, Outcome(1500, "ok"))
        log.flush()
        ended = log.reconcile(77)
        assert ended is not None
        assert (ended.cause, ended.outcome) == (cause, Outcome(1500, "ok"))
        assert log.reconcile(78) is None

    # Fencing.

    def test_an_append_of_an_old_term_is_fenced(self, log: VerifiableLog) -> None:
        lease = "kube-system/ctrlmgr"
        log.append([add(thing("a"))], author=AUTHOR, fence=Fence(lease, 1, takeover=True))
        log.append([add(thing("b"))], author=AUTHOR, fence=Fence(lease, 1))
        log.append([add(thing("c"))], author=AUTHOR, fence=Fence(lease, 3, takeover=True))
        for stale in (Fence(lease, 1), Fence(lease, 2), Fence(lease, 2, takeover=True), Fence(lease, 3, takeover=True)):
            with pytest.raises(Fenced):
                log.append([add(thing("x"))], author=AUTHOR, fence=stale)
        assert log.append([add(thing("d"))], author=AUTHOR, fence=Fence(lease, 3))[0].term == 3
        assert [event.term for event in log.events_after(0)] == [1, 1, 3, 3]

    def test_leases_have_terms_of_their_own(self, log: VerifiableLog) -> None:
        log.append([add(thing("a"))], author=AUTHOR, fence=Fence("one", 5, takeover=True))
        with pytest.raises(Fenced):
            log.append([add(thing("b"))], author=AUTHOR, fence=Fence("two", 5))
        log.append([add(thing("b"))], author=AUTHOR, fence=Fence("two", 1, takeover=True))

    def test_a_refused_takeover_starts_no_term(self, log: VerifiableLog) -> None:
        with pytest.raises(NotFound):
            log.append([modify(thing("a"), 1)], author=AUTHOR, fence=Fence("one", 1, takeover=True))
        with pytest.raises(Fenced):
            log.append([add(thing("a"))], author=AUTHOR, fence=Fence("one", 1))

    # Reading.

    def test_events_after_a_revision_come_in_order_up_to_a_limit(self, log: VerifiableLog) -> None:
        self.put(log, *(add(thing(f"p{i}")) for i in range(10)))
        assert [event.revision for event in log.events_after(3, limit=4)] == [4, 5, 6, 7]
        assert [event.revision for event in log.events_after(8)] == [9, 10]
        assert list(log.events_after(10)) == []
        assert list(log.events_after(99)) == []

    def test_events_can_be_read_of_one_resource(self, log: VerifiableLog) -> None:
        for i in range(6):
            self.put(log, add(thing(f"x{i}", kind="Service" if i % 2 else "Pod")))
        assert [event.revision for event in log.events_after(0, resource=SERVICES)] == [2, 4, 6]
        assert [event.revision for event in log.events_after(0, resource=SERVICES, limit=2)] == [2, 4]

    def test_snapshots_show_the_state_at_every_revision(self, log: VerifiableLog) -> None:
        self.put(log, add(thing("a", spec=1)))
        self.put(log, add(thing("b")), modify(thing("a", spec=2), 1))
        self.put(log, remove(thing("b"), 2))
        self.put(log, add(thing("b")))
        expected = [[], ["a@1"], ["a@1", "b@2"], ["a@3", "b@2"], ["a@3"], ["a@3", "b@5"]]
        for revision, states in enumerate(expected):
            snapshot = log.snapshot(at=revision)
            assert snapshot.revision == revision
            assert [f"{obj.name}@{obj.revision}" for obj in snapshot.objects] == states
        assert [f"{obj.name}@{obj.revision}" for obj in log.snapshot().objects] == expected[-1]
        with pytest.raises(BadRequest, match="beyond the head"):
            log.snapshot(at=6)

    def test_states_are_those_of_the_objects_asked_for(self, log: VerifiableLog) -> None:
        many = [thing(f"p-{number}") for number in range(250)]
        self.put(log, *map(add, many))
        self.put(log, add(thing("s", kind="Service")), modify(thing("p-0", spec=1), 1), remove(many[1], 2))
        keys = {each.key for each in many} | {Key("other", "p-8")}
        for at in (250, 253):
            assert log.states(PODS, keys, at=at) == {each.key: each for each in log.snapshot(PODS, at=at).objects}
        assert [*log.states(PODS, [Key("shop", "p-7"), Key("other", "p-8")], at=253)] == [Key("shop", "p-7")]
        assert log.states(SERVICES, keys, at=253) == log.states(PODS, [], at=253) == {}

    def test_snapshots_are_sorted_and_can_be_narrowed(self, log: VerifiableLog) -> None:
        self.put(
            log, add(thing("b")), add(thing("a", namespace="zoo")), add(thing("a")), add(thing("s", kind="Service"))
        )
        keys = [(str(obj.resource), str(obj.key)) for obj in log.snapshot().objects]
        assert keys == [("pods", "shop/a"), ("pods", "shop/b"), ("pods", "zoo/a"), ("services", "shop/s")]
        assert names(log.snapshot(PODS, namespace="shop").objects) == ["a", "b"]
        assert names(log.snapshot(SERVICES).objects) == ["s"]
        assert names(log.snapshot(PODS, namespace="shop", at=1).objects) == ["b"]

    def test_several_resources_can_be_read_as_of_one_revision(self, log: VerifiableLog) -> None:
        self.put(log, add(thing("b")), add(thing("s", kind="Service")))
        self.put(log, add(thing("a")), remove(thing("s", kind="Service"), 2))
        for at in (2, 3, 4):
            found = log.snapshots([SERVICES, PODS, NODES], at=at)
            assert found == {each: log.snapshot(each, at=at) for each in (PODS, SERVICES, NODES)}
        assert [names(each.objects) for each in log.snapshots([PODS, SERVICES], at=2).values()] == [["b"], ["s"]]
        assert log.snapshots([], at=2) == {}
        with pytest.raises(BadRequest, match="beyond the head"):
            log.snapshots([PODS], at=5)
        log.compact(3, resource=SERVICES)
        assert names(log.snapshots([PODS], at=2)[PODS].objects) == ["b"]
        with pytest.raises(Expired):
            log.snapshots([PODS, SERVICES], at=2)

    def test_one_object_can_be_read_now_and_then(self, log: VerifiableLog) -> None:
        self.put(log, add(thing("a", spec=1)))
        self.put(log, modify(thing("a", spec=2), 1))
        self.put(log, remove(thing("a", spec=2), 2))
        read = [log.get(PODS, Key("shop", "a"), at=revision) for revision in range(4)]
        assert [obj and obj.revision for obj in read] == [None, 1, 2, None]
        assert log.get(PODS, Key("shop", "a")) is None
        assert log.get(SERVICES, Key("shop", "a"), at=1) is None

    def test_a_moment_has_a_revision(self, log: VerifiableLog, clock: FakeClock) -> None:
        for second in (10, 20, 20, 30):
            clock.set(second * 1_000_000)
            self.put(log, add(thing(f"p{log.head().revision}")))
        assert [log.revision_at(second * 1_000_000) for second in (9, 10, 19, 20, 29, 30, 99)] == [0, 1, 1, 3, 3, 4, 4]

    # Following.

    def test_waiting_ends_when_the_head_is_beyond(self, log: VerifiableLog) -> None:
        self.put(log, add(thing("a")))
        assert log.wait(0, None) == 1
        assert log.wait(1, 0.0) == 1

    def test_a_waiter_is_woken_by_an_append(self, log: VerifiableLog, clock: FakeClock) -> None:
        woken: list[int] = []
        waiter = threading.Thread(target=lambda: woken.append(log.wait(0, None)))
        waiter.start()
        self.put(log, add(thing("a")))
        for _ in range(1000):
            waiter.join(0.01)
            if not waiter.is_alive():
                break
            clock.step(0.01)  # A log that polls returns the event at its next poll.
        assert woken == [1]

    def test_closing_ends_every_wait(self, log: VerifiableLog) -> None:
        ended: list[type[BaseException]] = []

        def wait() -> None:
            try:
                log.wait(0, None)
            except LogClosed as error:
                ended.append(type(error))

        waiter = threading.Thread(target=wait)
        waiter.start()
        log.close()
        waiter.join(10)
        assert ended == [LogClosed]

    def test_observers_see_each_commit_in_order(self, log: VerifiableLog) -> None:
        seen: list[int] = []
        log.observe(lambda events: seen.extend(event.revision for event in events))
        writers = [
            threading.Thread(target=lambda n=n: [self.put(log, add(thing(f"p{n}-{i}"))) for i in range(20)])
            for n in range(4)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert seen == list(range(1, 81))

    def test_a_submitted_append_calls_back_once(self, log: VerifiableLog) -> None:
        ended: list[Appending] = []
        pending = log.submit([add(thing("a"))], author=AUTHOR)
        assert pending.result(10)[0].revision == 1
        log.flush()
        pending.add_done_callback(ended.append)
        assert ended == [pending]
        refused = log.submit([add(thing("a"))], author=AUTHOR)
        with pytest.raises(AlreadyExists):
            refused.result(10)

    def test_a_tailing_reader_misses_nothing_while_many_append(self, log: VerifiableLog) -> None:
        writers, each = 8, 40
        seen: list[int] = []

        def tail() -> None:
            while len(seen) < writers * each:
                seen.extend(event.revision for event in log.events_after(len(seen), limit=7))

        def write(number: int) -> None:
            for i in range(each):
                self.put(log, add(thing(f"p{number}-{i}")))

        threads = [threading.Thread(target=tail), *(threading.Thread(target=write, args=(n,)) for n in range(writers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert seen == list(range(1, writers * each + 1))

    def test_of_many_who_change_one_object_at_a_time_one_wins(self, log: VerifiableLog) -> None:
        self.put(log, add(thing("a")))
        won: list[int] = []
        start = threading.Barrier(8)

        def race() -> None:
            start.wait()
            with suppress(Conflict):
                won.append(self.put(log, modify(thing("a", spec=1), 1))[0].revision)

        racers = [threading.Thread(target=race) for _ in range(8)]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        assert won == [2]

    # Compaction.

    def test_compaction_keeps_each_objects_newest_state(self, log: VerifiableLog) -> None:
        self.history(log)
        before = log.snapshot().objects
        assert log.compact(5) == 4
        assert [obj.wire() for obj in log.snapshot().objects] == [obj.wire() for obj in before]
        assert [event.revision for event in log.scan()] == [3, 6, 7]
        assert verify(log).head == log.head()

    def history(self, log: EventLog) -> None:
        """Append seven events: the object a changes three times, b is deleted, and c is created last."""
        self.put(log, add(thing("a")), modify(thing("a", spec=1), 1), modify(thing("a", spec=2), 2))
        self.put(log, add(thing("b")), remove(thing("b"), 4))
        self.put(log, modify(thing("a", spec=3), 3))
        self.put(log, add(thing("c")))

    def test_a_reader_that_would_miss_an_event_gets_expired(self, log: VerifiableLog) -> None:
        self.history(log)
        log.compact(5)
        for old in (0, 4):
            with pytest.raises(Expired, match=f"too old resource version: {old} \\(5\\)"):
                log.events_after(old)
            with pytest.raises(Expired):
                log.snapshot(at=old)
            with pytest.raises(Expired):
                log.get(PODS, Key("shop", "a"), at=old)
        assert [event.revision for event in log.events_after(5)] == [6, 7]
        assert [obj.revision for obj in log.snapshot(at=5).objects] == [3]
        assert [obj.revision for obj in log.snapshot(at=6).objects] == [6]

    def test_compaction_goes_class_by_class(self, log: VerifiableLog) -> None:
        self.put(log, add(thing("a")), add(thing("s", kind="Service")))
        self.put(log, modify(thing("a", spec=1), 1), modify(thing("s", kind="Service", spec=1), 2))
        assert log.compact(4, resource=PODS) == 1
        assert (log.floor(PODS), log.floor(SERVICES), log.floor()) == (4, 0, 4)
        assert [event.revision for event in log.events_after(0, resource=SERVICES)] == [2, 4]
        assert names(log.snapshot(SERVICES, at=2).objects) == ["s"]
        with pytest.raises(Expired):
            log.events_after(0, resource=PODS)
        with pytest.raises(Expired):
            log.events_after(0)
        assert verify(log).events == 3

    def test_compaction_can_keep_more_than_the_newest(self, log: VerifiableLog) -> None:
        self.put(log, add(thing("a")), *(modify(thing("a", spec=i), None) for i in range(6)))
        assert log.compact(7, keep=3) == 4
        assert [event.revision for event in log.scan()] == [5, 6, 7]
        assert log.compact(7, keep=3) == 0

    def test_compaction_forgets_deletions_but_never_the_end_of_the_log(self, log: VerifiableLog) -> None:
        self.put(log, add(thing("a")), remove(thing("a"), 1), add(thing("b")), remove(thing("b"), 3))
        log.compact(4)
        assert [event.revision for event in log.scan()] == [4]
        assert verify(log).head.revision == 4
        assert self.put(log, add(thing("a")))[0].revision == 5
        log.compact(5)
        assert [event.revision for event in log.scan()] == [5]
        assert verify(log).events == 1

    def test_floors_only_grow(self, log: VerifiableLog) -> None:
        self.history(log)
        log.compact(5)
        log.compact(2)
        assert log.floor() == 5
        log.compact(99)
        assert log.floor() == 7

    def test_compaction_forgets_the_reconciles_it_leaves_no_event_of(self, log: VerifiableLog) -> None:
        first = Cause(1, "c", "k", 1, 0, (1,))
        second = Cause(2, "c", "k", 1, 0, (2,))
        self.put(log, add(thing("a")))
        log.append([modify(thing("a", spec=1), None)], author=AUTHOR, cause=first)
        log.append([modify(thing("a", spec=2), None)], author=AUTHOR, cause=second)
        log.compact(3)
        assert log.reconcile(1) is None
        assert log.reconcile(2) is not None

    def test_a_sound_log_verifies(self, log: VerifiableLog) -> None:
        assert verify(log)[:2] == (0, log.head())
        self.history(log)
        assert verify(log)[:2] == (7, log.head())

    def test_a_closed_log_refuses(self, log: VerifiableLog) -> None:
        log.close()
        with pytest.raises(LogClosed):
            self.put(log, add(thing("a")))
        for read in (log.head, log.snapshot, lambda: log.events_after(0), lambda: list(log.scan())):
            with pytest.raises(LogClosed):
                read()
        log.close()
