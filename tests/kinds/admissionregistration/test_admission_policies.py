"""Tests of admission policies and their bindings: defaults and refusals, except refusals because of expressions."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.engine.tables.ages import ages_at
from ctrlmgr.kinds.admissionregistration.admission_policies import MutatingPolicyStrategy, ValidatingPolicyStrategy
from ctrlmgr.kinds.admissionregistration.policy_bindings import BindingStrategy
from ctrlmgr.kinds.admissionregistration.printers import ADMISSION_POLICY_BINDING
from tests.kinds.write import WriteResult, create, update

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
MATCH = {"resourceRules": [RULE]}
VALIDATING: dict[str, Any] = {"matchConstraints": MATCH, "validations": [{"expression": "true"}]}
PATCH = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}
MUTATING: dict[str, Any] = {"matchConstraints": MATCH, "mutations": [PATCH], "reinvocationPolicy": "Never"}
BINDING: dict[str, Any] = {"policyName": "p", "validationActions": ["Deny"]}


def _create(strategy: Strategy, spec: dict[str, Any]) -> WriteResult:
    return create(strategy, {"metadata": {"name": "x"}, "spec": deepcopy(spec)}, namespaced=False)


def test_a_policy_is_defaulted() -> None:
    written = _create(ValidatingPolicyStrategy(), VALIDATING)
    assert written.messages == []
    assert written.object["spec"]["failurePolicy"] == "Fail"
    assert written.object["spec"]["matchConstraints"] == {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "resourceRules": [{**RULE, "scope": "*"}],
    }


RULES: list[tuple[dict[str, Any], list[str]]] = [
    ({"operations": []}, ["operations: Required value"]),
    (
        {"operations": ["*", "Odd"]},
        [
            'operations: Invalid value: ["*","Odd"]: if \'*\' is present, must not specify other operations',
            'operations[1]: Unsupported value: "Odd": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
        ],
    ),
    ({"apiVersions": [""]}, ["apiVersions[0]: Required value"]),
    (
        {"resources": ["*", "pods"]},
        [
            'resources: Invalid value: ["*","pods"]: if \'*\' is present, must not specify'
            " other resources without subresources"
        ],
    ),
    (
        {"resources": ["pods/*", "pods/status", "*/scale", "x/scale"]},
        [
            "resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not specify pods/status",
            "resources[3]: Invalid value: \"x/scale\": if '*/scale' is present, must not specify x/scale",
        ],
    ),
    (
        {"resources": ["*/*", ""]},
        [
            "resources[1]: Required value",
            'resources: Invalid value: ["*/*",""]: if \'*/*\' is present, must not specify other resources',
        ],
    ),
    ({"resourceNames": ["a", "a"]}, ['resourceNames[1]: Duplicate value: "a"']),
    ({"resourceNames": ["a/b"]}, ["resourceNames[0]: Invalid value: \"a/b\": may not contain '/'"]),
    ({"scope": "Odd"}, ['scope: Unsupported value: "Odd": supported values: "*", "Cluster", "Namespaced"']),
]


@pytest.mark.parametrize(("rule", "messages"), RULES)
def test_an_invalid_rule_has_kubernetes_errors(rule: dict[str, Any], messages: list[str]) -> None:
    spec = {**VALIDATING, "matchConstraints": {"resourceRules": [{**RULE, **rule}]}}
    path = "spec.matchConstraints.resourceRules[0]"
    assert _create(ValidatingPolicyStrategy(), spec).messages == [f"{path}.{message}" for message in messages]


SPECS: list[tuple[Strategy, dict[str, Any], list[str]]] = [
    (
        ValidatingPolicyStrategy(),
        {},
        [
            "spec.matchConstraints: Required value",
            "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
            "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
        ],
    ),
    (
        ValidatingPolicyStrategy(),
        {**VALIDATING, "variables": [{"name": "in", "expression": "1"}, {"name": " ", "expression": ""}]},
        [
            'spec.variables[0].name: Invalid value: "in": must be a valid CEL identifier',
            "spec.variables[1].name: Required value: name is not specified",
            "spec.variables[1].expression: Required value: expression is not specified",
        ],
    ),
    (
        ValidatingPolicyStrategy(),
        {
            **VALIDATING,
            "validations": [{"expression": " ", "message": "a\nb", "messageExpression": " ", "reason": "Odd"}],
        },
        [
            "spec.validations[0].expression: Required value: expression is not specified",
            'spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified',
            'spec.validations[0].message: Invalid value: "a\\nb": must not contain line breaks',
            'spec.validations[0].reason: Unsupported value: "Odd": supported values: "Forbidden", "Invalid",'
            ' "RequestEntityTooLarge"',
        ],
    ),
    (
        ValidatingPolicyStrategy(),
        {**VALIDATING, "auditAnnotations": [{"key": "k", "valueExpression": "1"}, {"key": "k"}]},
        [
            'spec.auditAnnotations[0].valueExpression: Invalid value: "1": must evaluate to one of [string null_type]'
            " but got int",
            "spec.auditAnnotations[1].valueExpression: Required value: valueExpression is not specified",
            'spec.auditAnnotations[1].key: Duplicate value: "k"',
        ],
    ),
    (
        ValidatingPolicyStrategy(),
        {**VALIDATING, "paramKind": {"apiVersion": "a/b/c"}},
        [
            'spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
            "spec.paramKind.kind: Required value",
        ],
    ),
    (
        ValidatingPolicyStrategy(),
        {**VALIDATING, "matchConditions": [{"name": "a"}, {"name": "a", "expression": "true"}]},
        [
            "spec.matchConditions[0].expression: Required value",
            'spec.matchConditions[1].name: Duplicate value: "a"',
        ],
    ),
    (
        MutatingPolicyStrategy(),
        {"matchConstraints": {"resourceRules": [{**RULE, "operations": ["DELETE"]}]}},
        [
            'spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported values: "*",'
            ' "CONNECT",'
            ' "CREATE", "UPDATE"',
            "spec.mutations: Required value: mutations must contain at least one item",
            "spec.reinvocationPolicy: Required value",
        ],
    ),
    (
        MutatingPolicyStrategy(),
        {**MUTATING, "mutations": [{}, {"patchType": "Odd"}, {"patchType": "JSONPatch", "applyConfiguration": {}}]},
        [
            "spec.mutations[0].patchType: Required value",
            'spec.mutations[1].patchType: Unsupported value: "Odd": supported values: "ApplyConfiguration",'
            ' "JSONPatch"',
            'spec.mutations[2].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified when'
            " patchType is JSONPatch",
            "spec.mutations[2].jsonPatch: Required value: must be specified when patchType is JSONPatch",
        ],
    ),
    (
        BindingStrategy(mutates=False),
        {"paramRef": {"name": "a", "selector": {}}, "validationActions": ["Deny", "Warn", "Deny"]},
        [
            "spec.policyName: Required value",
            "spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
            "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
            "spec.paramRef.parameterNotFoundAction: Required value",
            'spec.validationActions[2]: Duplicate value: "Deny"',
            'spec.validationActions: Invalid value: ["Deny","Warn","Deny"]: must not contain both Deny and Warn'
            " (repeating the"
            " same validation failure information in the API response and headers serves no purpose)",
        ],
    ),
    (BindingStrategy(mutates=True), {"policyName": "p"}, []),
    (
        BindingStrategy(mutates=True),
        {"policyName": "p", "paramRef": {"parameterNotFoundAction": "Odd"}},
        [
            "spec.paramRef: Required value: one of name or selector must be specified",
            'spec.paramRef.parameterNotFoundAction: Unsupported value: "Odd": supported values: "Deny", "Allow"',
        ],
    ),
]


@pytest.mark.parametrize(("strategy", "spec", "messages"), SPECS)
def test_an_invalid_policy_or_binding_has_kubernetes_errors(
    strategy: Strategy, spec: dict[str, Any], messages: list[str]
) -> None:
    assert sorted(_create(strategy, spec).messages) == sorted(messages)


def test_the_match_resources_of_a_binding_are_defaulted() -> None:
    written = _create(BindingStrategy(mutates=False), {**BINDING, "matchResources": {}})
    assert written.messages == []
    assert written.object["spec"]["matchResources"] == {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
    }


@pytest.mark.parametrize(
    ("reference", "cell"),
    [
        (None, "<unset>"),
        ({"name": "p"}, "*/p"),
        ({"name": "p", "namespace": "n"}, "n/p"),
        (
            {
                "selector": {
                    "matchLabels": {"a": "b"},
                    "matchExpressions": [{"key": "k", "operator": "In", "values": ["v", "w"]}],
                }
            },
            "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{"
            "LabelSelectorRequirement{Key:k,Operator:In,Values:[v w],},},}",
        ),
    ],
)
def test_the_table_shows_the_parameters_of_a_binding(reference: dict[str, Any] | None, cell: str) -> None:
    fields = {"metadata": {"name": "x"}, "spec": {"policyName": "p", "paramRef": reference}}
    assert list(ADMISSION_POLICY_BINDING.row(fields, ages_at(0)))[1] == cell


REFUSED_EXPRESSIONS: list[tuple[dict[str, Any], str]] = [
    ({"validations": [{"expression": "foo"}]}, "spec.validations[0].expression: foo: undeclared reference to 'foo'"),
    ({"validations": [{"expression": "1"}]}, "spec.validations[0].expression: 1: must evaluate to bool but got int"),
    ({"validations": [{"expression": "params.x"}]}, "spec.validations[0].expression: params.x: undeclared reference"),
    ({"validations": [{"expression": "variables.x"}]}, "spec.validations[0].expression: variables.x: undeclared"),
    (
        {"variables": [{"name": "a", "expression": "variables.a"}]},
        "spec.variables[0].expression: variables.a: undefined field 'a'",
    ),
    (
        {
            "variables": [{"name": "a", "expression": "1"}, {"name": "b", "expression": "variables.a"}],
            "validations": [{"expression": "variables.b == 'x'"}],
        },
        "spec.validations[0].expression: variables.b == 'x': found no matching overload for '_==_' applied to '(int,",
    ),
    (
        {"validations": [{"expression": "true", "messageExpression": "authorizer.path('/a').check('get').reason()"}]},
        "spec.validations[0].messageExpression: authorizer",
    ),
    (
        {"matchConditions": [{"name": "c", "expression": "object.a + 1 == request.nope"}]},
        "spec.matchConditions[0].expression: object.a + 1 == request.nope: undefined field 'nope'",
    ),
]


@pytest.mark.parametrize(("fields", "told"), REFUSED_EXPRESSIONS)
def test_a_policy_with_an_invalid_expression_is_refused(fields: dict[str, Any], told: str) -> None:
    (message,) = _create(ValidatingPolicyStrategy(), {**VALIDATING, **fields}).messages
    path, _, problem = told.partition(": ")
    expression, _, problem = problem.partition(": ")
    assert message.startswith(f'{path}: Invalid value: "{expression}')
    assert problem in message


def test_expressions_of_a_policy_can_use_parameters_and_variables() -> None:
    spec = {
        **VALIDATING,
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConditions": [{"name": "c", "expression": "params == null || request.userInfo.username != 'x'"}],
        "variables": [{"name": "n", "expression": "size(object.data)"}],
        "validations": [
            {
                "expression": "variables.n < int(params.data.max) && namespaceObject.metadata.name != ''"
                " && authorizer.requestResource.check('update').allowed()",
                "messageExpression": "'n is %d'.format([variables.n])",
            }
        ],
        "auditAnnotations": [{"key": "n", "valueExpression": "string(variables.n)"}],
    }
    assert _create(ValidatingPolicyStrategy(), spec).messages == []


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ("JSONPatch{op: 'add', nope: 1}", "expected type of field 'nope' is '' but provided type is 'int'"),
        ("JSONPatch{op: 'add', nope: null}", "expected type of field 'nope' is '' but provided type is 'null'"),
        ("JSONPatch{op: 1}", "expected type of field 'op' is 'string' but provided type is 'int'"),
        ("JSONPatch{op: 'add', nope: object.x}", ""),
    ],
)
def test_a_json_patch_expression_accepts_unknown_fields(patch: str, told: str) -> None:
    """The CEL type `JSONPatch` reports that every field name exists (apiserver `JSONPatchType.Field`)."""
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{patch}]"}}
    messages = _create(MutatingPolicyStrategy(), {**MUTATING, "mutations": [mutation]}).messages
    assert [told in each for each in messages] == [True] * bool(told)


def test_invalid_expressions_are_reported_trimmed() -> None:
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": " x"}, "applyConfiguration": {"expression": ""}}
    conditions = [{"name": "c", "expression": "\ty "}]
    found = _create(MutatingPolicyStrategy(), {**MUTATING, "mutations": [patch], "matchConditions": conditions})
    assert [each.partition(": compilation failed")[0] for each in found.messages] == [
        'spec.matchConditions[0].expression: Invalid value: "y"',
        'spec.mutations[0].jsonPatch.expression: Invalid value: "x"',
        'spec.mutations[0].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified when '
        "patchType is JSONPatch",
    ]


def test_policy_conditions_are_evaluated_again_only_after_changes() -> None:
    before = {**VALIDATING, "matchConditions": [{"name": "c", "expression": "params.x == 1"}]}
    old = {"metadata": {"name": "x"}, "spec": before}
    changed = {**before, "failurePolicy": "Ignore"}
    assert update(ValidatingPolicyStrategy(), old, {"spec": changed}, namespaced=False).messages == []
    kind = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    assert update(ValidatingPolicyStrategy(), old, {"spec": {**changed, **kind}}, namespaced=False).messages == []
    odd = [{"name": "c", "expression": "params.y"}]
    assert (
        len(
            update(
                ValidatingPolicyStrategy(), old, {"spec": {**changed, "matchConditions": odd}}, namespaced=False
            ).messages
        )
        == 1
    )


def test_the_status_of_a_policy_is_checked() -> None:
    warnings = [{"fieldRef": "", "warning": ""}, {"fieldRef": "spec[", "warning": "w"}]
    status = {"typeChecking": {"expressionWarnings": warnings}, "conditions": [{"type": "a", "status": "True"}]}
    old = {"metadata": {"name": "x"}, "spec": VALIDATING}
    found = update(ValidatingPolicyStrategy(), old, {"status": status}, namespaced=False, subresource="status")
    assert [error.field for error in found.errors] == [
        "status.typeChecking.expressionWarnings[0].warning",
        "status.typeChecking.expressionWarnings[0].fieldRef",
        "status.typeChecking.expressionWarnings[1].fieldRef",
        "status.conditions[0].lastTransitionTime",
        "status.conditions[0].reason",
    ]


def test_annotations_are_formatted_as_structs() -> None:
    annotations = [{"key": f"k{at}", "valueExpression": "'v'"} for at in range(21)]
    (error,) = _create(ValidatingPolicyStrategy(), {**VALIDATING, "auditAnnotations": annotations}).errors
    assert error.body.startswith('Invalid value: [{"Key":"k0","ValueExpression":"\'v\'"},{"Key":"k1",')
