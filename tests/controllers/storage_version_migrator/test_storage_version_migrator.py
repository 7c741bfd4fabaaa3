"""Tests of the storage version migrator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.api.resource import DEFINITIONS, Resource
from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.storage_version_migrator.controller import MIGRATIONS, build
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.kinds.builtin import builtin_kinds
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

PATH = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = Resource("shop.example", "widgets")


@pytest.fixture
def stage() -> Iterator[WorkedStage]:
    switch({"StorageVersionMigrator": True})
    kinds = builtin_kinds(served=["storagemigration.k8s.io/v1beta1"])
    yield WorkedStage(lambda stage: build(StageContext(stage), NoOptions()), kinds=kinds)
    switch({})


def migrate(stage: WorkedStage, name: str = "m", group: str = "", resource: str = "namespaces") -> None:
    spec = {"resource": {"group": group, "resource": resource}}
    stage.create(PATH, {"metadata": {"name": name}, "spec": spec})


def conditions(stage: WorkedStage, name: str = "m") -> dict[str, tuple[str, str, str]]:
    found = stage.stored(MIGRATIONS, name)
    assert found is not None
    listed = found.to_dict().get("status", {}).get("conditions", [])
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in listed}


def test_a_migration_succeeds(stage: WorkedStage) -> None:
    stage.create("/api/v1/namespaces", {"metadata": {"name": "a"}})
    before = stage.log.head().revision
    migrate(stage)
    stage.work()
    assert conditions(stage) == {
        "Running": ("False", "MigrationCompleted", "Migration completed"),
        "Succeeded": ("True", "StorageVersionMigrationSucceeded", ""),
    }
    found = stage.stored(MIGRATIONS, "m")
    assert found is not None
    assert int(found.to_dict()["status"]["resourceVersion"]) > before
    assert {type_ for type_, name in stage.written() if name.endswith("a")} == set()  # the object has its final form


def test_an_unknown_resource_fails_after_a_minute(stage: WorkedStage) -> None:
    migrate(stage, resource="nothings")
    stage.work()
    assert [*conditions(stage)] == ["Running"]
    stage.pass_by(61)
    assert conditions(stage)["Failed"][1:] == (
        "StorageVersionMigrationFailed",
        "resource does not exist in discovery",
    )
    assert conditions(stage)["Running"][0] == "False"


def test_a_resource_without_the_verbs_fails(stage: WorkedStage) -> None:
    migrate(stage, resource="bindings")
    stage.work()
    assert "does not support discovery operations: [update patch list]" in conditions(stage)["Failed"][2]


def test_migrations_of_a_resource_run_one_after_the_other(stage: WorkedStage) -> None:
    migrate(stage, "b")
    migrate(stage, "a")
    stage.work()
    running = [name for type_, name in stage.written()]
    assert running.index("a") < running.index("b")
    assert all("Succeeded" in conditions(stage, name) for name in ("a", "b"))


def crd(storage: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": name, "served": True, "storage": name == storage, "schema": schema} for name in ("v1", "v2")]
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "shop.example", "scope": "Cluster", "names": names, "versions": versions}
    return {"metadata": {"name": "widgets.shop.example"}, "spec": spec}


def test_custom_objects_are_stored_in_the_storage_version(stage: WorkedStage) -> None:
    stage.create(CRDS, crd("v1"))
    accepted = {"acceptedNames": crd("v1")["spec"]["names"], "storedVersions": ["v1"]}
    types = ("NamesAccepted", "Established")
    accepted["conditions"] = [{"type": each, "status": "True"} for each in types]
    stage.patch(f"{CRDS}/widgets.shop.example/status", {"status": accepted})
    refresh(stage)
    stage.create(
        "/apis/shop.example/v1/widgets", {"apiVersion": "shop.example/v1", "kind": "Widget", "metadata": {"name": "w"}}
    )
    stage.patch(f"{CRDS}/widgets.shop.example", {"spec": {"versions": crd("v2")["spec"]["versions"]}})
    stage.patch(f"{CRDS}/widgets.shop.example/status", {"status": {"storedVersions": ["v1", "v2"]}})
    refresh(stage)
    assert stored_version(stage) == "shop.example/v1"
    migrate(stage, group="shop.example", resource="widgets")
    stage.work()
    assert stored_version(stage) == "shop.example/v2"
    definition = stage.stored(DEFINITIONS, "widgets.shop.example")
    assert definition is not None
    status = definition.to_dict()["status"]
    assert status["storedVersions"] == ["v2"]
    (condition,) = (each for each in status["conditions"] if each["type"] == "StorageMigrating")
    assert (condition["status"], condition["reason"]) == ("False", "MigrationSucceeded")


def refresh(stage: WorkedStage) -> None:
    stage.hear()
    stage.kinds.refresh(stage.log.snapshot(DEFINITIONS).objects)


def stored_version(stage: WorkedStage) -> str:
    found = stage.stored(WIDGETS, "w")
    assert found is not None
    version: str = found.to_dict()["apiVersion"]
    return version
