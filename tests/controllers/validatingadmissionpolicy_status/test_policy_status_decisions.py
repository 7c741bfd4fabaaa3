from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ctrlmgr.controllers.validatingadmissionpolicy_status.matched_kinds import MOST, kinds_to_check
from ctrlmgr.controllers.validatingadmissionpolicy_status.policy_type_checks import Checked, expression_warnings
from ctrlmgr.controllers.validatingadmissionpolicy_status.resolved_schemas import schema_of
from tests.kinds.stage import KINDS, find_kind


def rule(groups: Sequence[str] = ("apps",), versions: Sequence[str] = ("v1",), *resources: str) -> dict[str, Any]:
    return {"apiGroups": list(groups), "apiVersions": list(versions), "resources": list(resources)}


def matched(*rules: Mapping[str, Any]) -> list[str]:
    found = kinds_to_check({"matchConstraints": {"resourceRules": list(rules)}}, KINDS)
    return [f"{kind.api_version} {kind.name}" for kind in found]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([rule(("apps",), ("v1",), "deployments")], ["apps/v1 Deployment"]),
        ([rule(("apps",), ("v1",), "replicasets", "deployments")], ["apps/v1 Deployment", "apps/v1 ReplicaSet"]),
        (
            [rule(("apps",), ("v1",), "deployments"), rule(("",), ("v1",), "pods")],
            ["v1 Pod", "apps/v1 Deployment"],
        ),
        ([rule(("apps",), ("v1",), "Deployments"), rule(("apps",), ("v1",), "deployment")], ["apps/v1 Deployment"]),
        ([rule(("",), ("v1",), "events")], ["v1 Event", "events.k8s.io/v1 Event"]),
        ([rule(("events.k8s.io",), ("v1",), "events")], ["events.k8s.io/v1 Event"]),
        ([rule(("*",), ("v1",), "deployments")], []),
        ([rule(("apps", "*"), ("v1",), "deployments")], []),
        ([rule(("apps",), ("*",), "deployments")], []),
        ([rule(("apps",), ("v1",), "*")], []),
        ([rule(("apps",), ("v1",), "*", "deployments", "*/status")], ["apps/v1 Deployment"]),
        ([rule(("apps",), ("v1",), "deployments/scale")], []),
        ([rule(("apps",), ("v9",), "deployments")], []),
        ([rule(("nowhere.example.com",), ("v1",), "things")], []),
        ([], []),
    ],
)
def test_kinds_named_by_rules(rules: list[Mapping[str, Any]], expected: list[str]) -> None:
    assert matched(*rules) == expected


def test_only_the_first_rule_is_used_and_its_kinds_are_limited() -> None:
    many = sorted({kind.resource.plural for kind in KINDS if kind.gvk.group == "" and kind.gvk.version == "v1"})
    found = matched(rule(("",), ("v1",), *many), rule(("apps",), ("v1",), "deployments"))
    assert len(many) > MOST
    assert len(found) == MOST
    assert "apps/v1 Deployment" not in found


def checked(path: str) -> Checked:
    kind = find_kind(path)
    return Checked(kind.gvk, schema_of(kind))


def warnings(spec: Mapping[str, Any], *paths: str, params: str = "") -> list[tuple[str, str]]:
    """Return the path of each error in a policy's expressions, and the first line of the error's message."""
    found = expression_warnings(spec, [checked(path) for path in paths], checked(params) if params else None)
    return [(each["fieldRef"], each["warning"].splitlines()[0]) for each in found]


def validating(*expressions: str, **more: Any) -> dict[str, Any]:
    return {"validations": [{"expression": each} for each in expressions], **more}


DEPLOYMENT = "apps/v1/deployments"
FIRST = "spec.validations[0].expression"
TOLD = "apps/v1, Kind=Deployment: ERROR: <input>"


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.replicas > 1",
        "object.metadata.labels['a'] == 'b'",
        "has(object.spec.template.spec.containers[0].image)",
        "object.spec.strategy.rollingUpdate.maxSurge == 1 || object.spec.strategy.rollingUpdate.maxSurge == '10%'",
        "object.metadata.creationTimestamp < timestamp('2026-01-01T00:00:00Z')",
        "oldObject == null || oldObject.spec.replicas == object.spec.replicas",
        "request.operation == 'CREATE' && namespaceObject.metadata.name == request.namespace",
        "authorizer.group('apps').resource('deployments').check('get').allowed()",
        "'not a truth'",
    ],
)
def test_a_correct_expression_has_no_warning(expression: str) -> None:
    assert warnings(validating(expression), DEPLOYMENT) == []


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("object.spec.replicaz > 1", ":1:12: undefined field 'replicaz'"),
        ("object.spec.replicas == 'x'", ":1:22: found no matching overload for '_==_' applied to '(int, string)'"),
        ("object.metadata.name.foo == 1", ":1:21: type 'string' does not support field selection"),
        ("object.spec.template.spec.containers.all(c, c.nope == 'x')", ":1:46: undefined field 'nope'"),
        ("oldObject.spec.x == 1", ":1:15: undefined field 'x'"),
        ("object.metadata.nope == ''", ":1:16: undefined field 'nope'"),
        (
            "object.spec.template.spec.containers[0].resources.limits['cpu'] == '1'",
            ":1:50: undefined field 'limits'",
        ),
        ("variables.nope == 1", ":1:10: undefined field 'nope'"),
        (
            "authorizer.requestResource.check('get').allowed()",
            ":1:11: unexpected failed resolution of 'kubernetes.authorization.Authorizer'",
        ),
    ],
)
def test_a_warning_names_the_field(expression: str, problem: str) -> None:
    assert warnings(validating(expression), DEPLOYMENT) == [(FIRST, TOLD + problem)]


def test_message_expressions_are_checked_and_other_expressions_ignored() -> None:
    spec = {
        "validations": [{"expression": "true", "messageExpression": "string(object.spec.nope)"}],
        "matchConditions": [{"name": "c", "expression": "object.nope"}],
        "auditAnnotations": [{"key": "k", "valueExpression": "object.nope"}],
    }
    place = "spec.validations[0].messageExpression"
    assert warnings(spec, DEPLOYMENT) == [(place, f"{TOLD}:1:19: undefined field 'nope'")]


def test_each_kind_has_separate_warnings() -> None:
    spec = validating("object.spec.replicas > 1 && object.spec.nope == 'x'", "object.spec.replicas > 1")
    [found] = expression_warnings(spec, [checked(DEPLOYMENT), checked("apps/v1/replicasets")], None)
    marked = " | object.spec.replicas > 1 && object.spec.nope == 'x'\n | .......................................^\n"
    assert found == {
        "fieldRef": FIRST,
        "warning": f"apps/v1, Kind=Deployment: ERROR: <input>:1:40: undefined field 'nope'\n{marked}\n"
        f"apps/v1, Kind=ReplicaSet: ERROR: <input>:1:40: undefined field 'nope'\n{marked}",
    }


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("variables.n > 1", ""),
        ("variables.n > 'a'", ":1:13: found no matching overload for '_>_' applied to '(int, string)'"),
        ("variables.twice == 'a'", ":1:17: found no matching overload for '_==_' applied to '(int, string)'"),
        ("variables.names[0] == 1", ":1:20: found no matching overload for '_==_' applied to '(string, int)'"),
        ("variables.bad > 'a'", ""),
        ("variables.spec.nope == 1", ""),
    ],
)
def test_a_variable_has_the_type_of_its_expression_and_an_object_can_be_dynamic(expression: str, problem: str) -> None:
    variables = [
        {"name": "n", "expression": "object.spec.replicas"},
        {"name": "twice", "expression": "variables.n * 2"},
        {"name": "names", "expression": "object.spec.template.spec.containers.map(c, c.name)"},
        {"name": "bad", "expression": "object.nope"},
        {"name": "spec", "expression": "object.spec"},
    ]
    found = warnings(validating(expression, variables=variables), DEPLOYMENT)
    assert found == ([(FIRST, TOLD + problem)] if problem else [])


def test_params_have_the_type_of_their_kind_or_dynamic() -> None:
    spec = validating("params.nope == 1", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    assert warnings(spec, DEPLOYMENT, params="v1/configmaps") == [(FIRST, f"{TOLD}:1:7: undefined field 'nope'")]
    assert warnings(spec, DEPLOYMENT) == []


def test_a_recursive_schema_terminates() -> None:
    definitions = checked("apiextensions.k8s.io/v1/customresourcedefinitions")
    spec = validating("object.spec.versions.all(v, v.schema.openAPIV3Schema.not.nope == 1)", "object.spec.nope")
    assert len(expression_warnings(spec, [definitions], None)) == 2
