"""Tests of recordings of custom kinds while CustomResourceDefinitions are created, changed and deleted."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SERVICES, Resource
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.capture.cluster_client import Served
from ctrlmgr.recording.capture.custom_kind_capture import CustomKinds, KindDeleted, KindMoved, KindServed

ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED
WIDGETS = Resource("example.com", "widgets")
WHERE = Served(WIDGETS, "/apis/example.com/v1", True)


def definition(revision: int, *served: str, established: bool = True, scope: str = "Namespaced") -> Object:
    spec: dict[str, Any] = {"group": "example.com", "scope": scope, "names": {"plural": "widgets", "kind": "Widget"}}
    spec["versions"] = [
        {"name": name, "served": name in served, "storage": name == "v1", "schema": {"openAPIV3Schema": {}}}
        for name in ("v1", "v2beta1")
    ]
    return Object.from_dict(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com", "resourceVersion": str(revision)},
            "spec": spec,
            "status": {"conditions": [{"type": "Established", "status": "True" if established else "False"}]},
        }
    )


def test_recording_of_a_kind_starts_at_its_establishment_and_ends_with_its_definition() -> None:
    kinds = CustomKinds()
    assert [*kinds.changed(ADDED, definition(1, "v1", established=False))] == []
    assert [*kinds.changed(MODIFIED, definition(2, "v1"))] == [KindServed(WHERE, 2)]
    assert [*kinds.changed(MODIFIED, definition(3, "v1"))] == []
    assert [*kinds.changed(DELETED, definition(4, "v1"))] == [KindDeleted(WIDGETS, 4)]
    assert [*kinds.changed(ADDED, definition(5, "v1"))] == [KindServed(WHERE, 5)]


def test_another_version_is_watched_when_the_first_is_no_longer_served() -> None:
    kinds = CustomKinds()
    assert [*kinds.changed(ADDED, definition(1, "v1", "v2beta1"))] == [KindServed(WHERE, 1)]
    assert [*kinds.changed(MODIFIED, definition(2, "v2beta1"))] == [
        KindMoved(WHERE._replace(path="/apis/example.com/v2beta1"))
    ]
    assert [*kinds.changed(MODIFIED, definition(3, "v1", "v2beta1"))] == []
    # the definition is not deleted yet, because its objects are still stored
    assert [*kinds.changed(MODIFIED, definition(4))] == []


def test_a_list_of_definitions_reveals_missed_changes() -> None:
    kinds = CustomKinds()
    kinds.known(Served(SERVICES, "/api/v1", True))
    there = definition(7, "v1")
    assert [*kinds.listed({there.key: there}, 9)] == [KindServed(WHERE, 0)]
    assert [*kinds.listed({there.key: there}, 10)] == []
    assert [*kinds.listed({}, 12)] == [KindDeleted(WIDGETS, 12)]


def test_a_kind_recorded_from_the_beginning_is_not_started_again() -> None:
    kinds, there = CustomKinds(), definition(7, "v1")
    kinds.known(WHERE)
    assert [*kinds.listed({there.key: there}, 9)] == []
    assert [*kinds.changed(DELETED, definition(11, "v1"))] == [KindDeleted(WIDGETS, 11)]


def test_only_kinds_of_the_recorded_namespace_are_recorded() -> None:
    assert [*CustomKinds("shop").changed(ADDED, definition(1, "v1", scope="Cluster"))] == []
