from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.validatingadmissionpolicy_status import Options
from ctrlmgr.controllers.validatingadmissionpolicy_status.controller import MANAGER, build
from ctrlmgr.manager import Controller
from tests.controllers.customresourcedefinitions.defined import GROUP, EverythingStage
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import MERGE

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"


class PolicyStage(EverythingStage):
    """A cluster with the ValidatingAdmissionPolicy status controller, which has only the permissions of its role."""

    def made(self) -> Controller:
        return build(StageContext(self), Options())

    def policy(self, name: str, expression: str, group: str = "apps", resource: str = "deployments") -> None:
        rules = [{"apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"], "resources": [resource]}]
        spec = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": expression}]}
        self.create(POLICIES, {"metadata": {"name": name}, "spec": spec})
        self.work()

    def mend(self, name: str, expression: str) -> None:
        spec = {"validations": [{"expression": expression}]}
        answer = self.send("PATCH", f"{POLICIES}/{name}", {"spec": spec}, media_type=MERGE)
        assert answer.code == 200, answer.body
        self.work()

    def status(self, name: str) -> Any:
        return self.send("GET", f"{POLICIES}/{name}").body.get("status")


@pytest.fixture
def stage() -> PolicyStage:
    return PolicyStage()


def fields_wrong(status: Any) -> list[str]:
    return [each["fieldRef"] for each in status["typeChecking"].get("expressionWarnings", [])]


def test_a_correct_policy_is_marked_as_checked(stage: PolicyStage) -> None:
    stage.policy("p", "object.spec.replicas > 1")
    assert stage.status("p") == {"observedGeneration": 1, "typeChecking": {}}
    head = stage.log.head().revision
    stage.start()
    stage.work()
    assert stage.log.head().revision == head, "it is checked once"


def test_a_warning_appears_and_disappears_with_its_cause(stage: PolicyStage) -> None:
    stage.policy("p", "object.spec.nope > 1")
    assert fields_wrong(stage.status("p")) == ["spec.validations[0].expression"]
    stage.mend("p", "object.spec.replicas > 1")
    assert stage.status("p") == {"observedGeneration": 2, "typeChecking": {}}
    stage.mend("p", "object.spec.replicas > 'x'")
    assert fields_wrong(stage.status("p")) == ["spec.validations[0].expression"]
    assert stage.status("p")["observedGeneration"] == 3


def test_an_update_without_a_changed_spec_is_not_checked(stage: PolicyStage) -> None:
    stage.policy("p", "object.spec.nope > 1")
    stage.send("PATCH", f"{POLICIES}/p", {"metadata": {"labels": {"a": "b"}}}, media_type=MERGE)
    head = stage.log.head().revision
    stage.work()
    assert stage.log.head().revision == head


def test_conditions_of_other_managers_are_kept_and_the_manager_has_kubernetes_name(stage: PolicyStage) -> None:
    stage.policy("p", "object.spec.replicas > 1")
    condition = {
        "type": "Seen",
        "status": "True",
        "reason": "Looked",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    patch = {"status": {"conditions": [condition]}}
    assert stage.send("PATCH", f"{POLICIES}/p/status", patch, media_type=MERGE).code == 200
    stage.mend("p", "object.spec.nope > 1")
    assert [each["type"] for each in stage.status("p")["conditions"]] == ["Seen"]
    managers = stage.send("GET", f"{POLICIES}/p").body["metadata"]["managedFields"]
    [own] = [each for each in managers if each["manager"] == MANAGER]
    assert (own["operation"], own["subresource"]) == ("Apply", "status")


@pytest.mark.parametrize(
    ("expression", "is_wrong"),
    [
        ("object.spec.size > 1", False),
        ("object.spec.size == 'x'", True),
        ("object.spec.nope == 1", True),
        ("object.status.anything == 1", True),
        ("object.metadata.labels['a'] == 'b'", False),
    ],
)
def test_policies_for_custom_kinds_are_checked_by_their_schema(
    stage: PolicyStage, expression: str, is_wrong: bool
) -> None:
    stage.define()
    stage.policy("p", expression, GROUP, "widgets")
    assert bool(fields_wrong(stage.status("p"))) is is_wrong


def test_unserved_kinds_are_skipped(stage: PolicyStage) -> None:
    stage.policy("p", "object.spec.nope == 1", GROUP, "widgets")
    assert stage.status("p") == {"observedGeneration": 1, "typeChecking": {}}


def test_a_deleted_policy_is_not_recreated(stage: PolicyStage) -> None:
    stage.policy("p", "object.spec.replicas > 1")
    stage.send("PATCH", f"{POLICIES}/p", {"spec": {"failurePolicy": "Ignore"}}, media_type=MERGE)
    stage.hear()
    stage.send("DELETE", f"{POLICIES}/p")
    stage.work()
    assert stage.send("GET", f"{POLICIES}/p").code == 404
