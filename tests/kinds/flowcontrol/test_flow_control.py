"""Tests of FlowSchemas and PriorityLevelConfigurations: defaults, and refusals with their messages."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.kinds.flowcontrol.flow_schemas import FlowSchemaStrategy
from ctrlmgr.kinds.flowcontrol.mandatory_configuration import FLOW_SCHEMAS, PRIORITY_LEVELS
from ctrlmgr.kinds.flowcontrol.priority_levels import PriorityLevelStrategy
from tests.kinds.write import create

SCHEMAS, LEVELS = FlowSchemaStrategy(), PriorityLevelStrategy()
ANYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
NOBODY = {"kind": "User", "user": {"name": "nobody"}}
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character"
    " (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def schema(**spec: Any) -> dict[str, Any]:
    rules = [{"subjects": [NOBODY], "resourceRules": [ANYTHING]}]
    whole = {"priorityLevelConfiguration": {"name": "pl"}, "matchingPrecedence": 9000, "rules": rules, **spec}
    return {"metadata": {"name": "x"}, "spec": whole}


def rule(**fields: Any) -> dict[str, Any]:
    return schema(rules=[{"subjects": [NOBODY], "resourceRules": [ANYTHING], **fields}])


def subject(**fields: Any) -> dict[str, Any]:
    return rule(subjects=[fields])


def level(response: Any = None, **limited: Any) -> dict[str, Any]:
    limited = {"limitResponse": response or {"type": "Reject"}, **limited}
    return {"metadata": {"name": "x"}, "spec": {"type": "Limited", "limited": limited}}


@pytest.mark.parametrize(
    ("obj", "messages"),
    [
        (schema(), []),
        (schema(matchingPrecedence=-1), ["matchingPrecedence: Invalid value: -1: must be a positive value"]),
        (
            schema(matchingPrecedence=10001),
            ["matchingPrecedence: Invalid value: 10001: must not be greater than 10000"],
        ),
        (
            schema(matchingPrecedence=1),
            ["matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1"],
        ),
        (
            schema(priorityLevelConfiguration={"name": ""}),
            ["priorityLevelConfiguration.name: Required value: must reference a priority level"],
        ),
        (
            schema(rules=[{}]),
            [
                "rules[0].subjects: Required value: subjects must contain at least one value",
                "rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
            ],
        ),
        (
            subject(kind="Robot"),
            [
                'rules[0].subjects[0].kind: Unsupported value: "Robot": '
                'supported values: "Group", "ServiceAccount", "User"'
            ],
        ),
        (
            subject(kind="User", group={"name": "g"}),
            [
                "rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'",
                "rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
            ],
        ),
        (subject(kind="Group", group={"name": ""}), ["rules[0].subjects[0].group.name: Required value"]),
        (subject(kind="ServiceAccount", serviceAccount={"name": "*", "namespace": "a"}), []),
        (
            subject(kind="ServiceAccount", serviceAccount={"name": "a", "namespace": "*"}),
            [f'rules[0].subjects[0].serviceAccount.namespace: Invalid value: "*": {LABEL}'],
        ),
        (
            rule(resourceRules=[{"verbs": ["*", "get"], "apiGroups": [], "resources": ["*", "a"], "namespaces": []}]),
            [
                'rules[0].resourceRules[0].verbs: Invalid value: ["*","get"]: '
                "if '*' is present, must not specify other verbs",
                "rules[0].resourceRules[0].apiGroups: Required value: "
                "resource rules must supply at least one api group",
                'rules[0].resourceRules[0].resources: Invalid value: ["*","a"]: '
                "if '*' is present, must not specify other resources",
                "rules[0].resourceRules[0].namespaces: Required value: "
                "resource rules that are not cluster scoped must supply at least one namespace",
            ],
        ),
        (rule(resourceRules=[{**ANYTHING, "namespaces": [], "clusterScope": True}]), []),
        (
            rule(resourceRules=[{**ANYTHING, "verbs": ["look"]}]),
            [
                'rules[0].resourceRules[0].verbs: Unsupported value: ["look"]: supported values: "create", "delete", '
                '"deletecollection", "get", "list", "patch", "proxy", "update", "watch"'
            ],
        ),
        (
            rule(nonResourceRules=[{"verbs": ["get"], "nonResourceURLs": ["x", "/a//b", "/a b", "/a*", "/", "/a/*"]}]),
            [
                f'rules[0].nonResourceRules[0].nonResourceURLs[{index}]: Invalid value: "{url}": {detail}'
                for index, url, detail in (
                    (0, "x", "must start with slash"),
                    (1, "/a//b", "must not contain double slash"),
                    (2, "/a b", "must not contain white-space"),
                    (3, "/a*", "wildcard can only do suffix matching"),
                )
            ],
        ),
    ],
)
def test_flow_schemas(obj: dict[str, Any], messages: list[str]) -> None:
    assert create(SCHEMAS, obj).messages == [f"spec.{each}" for each in messages]


@pytest.mark.parametrize(
    ("obj", "messages"),
    [
        (level(), []),
        (level(nominalConcurrencyShares=0, borrowingLimitPercent=0), []),
        (
            level(nominalConcurrencyShares=-1, lendablePercent=101, borrowingLimitPercent=-1),
            [
                "limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
                "limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
                "limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer",
            ],
        ),
        (
            level({"type": ""}),
            ['limited.limitResponse.type: Unsupported value: "": supported values: "Queue", "Reject"'],
        ),
        (
            level({"type": "Reject", "queuing": {}}),
            ["limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not Limited"],
        ),
        (
            level({"type": "Queue"}),
            [
                "limited.limitResponse.queuing: Required value: "
                "must not be empty if limited.limitResponse.type is Limited"
            ],
        ),
        (
            level({"type": "Queue", "queuing": {"queues": 4}}),
            [
                "limited.limitResponse.queuing.handSize: Invalid value: 8: should not be greater than queues (4)",
            ],
        ),
        (
            level({"type": "Queue", "queuing": {"queues": 10000001}}),
            [
                "limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than 10000000",
                "limited.limitResponse.queuing.handSize: Invalid value: 8: required entropy bits of deckSize 10000001 "
                "and handSize 8 should not be greater than 60",
            ],
        ),
        (
            {"metadata": {"name": "x"}, "spec": {"type": "Exempt"}},
            ["type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'"],
        ),
        (
            {"metadata": {"name": "x"}, "spec": {"type": "Odd"}},
            ['type: Unsupported value: "Odd": supported values: "Exempt", "Limited"'],
        ),
        (
            {"metadata": {"name": "x"}, "spec": {"type": "Limited", "exempt": {}}},
            [
                "exempt: Forbidden: must be nil if the type is Limited",
                "limited: Required value: must not be empty when type is Limited",
            ],
        ),
    ],
)
def test_priority_levels(obj: dict[str, Any], messages: list[str]) -> None:
    assert create(LEVELS, obj).messages == [f"spec.{each}" for each in messages]


def test_omitted_fields_are_defaulted() -> None:
    assert create(SCHEMAS, schema(matchingPrecedence=0)).object["spec"]["matchingPrecedence"] == 1000
    limited = create(LEVELS, level({"type": "Queue", "queuing": {"handSize": 1}})).object["spec"]["limited"]
    assert (limited["nominalConcurrencyShares"], limited["lendablePercent"]) == (30, 0)
    assert limited["limitResponse"]["queuing"] == {"queues": 64, "handSize": 1, "queueLengthLimit": 50}


@pytest.mark.parametrize("name", ["exempt", "catch-all"])
def test_mandatory_objects_have_a_fixed_spec(name: str) -> None:
    flow = {"metadata": {"name": name}, "spec": FLOW_SCHEMAS[name]}
    assert create(SCHEMAS, flow).messages == []
    (message,) = create(SCHEMAS, {**flow, "spec": {**FLOW_SCHEMAS[name], "matchingPrecedence": 77}}).messages
    assert message.endswith(f"spec of '{name}' must equal the fixed value")
    most = {"metadata": {"name": name}, "spec": PRIORITY_LEVELS[name]}
    assert create(LEVELS, most).messages == []


def test_exempt_levels_can_lend() -> None:
    def exempt(lends: int) -> list[str]:
        spec = {"type": "Exempt", "exempt": {"lendablePercent": lends}}
        return create(LEVELS, {"metadata": {"name": "exempt"}, "spec": spec}).messages

    assert exempt(1) == []
    assert exempt(-1) == ["spec.exempt.lendablePercent: Invalid value: -1: must be between 0 and 100, inclusive"]


def test_an_annotation_of_another_version_is_forbidden() -> None:
    metadata = {"name": "l", "annotations": {"flowcontrol.k8s.io/preserve-zero-concurrency-shares": ""}}
    (message,) = create(LEVELS, {**level({"type": "Reject"}), "metadata": metadata}).messages
    assert message.startswith("metadata.annotations: Forbidden: annotation 'flowcontrol.k8s.io/preserve-zero")


def test_an_error_about_a_fixed_spec_prints_every_field() -> None:
    spec = {"type": "Exempt", "exempt": {"lendablePercent": 1}}
    assert create(LEVELS, {"metadata": {"name": "exempt"}, "spec": spec}).messages == []
    wrong = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
    *_, message = create(LEVELS, {"metadata": {"name": "exempt"}, "spec": wrong}).messages
    assert message == (
        'spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":30,"LimitResponse":{"Type":'
        '"Reject","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}: spec of \'exempt\' '
        "except the 'spec.exempt' field must equal the fixed value"
    )


def test_a_flow_distinguisher_method_is_formatted_as_a_struct() -> None:
    (message,) = create(SCHEMAS, schema(distinguisherMethod={"type": "x"})).messages
    assert message.startswith('spec.distinguisherMethod.type: Unsupported value: {"Type":"x"}: ')
