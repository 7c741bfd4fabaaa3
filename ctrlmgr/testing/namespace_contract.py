"""Defines, as tests, the contract of an event log for creations in a Namespace (see `eventlog_contract`)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS
from ctrlmgr.errors import ApiError, Conflict, NotFound
from ctrlmgr.eventlog import Appending, Event, EventLog, EventType, Proposal
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.testing.eventlog_contract import AUTHOR, VerifiableLog, add, modify, names, remove, thing
from ctrlmgr.testing.fake_clock import FakeClock


def within(obj: Object, revision: int) -> Proposal:
    """Return a proposal to create `obj`, on condition that the object's Namespace still has this revision."""
    return Proposal(EventType.ADDED, obj, 0, revision)


def namespace(name: str = "shop", **fields: object) -> Object:
    """Return a Namespace."""
    return Object.from_dict(
        {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "uid": name}, **fields}
    )


def outcome(appending: Appending) -> int | type[Exception]:
    """Return the revision of an append with one proposal; if the append fails, return the type of its error."""
    try:
        return appending.result()[0].revision
    except ApiError as error:
        return type(error)


def put(log: EventLog, *proposals: Proposal) -> Sequence[Event]:
    """Append all proposals in one append."""
    return log.append(proposals, author=AUTHOR)


class NamespaceContract:
    """The tests that every event log must pass for `Proposal.within`."""

    def test_what_is_created_within_a_namespace_as_it_was_seen_is_in_it(self, log: VerifiableLog) -> None:
        put(log, add(namespace()))
        put(log, within(thing("a"), 1), within(thing("b"), 1), add(thing("c")))
        assert names(log.snapshot(PODS).objects) == ["a", "b", "c"]
        changed = put(log, modify(namespace(spec=1), 1))[0].revision
        put(log, within(thing("d"), changed))
        assert [event.previous for event in put(log, modify(namespace(spec=2), changed))] == [changed]

    def test_nothing_is_created_within_a_namespace_that_has_changed(self, log: VerifiableLog) -> None:
        put(log, add(namespace()), add(namespace("other")))
        put(log, modify(namespace(spec=1), 1))
        message = 'Operation cannot be fulfilled on namespaces "shop": the object has been modified'
        with pytest.raises(Conflict, match=message) as refused:
            put(log, within(thing("a"), 1))
        assert (refused.value.expected, refused.value.actual) == (1, 3)
        with pytest.raises(Conflict):
            put(log, add(thing("a")), within(thing("b"), 1), add(thing("c")))
        assert names(log.snapshot(PODS).objects) == []
        put(log, within(thing("a", namespace="other"), 2))

    def test_nothing_is_created_within_a_namespace_that_is_gone(self, log: VerifiableLog) -> None:
        with pytest.raises(NotFound, match='namespaces "shop" not found'):
            put(log, within(thing("a"), 1))
        put(log, add(namespace()))
        put(log, remove(namespace(), 1))
        for revision in (1, 2):
            with pytest.raises(NotFound, match='namespaces "shop" not found'):
                put(log, within(thing("a"), revision))
        put(log, add(namespace()))
        with pytest.raises(Conflict):
            put(log, within(thing("a"), 1))
        assert log.head().revision == 3

    def test_an_append_may_create_a_namespace_and_what_is_in_it(self, log: VerifiableLog) -> None:
        put(log, add(namespace()), within(thing("a"), 1))
        with pytest.raises(Conflict):
            put(log, modify(namespace(spec=1), 1), within(thing("b"), 1))
        with pytest.raises(NotFound):
            put(log, remove(namespace(), 1), within(thing("b"), 1))
        assert log.head().revision == 2

    def test_of_appends_under_way_together_each_sees_the_namespace_it_finds(self, log: VerifiableLog) -> None:
        put(log, add(namespace()))
        pending = [
            log.submit([proposal], author=AUTHOR)
            for proposal in (
                within(thing("a"), 1),
                modify(namespace(spec=1), 1),
                within(thing("b"), 1),
                within(thing("c"), 3),
                remove(namespace(spec=1), 3),
                within(thing("d"), 3),
            )
        ]
        assert [outcome(each) for each in pending] == [2, 3, Conflict, 4, 5, NotFound]

    @pytest.mark.parametrize("seed", range(5))
    def test_whatever_is_under_way_together_is_judged_one_by_one(self, log: VerifiableLog, seed: int) -> None:
        draw, model = Random(seed), MemoryEventLog(clock=FakeClock(), random=Random(seed))
        for _ in range(25):
            appends = [
                [_any_proposal(draw, model.head().revision) for _ in range(draw.choice((1, 1, 2, 3)))]
                for _ in range(draw.randrange(1, 7))
            ]
            pending = [log.submit(each, author=AUTHOR) for each in appends]
            expected = [_answer(model.submit(each, author=AUTHOR)) for each in appends]
            assert [_answer(each) for each in pending] == expected
        assert names(log.snapshot().objects) == names(model.snapshot().objects)


def _any_proposal(draw: Random, head: int) -> Proposal:
    """Return a proposal for one of a few objects in a few namespaces; the log may refuse it."""
    place = draw.choice(("shop", "other"))
    near = max(head - draw.randrange(-2, 4), 0)
    if draw.random() < 0.4:
        propose = draw.choice((modify, modify, remove))
        return add(namespace(place)) if draw.random() < 0.5 else propose(namespace(place, spec=near), None)
    obj = thing(draw.choice("abcdef"), namespace=place, spec=near)
    if draw.random() < 0.6:
        return within(obj, near)
    return Proposal(EventType.MODIFIED, obj, None, draw.choice((None, near)))


def _answer(appending: Appending) -> list[tuple[int, int]] | tuple[type[Exception], str]:
    try:
        return [(event.revision, event.previous) for event in appending.result()]
    except ApiError as error:
        return type(error), str(error)
