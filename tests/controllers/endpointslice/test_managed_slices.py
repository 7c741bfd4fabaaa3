"""Tests of the store of slices that the controller wrote: a written slice is visible at once, and is dropped when the
cache contains the write.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from ctrlmgr.api.discovery import MANAGED_BY, SERVICE_NAME
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, Key
from ctrlmgr.client import LogClient
from ctrlmgr.controllers.endpointslice.managed_slices import OwnSlices
from ctrlmgr.errors import NotFound
from ctrlmgr.eventlog.event import Author
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer import Change, EventWindow, Informers
from ctrlmgr.testing import FakeClock

WEB = Key("default", "web")
LABELS = {MANAGED_BY: "me", SERVICE_NAME: "web"}


def a_slice(name: str = "web-1", labels: dict[str, str] = LABELS) -> Object:
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return Object.from_dict({"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "metadata": metadata})


class Stage:
    """A log and its cache, which is updated on request, or with each write of a `ImmediateCacheClient` client."""

    def __init__(self, client: type[LogClient] = LogClient) -> None:
        clock = FakeClock()
        self.log = MemoryEventLog(clock=clock, random=random.Random(0))
        self.informers = Informers(self.log, EventWindow(self.log, clock=clock), clock=clock)
        slices = self.informers.informer(ENDPOINT_SLICES)
        self.own = OwnSlices(slices, "me", lambda: self.informers.revision)
        self.asked: list[Key] = []
        slices.add_handler(self._on_change)
        uids = itertools.count(1)
        author, new_uid = Author("me"), lambda: f"uid-{next(uids)}"
        self.client = client(self.log, author=author, clock=clock, new_uid=new_uid)
        self.informers.sync()

    def _on_change(self, change: Change) -> None:
        self.asked += self.own.keys(change)

    def follow(self) -> list[Key]:
        """Update the cache from the log; return the changed keys."""
        self.asked.clear()
        while self.informers.step():
            pass
        return list(self.asked)

    @property
    def names(self) -> list[str]:
        return [obj.name for obj in self.own.list(WEB)]

    @property
    def stored(self) -> Object:
        [obj] = self.log.snapshot(ENDPOINT_SLICES).objects
        return obj


class ImmediateCacheClient(LogClient):
    """A client whose creations are in the cache before the caller receives the response."""

    follow: Callable[[], object]

    def create(self, obj: Object) -> Object:
        created = super().create(obj)
        self.follow()
        return created


def create(stage: Stage) -> None:
    stage.own.writes.create(WEB, a_slice(), stage.client)


def update(stage: Stage) -> None:
    stage.own.writes.update(WEB, stage.stored.with_metadata(annotations={"a": "b"}), stage.client)


def delete(stage: Stage) -> None:
    stage.own.writes.delete(WEB, stage.stored, stage.client)


def what_shows(stage: Stage) -> list[tuple[str, int, dict[str, str]]]:
    return [(obj.name, obj.revision, dict(obj.annotations)) for obj in stage.own.list(WEB)]


@pytest.mark.parametrize(
    ("before", "write", "expected"),
    [
        pytest.param([], create, [("web-1", 1, {})], id="a creation"),
        pytest.param([create], update, [("web-1", 2, {"a": "b"})], id="an update"),
        pytest.param([create], delete, [], id="a deletion"),
        pytest.param([create, update], update, [("web-1", 2, {"a": "b"})], id="nothing new"),
    ],
)
@pytest.mark.parametrize("follows", [True, False], ids=["seen before", "seen never"])
def test_own_writes_are_visible_before_the_cache_has_them(
    before: list[Callable[[Stage], None]],
    write: Callable[[Stage], None],
    expected: list[tuple[str, int, dict[str, str]]],
    follows: bool,
) -> None:
    stage = Stage()
    for each in before:
        each(stage)
        if follows:
            assert stage.follow() == []
    write(stage)
    assert what_shows(stage) == expected
    assert stage.follow() == []
    assert what_shows(stage) == expected
    assert len(stage.own.writes) == 0, "what the cache shows is forgotten"


def test_a_write_that_the_cache_shows_first_is_checked_and_discarded() -> None:
    stage = Stage(ImmediateCacheClient)
    assert isinstance(stage.client, ImmediateCacheClient)
    stage.client.follow = stage.follow
    create(stage)
    assert stage.asked == [WEB]
    assert stage.names == ["web-1"]
    assert len(stage.own.writes) == 0


@pytest.mark.parametrize(
    ("change", "looked_at"),
    [
        pytest.param({"annotations": {"x": "y"}}, [WEB], id="any edit"),
        pytest.param({"labels": LABELS | {SERVICE_NAME: "db"}}, [Key("default", "db"), WEB], id="another service"),
        pytest.param({"labels": LABELS | {MANAGED_BY: "you"}}, [WEB], id="another manager"),
        pytest.param({"labels": {MANAGED_BY: "me"}}, [WEB], id="no service"),
    ],
)
def test_writes_of_other_clients_are_checked(change: dict[str, dict[str, str]], looked_at: list[Key]) -> None:
    stage = Stage()
    create(stage)
    stage.follow()
    stage.client.update(stage.stored.with_metadata(**change))
    assert stage.follow() == looked_at
    stage.client.delete(stage.stored)
    assert set(stage.follow()) <= {WEB, Key("default", "db")}


@pytest.mark.parametrize("labels", [{}, {SERVICE_NAME: "web"}, {MANAGED_BY: "you", SERVICE_NAME: "web"}])
def test_slices_of_other_controllers_are_invisible(labels: dict[str, str]) -> None:
    stage = Stage()
    stage.client.create(a_slice(labels=labels))
    assert stage.follow() == []
    assert stage.names == []


def test_later_changes_of_other_clients_are_visible_when_the_cache_has_them() -> None:
    stage = Stage()
    create(stage)
    update(stage)
    stage.client.update(stage.stored.with_metadata(annotations={"theirs": "too"}))
    assert what_shows(stage) == [("web-1", 2, {"a": "b"})]
    assert stage.follow() == [WEB]
    assert what_shows(stage) == [("web-1", 3, {"theirs": "too"})]


def test_a_slice_marked_for_deletion_is_invisible() -> None:
    stage = Stage()
    stage.client.create(a_slice().with_metadata(finalizers=["example.com/hold"]))
    stage.follow()
    delete(stage)
    assert stage.names == []
    stage.follow()
    assert stage.names == []


def test_updating_a_deleted_slice_conflicts_and_deleting_it_is_no_error() -> None:
    stage = Stage()
    create(stage)
    gone = stage.stored
    stage.client.delete(gone)
    with pytest.raises(NotFound):
        stage.own.writes.update(WEB, gone.with_metadata(annotations={"a": "b"}), stage.client)
    stage.own.writes.delete(WEB, gone, stage.client)
    stage.follow()
    assert stage.names == []
