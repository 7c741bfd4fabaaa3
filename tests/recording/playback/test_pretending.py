"""Tests of writes that the server answers but does not store."""

from __future__ import annotations

import msgspec
import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import INTERNAL_API_VERSION
from ctrlmgr.errors import AlreadyExists, Conflict, NotFound
from ctrlmgr.eventlog import Author, Proposal
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.playback import pretended_writes
from ctrlmgr.recording.playback.pretended_writes import PretendedWrites
from tests.recording.playback.stage import ADDED, CONFIG_MAPS, DELETED, MODIFIED, A, config_map, played, versions

ME = Author("me", "kubectl/v1.36")


def new() -> PretendedWrites:
    return PretendedWrites(lambda: ("2026-01-01T00:00:03.000000Z", "2030-05-06T07:08:09.000000Z"))


@pytest.mark.parametrize(
    ("type_", "name", "expected", "answered"),
    [(ADDED, "new", 0, 251), (MODIFIED, "b", 250, 250), (MODIFIED, "b", None, 250), (DELETED, "a", 251, 251)],
)
def test_a_simulated_write_is_answered_like_a_real_one(
    type_: EventType, name: str, expected: int | None, answered: int
) -> None:
    log = played(4, new())
    before = versions(log)
    (event,) = log.append([Proposal(type_, config_map(name, 0, color="blue"), expected)], author=ME)
    assert (event.type, event.object.labels, event.object.revision) == (type_, {"color": "blue"}, answered)
    assert versions(log) == before
    assert log.revision == 251
    assert list(log.events_after(251)) == []


@pytest.mark.parametrize(
    ("type_", "name", "expected", "refusal"),
    [
        (ADDED, "a", 0, AlreadyExists),
        (MODIFIED, "a", 100, Conflict),
        (MODIFIED, "new", None, NotFound),
        (DELETED, "a", 100, Conflict),
    ],
)
def test_an_invalid_write_is_refused(
    type_: EventType, name: str, expected: int | None, refusal: type[Exception]
) -> None:
    writes = new()
    with pytest.raises(refusal):
        played(4, writes).append([Proposal(type_, config_map(name, 0), expected)], author=ME)
    assert writes.count == 0


def test_writes_are_remembered_except_internal_ones() -> None:
    writes = new()
    log = played(4, writes)
    internal = Object.from_dict({"kind": "Claim", "apiVersion": INTERNAL_API_VERSION, "metadata": {"name": "30000"}})
    log.append([Proposal(ADDED, internal, 0), Proposal(MODIFIED, config_map("a", 0, color="blue"), 251)], author=ME)
    log.append([Proposal(DELETED, config_map("b", 0), 250)], author=ME)
    first, second = writes.after(0, 10)
    assert (first.number, first.verb, first.resource, first.namespace, first.name) == (
        1,
        "change",
        "configmaps",
        "shop",
        "a",
    )
    assert (first.user, first.user_agent, first.at) == ("me", "kubectl/v1.36", 251)
    assert (first.recorded_time, first.time) == ("2026-01-01T00:00:03.000000Z", "2030-05-06T07:08:09.000000Z")
    assert msgspec.json.decode(first.object)["metadata"]["labels"] == {"color": "blue"}
    assert (second.number, second.verb, second.name) == (2, "delete", "b")
    assert writes.after(1, 10) == [second]
    assert writes.after(0, 1) == [first]


def test_the_oldest_writes_are_discarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretended_writes, "KEPT", 2)
    writes = new()
    log = played(4, writes)
    for color in ("red", "green", "blue"):
        log.append([Proposal(MODIFIED, config_map("a", 0, color=color), 251)], author=ME)
    assert [write.number for write in writes.after(0, 10)] == [2, 3]
    assert writes.count == 3
    assert log.get(CONFIG_MAPS, A) is not None
