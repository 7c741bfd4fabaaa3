"""Tests of the PodGroup protection controller and of the admission plugin PodGroupProtection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.admission.plugins.pod_group_protection import FINALIZER, POD_GROUPS
from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.podgroup_protection.controller import build
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.kinds.builtin import builtin_kinds
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/a/podgroups"
PODS = "/api/v1/namespaces/a/pods"


@pytest.fixture
def stage() -> Iterator[WorkedStage]:
    switch({"GenericWorkload": True})
    kinds = builtin_kinds(served=["scheduling.k8s.io/v1alpha2"])
    stage = WorkedStage(lambda stage: build(StageContext(stage), NoOptions()), kinds=kinds)
    stage.create("/api/v1/namespaces", {"metadata": {"name": "a"}})
    stage.create(GROUPS, {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}}})
    yield stage
    switch({})


def pod(stage: WorkedStage, name: str, group: str = "g") -> None:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], "schedulingGroup": {"podGroupName": group}}
    stage.create(PODS, {"metadata": {"name": name}, "spec": spec})


def test_a_new_group_has_the_finalizer(stage: WorkedStage) -> None:
    group = stage.stored(POD_GROUPS, "g", "a")
    assert group is not None
    assert group.metadata.finalizers == [FINALIZER]
    stage.work()
    assert stage.written() == []


def test_an_unused_group_is_deleted_at_once(stage: WorkedStage) -> None:
    pod(stage, "p", "other")
    stage.delete(f"{GROUPS}/g")
    stage.work()
    assert stage.names(POD_GROUPS) == []


@pytest.mark.parametrize("ends", ["deletion", "success"])
def test_a_group_is_kept_until_its_pods_have_ended(stage: WorkedStage, ends: str) -> None:
    pod(stage, "p")
    stage.delete(f"{GROUPS}/g")
    stage.work()
    assert stage.names(POD_GROUPS) == ["g"]
    if ends == "deletion":
        stage.delete(f"{PODS}/p", gracePeriodSeconds=0)
    else:
        stage.patch(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}})
    stage.work()
    assert stage.names(POD_GROUPS) == []


def test_a_group_without_the_finalizer_does_not_get_it(stage: WorkedStage) -> None:
    stage.patch(f"{GROUPS}/g", {"metadata": {"finalizers": None}})
    pod(stage, "p")
    stage.patch(f"{PODS}/p/status", {"status": {"phase": "Failed"}})
    stage.work()
    assert stage.written() == []
