"""Tests that generic components handle a custom kind as soon as its CustomResourceDefinition exists."""

from __future__ import annotations

import pytest

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.custom_kinds import Follower, follow_definitions
from ctrlmgr.controllers.garbage_collector import Options
from ctrlmgr.controllers.garbage_collector.controller import build
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.informer import Change, Informer, Informers
from ctrlmgr.manager import Controller
from tests.controllers.customresourcedefinitions.defined import (
    GROUP,
    WIDGETS,
    DefinedStage,
    EverythingStage,
    NamespaceStage,
    widget,
)
from tests.controllers.stage_context import StageContext

WIDGET = Resource(GROUP, "widgets")


class InstanceChanges(Follower):
    """A handler that records every change of instances."""

    def __init__(self, informers: Informers) -> None:
        self.changes: list[Change] = []
        self.known: dict[Resource, Informer] = {}
        self.gone: list[Resource] = []
        follow_definitions(informers, self)

    def begin(self, definition: Definition, resource: Resource, instances: Informer) -> None:
        if resource not in self.known:
            self.known[resource] = instances
            instances.add_handler(self.changes.append)

    def end(self, definition: Definition, resource: Resource) -> None:
        self.gone.append(resource)


def heard(stage: DefinedStage) -> InstanceChanges:
    """Return the events that a newly opened watch receives."""
    informers = Informers(stage.log, stage.feed, clock=stage.clock)
    recorded = InstanceChanges(informers)
    informers.sync()
    return recorded


def test_an_old_informer_equals_a_new_one() -> None:
    stage = DefinedStage()
    early_informers = Informers(stage.log, stage.feed, clock=stage.clock)
    early = InstanceChanges(early_informers)
    early_informers.sync()
    stage.define()
    for name in ("a", "b"):
        stage.send("POST", WIDGETS, widget(name))
    stage.send("DELETE", f"{WIDGETS}/a")
    stage.feed.catch_up()
    while early_informers.step():
        pass
    late = heard(stage)
    assert [each.name for each in early.known[WIDGET].lister.list()] == ["b"]
    assert early.known[WIDGET].lister.list() == late.known[WIDGET].lister.list()
    assert [(each.type.name, each.object.name) for each in early.changes] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("DELETED", "a"),
    ]
    assert [(each.type.name, each.object.name) for each in late.changes] == [("ADDED", "b")]


def test_an_informer_of_an_undefined_kind_is_refused() -> None:
    stage = DefinedStage()
    with pytest.raises(RuntimeError, match="after the sync"):
        stage.informers.informer(Resource("example.com", "gadgets"))


def test_a_namespace_is_deleted_with_its_custom_objects() -> None:
    stage = NamespaceStage()
    stage.define()
    stage.send("POST", WIDGETS, widget() | {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    stage.send("DELETE", "/api/v1/namespaces/shop")
    stage.work()
    conditions = stage.send("GET", "/api/v1/namespaces/shop").body["status"]["conditions"]
    messages = {each["type"]: each["message"] for each in conditions}
    assert (
        messages["NamespaceContentRemaining"]
        == "Some resources are remaining: widgets.example.com has 1 resource instances"
    )
    stage.patch(f"{WIDGETS}/a", {"metadata": {"finalizers": None}})
    stage.work()
    assert stage.send("GET", "/api/v1/namespaces/shop").code == 404
    assert stage.send("GET", f"/apis/{GROUP}/v1/widgets").body["items"] == []


class CollectorStage(EverythingStage):
    def made(self) -> Controller:
        return build(StageContext(self), Options())


def owned_by(uid: str, kind: str, name: str = "o") -> dict[str, object]:
    api_version = "v1" if kind == "ConfigMap" else f"{GROUP}/v1"
    return {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}]}


def test_custom_objects_can_be_owners_and_dependents() -> None:
    stage = CollectorStage()
    stage.define()
    config_maps = "/api/v1/namespaces/shop/configmaps"
    root = stage.create(config_maps, {"metadata": {"name": "o"}})
    middle = stage.create(
        WIDGETS, widget() | {"metadata": {"name": "o", **owned_by(root["metadata"]["uid"], "ConfigMap")}}
    )
    stage.create(config_maps, {"metadata": {"name": "leaf", **owned_by(middle["metadata"]["uid"], "Widget")}})
    stage.work()
    assert stage.send("GET", f"{config_maps}/leaf").code == 200
    stage.delete(f"{config_maps}/o")
    stage.work()
    assert stage.send("GET", f"{WIDGETS}/o").code == 404
    assert stage.send("GET", f"{config_maps}/leaf").code == 404


def test_references_to_an_unknown_kind_are_resolved_after_its_definition() -> None:
    stage = CollectorStage()
    config_maps = "/api/v1/namespaces/shop/configmaps"
    stage.create(
        config_maps, {"metadata": {"name": "leaf", **owned_by("11111111-2222-3333-4444-555555555555", "Widget")}}
    )
    stage.work()
    assert stage.send("GET", f"{config_maps}/leaf").code == 200
    stage.define()
    stage.work()
    assert stage.send("GET", f"{config_maps}/leaf").code == 404
