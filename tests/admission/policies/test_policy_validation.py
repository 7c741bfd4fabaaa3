"""Tests of ValidatingAdmissionPolicies, from the write to the response."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.admission.policies.governed import PREFIX, RULE, PolicyCluster, causes

CONFIGMAPS = "/api/v1/namespaces/shop/configmaps"
MERGE = "application/merge-patch+json"
IS_ONE = "object.data.a == '1'"


def denied(message: str, policy: str = "p", binding: str = "p") -> str:
    return f"ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {message}"


def test_a_denied_write_is_not_stored_and_names_the_policy() -> None:
    governed = PolicyCluster()
    assert governed.policy(IS_ONE).warnings == ()
    assert governed.bind().warnings == ()
    answer = governed.create(data={"a": "2"})
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    message = denied(f"failed expression: {IS_ONE}")
    assert answer.message == f'configmaps "x" is forbidden: {message}'
    assert causes(answer) == [message]
    assert governed.create(data={"a": "1"}).code == 201


def test_a_policy_without_a_binding_has_no_effect() -> None:
    governed = PolicyCluster()
    governed.policy("false")
    governed.bind(policy="another")
    assert governed.create().code == 201


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ({"message": " a must be 1 "}, "a must be 1"),
        ({"message": "static", "messageExpression": "'a is ' + object.data.a"}, "a is 2"),
        ({"message": "static", "messageExpression": "'a is ' + object.data.nope"}, "static"),
        ({"message": "static", "messageExpression": "'two\\nlines'"}, "static"),
        ({"message": "static", "messageExpression": "'  '"}, "static"),
        ({"messageExpression": "string(object.data.nope)"}, f"failed expression: {IS_ONE}"),
    ],
)
def test_a_denial_contains_the_first_available_message(validation: dict[str, Any], message: str) -> None:
    governed = PolicyCluster()
    if validation.get("messageExpression") == "object.data.nope":
        validation = {"messageExpression": "string(object.data.nope)"}
    governed.policy({"expression": IS_ONE, **validation})
    governed.bind()
    assert causes(governed.create(data={"a": "2"})) == [denied(message)]


@pytest.mark.parametrize(("reason", "code"), [("Invalid", 422), ("Forbidden", 403), ("RequestEntityTooLarge", 413)])
def test_the_reason_determines_the_status_code(reason: str, code: int) -> None:
    governed = PolicyCluster()
    governed.policy({"expression": "false", "reason": reason})
    governed.bind()
    answer = governed.create()
    assert (answer.code, answer.body["reason"]) == (code, reason)


def test_a_failing_expression_denies_or_is_ignored_by_the_failure_policy() -> None:
    governed = PolicyCluster()
    governed.policy("object.data.nope == '1'")
    governed.bind()
    message = "expression 'object.data.nope == '1'' resulted in error: no such key: nope"
    assert causes(governed.create(data={"a": "1"})) == [denied(message)]
    tolerant = PolicyCluster()
    tolerant.policy("object.data.nope == '1'", IS_ONE, failurePolicy="Ignore")
    tolerant.bind()
    assert tolerant.create("x", data={"a": "1"}).code == 201
    assert causes(tolerant.create("y", data={"a": "2"})) == [denied(f"failed expression: {IS_ONE}")]


def test_variables_are_evaluated_lazily() -> None:
    governed = PolicyCluster()
    variables = [
        {"name": "n", "expression": "int(object.data.n)"},
        {"name": "twice", "expression": "variables.n * 2"},
        {"name": "broken", "expression": "object.nope"},
    ]
    rule = {
        "expression": "variables.twice < 5 || variables.broken",
        "messageExpression": "'n is ' + string(variables.n)",
    }
    governed.policy(rule, variables=variables)
    governed.bind()
    assert governed.create("x", data={"n": "2"}).code == 201
    message = f"expression '{rule['expression']}' resulted in error:"
    message += ' composited variable "broken" fails to evaluate: no such key: nope'
    assert causes(governed.create("y", data={"n": "3"})) == [denied(message)]


def test_a_policy_reads_the_request_the_namespace_and_rights() -> None:
    governed = PolicyCluster()
    governed.policy(
        "namespaceObject.metadata.name == 'shop' && namespaceObject.metadata.labels.size() > 0",
        "request.operation in ['CREATE', 'UPDATE'] && request.resource.resource == 'configmaps'",
        "has(request.userInfo.username) && authorizer.requestResource.check('get').allowed()",
        "oldObject == null || object.data.a == oldObject.data.a",
    )
    governed.bind()
    assert governed.create(data={"a": "1"}).code == 201
    changed = governed.stage.send(
        "PATCH", "/api/v1/namespaces/shop/configmaps/x", {"data": {"a": "2"}}, media_type=MERGE
    )
    assert changed.code == 422


def test_match_conditions_narrow_a_policy() -> None:
    governed = PolicyCluster()
    governed.policy("false", matchConditions=[{"name": "c", "expression": "object.metadata.name != 'free'"}])
    governed.bind()
    assert governed.create("free").code == 201
    assert governed.create("x").code == 422


MATCHES: list[tuple[dict[str, Any], dict[str, Any] | None, bool]] = [
    ({"objectSelector": {"matchLabels": {"a": "b"}}}, None, True),
    ({"objectSelector": {"matchLabels": {"a": "c"}}}, None, False),
    ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}, None, True),
    ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, None, False),
    ({"resourceRules": [{**RULE, "operations": ["DELETE"]}]}, None, False),
    ({}, {"objectSelector": {"matchLabels": {"a": "c"}}}, False),
    ({}, {"namespaceSelector": {}}, True),
    ({}, {"resourceRules": [{**RULE, "apiGroups": ["apps"]}]}, False),
]


@pytest.mark.parametrize(("match", "narrowed", "applies"), MATCHES)
def test_a_policy_applies_if_its_rules_and_its_binding_match(
    match: dict[str, Any], narrowed: dict[str, Any] | None, applies: bool
) -> None:
    governed = PolicyCluster()
    governed.policy("false", matchConstraints=match)
    more: dict[str, Any] = {"matchResources": narrowed} if narrowed is not None else {}
    governed.bind(**more)
    assert governed.create(metadata={"labels": {"a": "b"}}).code == (422 if applies else 201)


def test_rules_select_and_exclude_objects_by_name() -> None:
    governed = PolicyCluster()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"]}
    match = {
        "resourceRules": [{**rule, "resourceNames": ["x", "y"]}],
        "excludeResourceRules": [{**rule, "resourceNames": ["y"]}],
    }
    governed.policy("false", matchConstraints=match)
    governed.bind()
    assert [governed.create(name).code for name in ("x", "y", "z")] == [422, 201, 201]


def test_a_binding_can_warn_and_audit_instead_of_denying() -> None:
    governed = PolicyCluster()
    governed.policy({"expression": IS_ONE, "message": "a is not 1"}, {"expression": "false", "message": "never <&>"})
    governed.bind("Warn", "Audit")
    answer = governed.create(data={"a": "2"})
    assert answer.code == 201
    told = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': "
    assert list(answer.warnings) == [f"{told}a is not 1", f"{told}never <&>"]
    (noted,) = json.loads(answer.annotations["validation.policy.admission.k8s.io/validation_failure"])
    assert noted == {
        "message": "a is not 1",
        "policy": "p",
        "binding": "p",
        "expressionIndex": 0,
        "validationActions": ["Warn", "Audit"],
    }


def test_audit_annotations_are_recorded_once_for_all_actions() -> None:
    governed = PolicyCluster()
    annotations = [
        {"key": "a", "valueExpression": "'a=' + object.data.a"},
        {"key": "none", "valueExpression": "null"},
        {"key": "blank", "valueExpression": "' '"},
    ]
    governed.policy(auditAnnotations=annotations)
    governed.bind()
    governed.bind(name="again")
    answer = governed.create(data={"a": "1"})
    assert {key: value for key, value in answer.annotations.items() if key.startswith("p/")} == {"p/a": "a=1"}
    failed = governed.create("y")
    assert failed.code == 422
    assert "no such key: data" in failed.message


def test_policies_do_not_apply_to_policies() -> None:
    governed = PolicyCluster()
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    governed.policy("false", matchConstraints={"resourceRules": [rule]})
    governed.bind()
    assert governed.create().code == 422
    assert governed.bind(name="more").code == 201
    assert governed.stage.send("DELETE", f"{PREFIX}/validatingadmissionpolicies/p").code == 200
    assert governed.create().code == 201


PARAMS: dict[str, Any] = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}


def limited() -> PolicyCluster:
    governed = PolicyCluster()
    governed.create("limits", data={"max": "2"}, metadata={"labels": {"kind": "limit"}})
    variables = [{"name": "max", "expression": "params == null ? 9 : int(params.data.max)"}]
    rule = {
        "expression": "object.?data.orValue({}).size() <= variables.max",
        "messageExpression": "'at most ' + string(variables.max)",
    }
    condition = {"name": "c", "expression": "object.metadata.name != 'limits'"}
    governed.policy(rule, variables=variables, matchConditions=[condition], **PARAMS)
    return governed


REFERENCES: list[tuple[dict[str, Any] | None, int, str]] = [
    (None, 10, "at most 9"),
    ({"name": "limits", "parameterNotFoundAction": "Deny"}, 3, "at most 2"),
    ({"name": "limits", "namespace": "shop", "parameterNotFoundAction": "Deny"}, 3, "at most 2"),
    ({"selector": {"matchLabels": {"kind": "limit"}}, "parameterNotFoundAction": "Deny"}, 3, "at most 2"),
    ({"selector": {"matchLabels": {"kind": "none"}}, "parameterNotFoundAction": "Allow"}, 3, ""),
    ({"name": "nope", "parameterNotFoundAction": "Allow"}, 3, ""),
    (
        {"name": "nope", "parameterNotFoundAction": "Deny"},
        1,
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
    ),
]


@pytest.mark.parametrize(("reference", "size", "message"), REFERENCES)
def test_a_binding_selects_the_parameters(reference: dict[str, Any] | None, size: int, message: str) -> None:
    governed = limited()
    more: dict[str, Any] = {"paramRef": reference} if reference is not None else {}
    governed.bind(**more)
    assert governed.create("x", data={}).code == (422 if "no params" in message else 201)
    answer = governed.create("y", data={f"k{each}": "" for each in range(size)})
    assert answer.code == (422 if message else 201)
    if message:
        assert causes(answer) == [denied(message)]


def test_a_missing_kind_of_parameters_fails_the_policy() -> None:
    governed = PolicyCluster()
    governed.policy("true", paramKind={"apiVersion": "nope.example.com/v1", "kind": "Nope"})
    governed.bind()
    message = "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy:"
    message += " failed to find resource referenced by paramKind: 'nope.example.com/v1, Kind=Nope'"
    assert causes(governed.create()) == [message]


def test_a_policy_above_the_cost_limit_denies() -> None:
    governed = PolicyCluster()
    costly = "object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, size(d) > 0))))"
    governed.policy(costly)
    governed.bind()
    (message,) = causes(governed.create(data={f"k{each}": "" for each in range(40)}))
    assert message.endswith("operation cancelled: actual cost limit exceeded")
