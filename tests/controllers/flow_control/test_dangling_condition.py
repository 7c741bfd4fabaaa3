"""Tests of the condition of a FlowSchema that reports that its priority level does not exist."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.flow_control.dangling_condition import MANAGER, desired_condition, new_dangling_controller
from ctrlmgr.kinds.flowcontrol.flow_resources import is_usable
from ctrlmgr.manager import Controller
from tests.controllers.customresourcedefinitions.defined import EverythingStage
from tests.controllers.flow_control.test_ensurer import LEVEL_PATH, SCHEMA_PATH
from tests.controllers.worked_stage import MERGE

RULE = {
    "subjects": [{"kind": "User", "user": {"name": "jane"}}],
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}],
}
SCHEMA = {"metadata": {"name": "s"}, "spec": {"priorityLevelConfiguration": {"name": "late"}, "rules": [RULE]}}
LEVEL = {"metadata": {"name": "late"}, "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}


class Stage(EverythingStage):
    def made(self) -> Controller:
        client = self.apiserver_client
        return new_dangling_controller(self.informers, client, self.log, clock=self.clock, random=self.random)

    @property
    def condition(self) -> Any:
        (condition,) = self.send("GET", f"{SCHEMA_PATH}/s").body["status"]["conditions"]
        return condition


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.create(SCHEMA_PATH, SCHEMA)
    stage.work()
    return stage


def test_the_condition_follows_the_priority_level(stage: Stage) -> None:
    assert (stage.condition["status"], stage.condition["reason"]) == ("True", "NotFound")
    assert stage.condition["message"] == (
        'This FlowSchema references the PriorityLevelConfiguration object named "late" but there is no such object'
    )
    stage.create(LEVEL_PATH, LEVEL)
    stage.work()
    assert (stage.condition["status"], stage.condition["reason"]) == ("False", "Found")
    assert stage.condition["message"].endswith('named "late" and it exists')
    stage.delete(f"{LEVEL_PATH}/late")
    stage.work()
    assert stage.condition["status"] == "True"


def test_the_controller_applies_the_condition_and_restores_it(stage: Stage) -> None:
    managers = stage.send("GET", f"{SCHEMA_PATH}/s").body["metadata"]["managedFields"]
    assert [(each["manager"], each["operation"]) for each in managers if each.get("subresource")] == [
        (MANAGER, "Apply")
    ]
    wrong = {"status": {"conditions": [{"type": "Dangling", "status": "False"}]}}
    stage.send("PATCH", f"{SCHEMA_PATH}/s/status", wrong, media_type=MERGE)
    stage.work()
    assert stage.condition["status"] == "True"


def test_the_condition_is_written_at_most_six_times_a_minute(stage: Stage) -> None:
    for _ in range(10):
        wrong = {"status": {"conditions": [{"type": "Dangling", "status": "False"}]}}
        stage.send("PATCH", f"{SCHEMA_PATH}/s/status", wrong, media_type=MERGE)
        stage.work()
    assert stage.condition["status"] == "False", "another server may disagree"
    stage.pass_by(75)
    assert stage.condition["status"] == "True"


def test_the_condition_has_the_time_of_its_transition() -> None:
    schema = {"spec": {"priorityLevelConfiguration": {"name": "a"}}}
    condition = desired_condition(schema, 1_500_000, exists=True)
    assert condition is not None
    assert condition["lastTransitionTime"] == "1970-01-01T00:00:01Z"
    assert desired_condition({**schema, "status": {"conditions": [condition]}}, 9, exists=True) is None


@pytest.mark.parametrize(
    ("name", "spec", "usable"),
    [
        ("exempt", {"type": "Exempt", "exempt": {}}, True),
        ("exempt", {"type": "Exempt"}, False),
        ("other", {"type": "Exempt", "exempt": {}}, False),
        ("other", {"type": "Limited"}, False),
        ("other", {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}, True),
        ("other", {"type": "Limited", "limited": {"limitResponse": {"type": "Queue"}}}, False),
        ("other", {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}}, True),
    ],
)
def test_requests_are_assigned_only_to_complete_levels(name: str, spec: dict[str, Any], usable: bool) -> None:
    assert is_usable(name, spec) is usable
