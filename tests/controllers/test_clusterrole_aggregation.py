from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.clusterrole_aggregation.controller import (
    CONTROLLER_NAME,
    build,
)
from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.manager import Controller
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def controller(stage: WorkedStage) -> Controller:
    return build(StageContext(stage), NoOptions())


@pytest.fixture
def stage() -> WorkedStage:
    return WorkedStage(controller)


def rule(*resources: str, verbs: tuple[str, ...] = ("get",)) -> dict[str, Any]:
    return {"verbs": list(verbs), "apiGroups": [""], "resources": list(resources)}


def selecting(*labels: str) -> dict[str, Any]:
    return {"clusterRoleSelectors": [{"matchLabels": {label: "true"}} for label in labels]}


def role(name: str, *rules: dict[str, Any], labels: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": dict.fromkeys(labels, "true")}
    return {"metadata": metadata, "rules": list(rules), **more}


def rules(stage: WorkedStage, name: str) -> Any:
    return stage.send("GET", f"{ROLES}/{name}").body.get("rules")


def test_rules_are_collected_from_selected_roles_in_name_order_without_duplicates(stage: WorkedStage) -> None:
    stage.create(ROLES, role("all", aggregationRule=selecting("a")))
    stage.create(ROLES, role("z", rule("pods"), rule("secrets"), labels=("a",)))
    stage.create(ROLES, role("b", rule("services"), rule("pods"), labels=("a",)))
    stage.create(ROLES, role("other", rule("nodes")))
    stage.work()
    assert rules(stage, "all") == [rule("services"), rule("pods"), rule("secrets")]


def test_selectors_are_evaluated_in_order(stage: WorkedStage) -> None:
    stage.create(ROLES, role("x", rule("pods"), labels=("a",)))
    stage.create(ROLES, role("y", rule("nodes"), labels=("b",)))
    stage.create(ROLES, role("all", aggregationRule=selecting("b", "a")))
    stage.work()
    assert rules(stage, "all") == [rule("nodes"), rule("pods")]


def test_chains_converge_and_no_role_aggregates_itself(stage: WorkedStage) -> None:
    stage.create(ROLES, role("top", labels=("top", "mid"), aggregationRule=selecting("top")))
    stage.create(ROLES, role("mid", labels=("top",), aggregationRule=selecting("mid")))
    stage.create(ROLES, role("low", rule("pods"), labels=("mid",)))
    stage.work()
    assert rules(stage, "top") == rules(stage, "mid") == [rule("pods")]
    stage.delete(f"{ROLES}/low")
    stage.work()
    # Roles that aggregate each other keep their rules, as in Kubernetes.
    assert rules(stage, "top") == [rule("pods")]


def test_a_removed_rule_is_removed_from_aggregated_roles(stage: WorkedStage) -> None:
    stage.create(ROLES, role("all", aggregationRule=selecting("a")))
    stage.create(ROLES, role("part", rule("pods"), labels=("a",)))
    stage.work()
    stage.delete(f"{ROLES}/part")
    stage.work()
    assert not rules(stage, "all")


def test_changed_rules_are_corrected(stage: WorkedStage) -> None:
    stage.create(ROLES, role("part", rule("pods"), labels=("a",)))
    stage.create(ROLES, role("all", rule("secrets"), aggregationRule=selecting("a")))
    stage.work()
    stage.patch(f"{ROLES}/all", {"rules": [rule("nodes")]})
    stage.work()
    assert rules(stage, "all") == [rule("pods")]


def test_rules_of_a_role_are_kept_while_its_selectors_match_nothing(stage: WorkedStage) -> None:
    stage.create(ROLES, role("all", rule("secrets"), aggregationRule=selecting("a")))
    stage.work()
    assert rules(stage, "all") == [rule("secrets")]
    stage.create(ROLES, role("part", rule("pods"), labels=("a",)))
    stage.work()
    assert rules(stage, "all") == [rule("pods")]


def test_rules_are_applied_and_other_fields_are_kept(stage: WorkedStage) -> None:
    stage.create(ROLES, role("part", rule("pods"), labels=("a",)))
    stage.create(ROLES, role("all", labels=("mine",), aggregationRule=selecting("a")))
    stage.work()
    found = stage.send("GET", f"{ROLES}/all").body
    managers = {each["manager"]: each["operation"] for each in found["metadata"]["managedFields"]}
    assert managers[CONTROLLER_NAME] == "Apply"
    assert found["metadata"]["labels"] == {"mine": "true"}
    assert found["aggregationRule"] == selecting("a")


def test_correct_rules_are_not_written(stage: WorkedStage) -> None:
    stage.create(ROLES, role("part", rule("pods"), labels=("a",)))
    stage.create(ROLES, role("all", rule("pods"), aggregationRule=selecting("a")))
    stage.create(ROLES, role("empty", aggregationRule=selecting("none")))
    stage.create(ROLES, role("own", rule("nodes")))
    stage.work()
    assert stage.written() == []


def test_match_expressions_select_and_unknown_fields_of_rules_are_kept(stage: WorkedStage) -> None:
    paths = {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}
    named = {**rule("configmaps"), "resourceNames": ["a", "b"]}
    expression = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    stage.create(ROLES, role("part", paths, named, labels=("a",)))
    stage.create(ROLES, role("all", aggregationRule={"clusterRoleSelectors": [expression]}))
    stage.work()
    assert rules(stage, "all") == [paths, named]
