"""Tests that every served version has an APIService, which the controller creates and deletes together with the version
of a custom kind.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.apiservices.controller import new_api_service_controller
from ctrlmgr.controllers.apiservices.decide import Step, next_step
from ctrlmgr.controllers.apiservices.desired_api_services import DesiredAPIService, Mode, builtin, custom
from ctrlmgr.engine.aggregated_groups import AUTOMANAGED as LABEL
from ctrlmgr.engine.kind_registry import Group
from ctrlmgr.kinds.builtin import builtin_kinds
from tests.controllers.customresourcedefinitions.defined import (
    DEFINITIONS,
    GROUP,
    NAME,
    EverythingStage,
    definition,
    version,
)
from tests.controllers.worked_stage import MERGE

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
LOCAL = {"type": "Available", "status": "True", "reason": "Local"}


def current(label: str | None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {} if label is None else {LABEL: label}}, "spec": {"group": "g", **spec}}


ON_START, ALWAYS = DesiredAPIService({"group": "g"}, Mode.ON_START), DesiredAPIService({"group": "g"}, Mode.ALWAYS)
OTHER = {"versionPriority": 7}


@pytest.mark.parametrize(
    ("now", "wanted", "done", "at_start", "step"),
    [
        pytest.param(None, None, False, False, Step.NOTHING, id="2A"),
        pytest.param(None, ON_START, False, False, Step.CREATE, id="2B"),
        pytest.param(None, ON_START, True, False, Step.NOTHING, id="2B once"),
        pytest.param(None, ALWAYS, True, False, Step.CREATE, id="2C"),
        pytest.param(current(None, **OTHER), None, False, True, Step.NOTHING, id="3A"),
        pytest.param(current(None, **OTHER), ON_START, False, True, Step.NOTHING, id="3B"),
        pytest.param(current("else", **OTHER), ALWAYS, False, True, Step.NOTHING, id="3C"),
        pytest.param(current("onstart", **OTHER), None, False, False, Step.NOTHING, id="4A"),
        pytest.param(current("onstart", **OTHER), ON_START, False, False, Step.NOTHING, id="4B"),
        pytest.param(current("onstart", **OTHER), ALWAYS, False, False, Step.NOTHING, id="4C"),
        pytest.param(current("onstart", **OTHER), None, False, True, Step.DELETE, id="5A"),
        pytest.param(current("onstart", **OTHER), None, True, True, Step.NOTHING, id="5A once"),
        pytest.param(current("onstart", **OTHER), ON_START, False, True, Step.UPDATE, id="5B"),
        pytest.param(current("onstart", **OTHER), ON_START, True, True, Step.NOTHING, id="5B once"),
        pytest.param(current("onstart", **OTHER), ALWAYS, False, True, Step.UPDATE, id="5C"),
        pytest.param(current("onstart", **OTHER), ALWAYS, True, True, Step.NOTHING, id="5C once"),
        pytest.param(current("true", **OTHER), None, True, False, Step.DELETE, id="6A"),
        pytest.param(current("true", **OTHER), ON_START, False, False, Step.UPDATE, id="6B"),
        pytest.param(current("true", **OTHER), ON_START, True, False, Step.NOTHING, id="6B once"),
        pytest.param(current("true", **OTHER), ALWAYS, True, False, Step.UPDATE, id="6C"),
        pytest.param(current("true"), ALWAYS, False, False, Step.NOTHING, id="as it should be"),
    ],
)
def test_a_reconcile_equals_the_aggregators_conditions(
    now: dict[str, Any] | None, wanted: DesiredAPIService | None, done: bool, at_start: bool, step: Step
) -> None:
    assert next_step(now, wanted, done=done, at_start=at_start) == step


def test_discovery_lists_groups_by_priority() -> None:
    groups = builtin_kinds().builtin_groups
    wanted = builtin(groups)
    own = Group("apiregistration.k8s.io", ("v1",))
    assert {name.partition(".")[2] for name in wanted} == {group.name for group in groups} - {own.name}
    ordered = sorted(wanted.values(), key=lambda each: (-each.spec["groupPriorityMinimum"], each.spec.get("group", "")))
    recorded = [group.name for group in groups if group != own]
    assert list(dict.fromkeys(each.spec.get("group", "") for each in ordered)) == recorded
    assert wanted["v2.autoscaling"].spec["versionPriority"] > wanted["v1.autoscaling"].spec["versionPriority"]
    assert wanted["v1."].spec == {"version": "v1", "groupPriorityMinimum": 18_000, "versionPriority": 1}


class Stage(EverythingStage):
    def made(self) -> Any:
        groups = self.engine.kinds.builtin_groups
        return new_api_service_controller(
            self.informers, groups, self.apiserver_client, self.log, clock=self.clock, random=self.random
        )

    def found(self, name: str) -> Any:
        """Return an APIService; return None if it does not exist."""
        answer = self.send("GET", f"{SERVICES}/{name}")
        return answer.body if answer.code == 200 else None


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.work()
    return stage


def test_apiservices_of_built_in_groups_can_be_changed(stage: Stage) -> None:
    apps = stage.found("v1.apps")
    assert apps["metadata"]["labels"] == {LABEL: "onstart"}
    assert apps["spec"] == {"group": "apps", "version": "v1", "groupPriorityMinimum": 17_800, "versionPriority": 15}
    (condition,) = apps["status"]["conditions"]
    assert condition.items() >= LOCAL.items()
    assert stage.found("v1.apiregistration.k8s.io") is None
    stage.send("PATCH", f"{SERVICES}/v1.apps", {"spec": OTHER}, media_type=MERGE)
    stage.send("DELETE", f"{SERVICES}/v1.batch")
    stage.work()
    assert stage.found("v1.apps")["spec"]["versionPriority"] == 7
    assert stage.found("v1.batch") is None
    stage.start()  # another process
    stage.work()
    assert stage.found("v1.apps")["spec"]["versionPriority"] == 15
    assert stage.found("v1.batch") is not None


def test_apiservices_of_custom_kinds_follow_their_versions(stage: Stage) -> None:
    versions = [version(), version("v1beta1", storage=False), version("v1alpha1", storage=False, served=False)]
    stage.define(definition(versions=versions))
    assert stage.found(f"v1.{GROUP}")["metadata"]["labels"] == {LABEL: "true"}
    assert stage.found(f"v1beta1.{GROUP}")["spec"] == custom(f"v1beta1.{GROUP}").spec
    assert stage.found(f"v1alpha1.{GROUP}") is None
    stage.send("PATCH", f"{DEFINITIONS}/{NAME}", {"spec": {"versions": versions[:1]}}, media_type=MERGE)
    stage.work()
    assert stage.found(f"v1beta1.{GROUP}") is None
    assert stage.found(f"v1.{GROUP}") is not None


def test_apiservices_of_custom_kinds_are_restored_after_changes(stage: Stage) -> None:
    stage.define()
    stage.send("PATCH", f"{SERVICES}/v1.{GROUP}", {"spec": OTHER}, media_type=MERGE)
    stage.work()
    assert stage.found(f"v1.{GROUP}")["spec"] == custom(f"v1.{GROUP}").spec
    uid = stage.found(f"v1.{GROUP}")["metadata"]["uid"]
    stage.send("DELETE", f"{SERVICES}/v1.{GROUP}")
    stage.work()
    assert stage.found(f"v1.{GROUP}")["metadata"]["uid"] != uid


def test_apiservices_of_clients_are_not_changed(stage: Stage) -> None:
    mine = {**custom(f"v1.{GROUP}").new(f"v1.{GROUP}"), "metadata": {"name": f"v1.{GROUP}"}}
    stage.send("POST", SERVICES, {**mine, "spec": {**mine["spec"], **OTHER}})
    stage.define()
    assert stage.found(f"v1.{GROUP}")["spec"]["versionPriority"] == 7


def test_several_definitions_of_a_version_share_one_apiservice(stage: Stage) -> None:
    stage.define()
    stage.define(definition("gadgets", "Gadget"))
    stage.send("DELETE", f"{DEFINITIONS}/gadgets.{GROUP}")
    stage.work()
    assert stage.found(f"v1.{GROUP}") is not None


def test_discovery_lists_registered_groups_by_priority(stage: Stage) -> None:
    stage.define()
    for group, name, priority in (("b.example", "v1", 2000), ("a.example", "v1", 900), ("a.example", "v2", 10)):
        spec = {"group": group, "version": name, "groupPriorityMinimum": priority, "versionPriority": 10}
        stage.send("POST", SERVICES, {"metadata": {"name": f"{name}.{group}"}, "spec": spec})
    stage.engine.cacher.step()
    groups = [(each.name, each.versions) for each in stage.engine.kinds.groups]
    assert groups[-3:] == [("b.example", ("v1",)), (GROUP, ("v1",)), ("a.example", ("v2", "v1"))]
    mine = {"group": GROUP, "version": "v1alpha1", "groupPriorityMinimum": 3000, "versionPriority": 200}
    stage.send("POST", SERVICES, {"metadata": {"name": f"v1alpha1.{GROUP}"}, "spec": mine})
    stage.engine.cacher.step()
    assert (stage.engine.kinds.groups[-3].name, stage.engine.kinds.groups[-3].versions) == (GROUP, ("v1alpha1", "v1"))
