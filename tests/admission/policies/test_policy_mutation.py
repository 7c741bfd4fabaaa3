"""Tests of MutatingAdmissionPolicies, from the write to the stored object."""

from __future__ import annotations

from typing import Any

import pytest

from tests.admission.policies.governed import RULE, PolicyCluster, causes

LABEL = "Object{metadata: Object.metadata{labels: Object.metadata.labels{added: 'yes'}}}"


def test_a_policy_mutates_a_write() -> None:
    governed = PolicyCluster()
    assert governed.mutating(LABEL).warnings == ()
    answer = governed.create(metadata={"labels": {"have": "it"}})
    assert answer.code == 201
    assert answer.body["metadata"]["labels"] == {"have": "it", "added": "yes"}


def test_each_mutation_sees_the_results_of_earlier_mutations() -> None:
    governed = PolicyCluster()
    path = "'/metadata/labels/' + jsonpatch.escapeKey('a/b')"
    second = f"[JSONPatch{{op: 'add', path: {path}, value: object.metadata.labels.added}}]"
    governed.mutating(LABEL, second)
    assert governed.create().body["metadata"]["labels"] == {"added": "yes", "a/b": "yes"}


@pytest.mark.parametrize(
    ("patch", "data"),
    [
        ("[JSONPatch{op: 'add', path: '/data/x', value: object.data.a + '!'}]", {"a": "1", "x": "1!"}),
        ("[JSONPatch{op: 'test', path: '/data/a', value: '2'}, JSONPatch{op: 'remove', path: '/data/a'}]", {"a": "1"}),
        ("[JSONPatch{op: 'copy', from: '/data/a', path: '/data/b'}]", {"a": "1", "b": "1"}),
        ("has(object.data.a) ? [] : [JSONPatch{op: 'remove', path: '/nope'}]", {"a": "1"}),
        ("[JSONPatch{op: 'replace', path: '/data', value: {'b': string(size(variables.names))}}]", {"b": "1"}),
    ],
)
def test_patches_are_applied(patch: str, data: dict[str, str]) -> None:
    governed = PolicyCluster()
    governed.mutating(patch, variables=[{"name": "names", "expression": "object.data.map(k, k)"}])
    assert governed.create(data={"a": "1"}).body["data"] == data


def test_items_of_lists_are_merged_by_their_keys() -> None:
    governed = PolicyCluster()
    sidecar = "Object.spec.initContainers{name: 'mesh', image: 'example.invalid/mesh', restartPolicy: 'Always'}"
    pods = {"resourceRules": [{**RULE, "operations": ["CREATE"], "resources": ["pods"]}]}
    governed.mutating(f"Object{{spec: Object.spec{{initContainers: [{sidecar}]}}}}", matchConstraints=pods)
    spec = {"containers": [{"name": "c", "image": "i"}], "initContainers": [{"name": "first", "image": "i"}]}
    answer = governed.create(path="/api/v1/namespaces/shop/pods", spec=spec)
    assert answer.code == 201, answer
    names = [each["name"] for each in answer.body["spec"]["initContainers"]]
    assert sorted(names) == ["first", "mesh"]


REFUSED: list[tuple[str, str]] = [
    ("[JSONPatch{op: 'remove', path: '/data/z'}]", "JSON Patch: error in remove for path: '/data/z': Unable to remove"),
    (
        "[JSONPatch{op: 'add', path: '/a/b/c', value: 1}]",
        "JSON Patch: add operation does not apply: doc is missing path",
    ),
    (
        "[JSONPatch{op: 'add', path: '/data/x', value: object.nope}]",
        "expression '[JSONPatch{op: 'add', path: '/data/x',",
    ),
    (
        "[JSONPatch{op: 'add', path: '/data/x', nope: object.data.a}]",
        "expression '[JSONPatch{op: 'add', path: '/data/x', nope: object.data.a}]' resulted in error: unexpected "
        "JSONPatchType field: nope",
    ),
    (
        "[JSONPatch{op: 'add', path: object.data, value: 'x'}]",
        "expression '[JSONPatch{op: 'add', path: object.data, value: 'x'}]' resulted in error: unexpected type "
        "map[string]interface {} for JSONPatchType 'path' field",
    ),
    ("Object{nope: 'x'}", "error applying patch: failed to convert patch object to typed object: .nope: field not"),
    (
        "Object{data: Object.metadata{}}",
        'type mismatch: unexpected type name "Object.metadata", expected "Object.data"',
    ),
]


@pytest.mark.parametrize(("mutation", "problem"), REFUSED)
def test_a_failing_mutation_refuses_or_is_ignored_by_the_failure_policy(mutation: str, problem: str) -> None:
    governed = PolicyCluster()
    governed.mutating(mutation)
    answer = governed.create(data={"a": "1"})
    assert (answer.code, answer.body["reason"]) == (403, "Invalid")
    assert answer.message.startswith(f"policy 'p' with binding 'p' denied request: {problem}")
    assert causes(answer) == [answer.message]
    tolerant = PolicyCluster()
    tolerant.mutating(mutation, failurePolicy="Ignore")
    assert tolerant.create(data={"a": "1"}).body["data"] == {"a": "1"}


def test_an_atomic_list_cannot_be_applied() -> None:
    governed = PolicyCluster()
    pods = {"resourceRules": [{**RULE, "operations": ["CREATE"], "resources": ["pods"]}]}
    governed.mutating(
        "Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'x', operator: 'Exists'}]}}",
        matchConstraints=pods,
    )
    spec = {"containers": [{"name": "c", "image": "i"}]}
    answer = governed.create(path="/api/v1/namespaces/shop/pods", spec=spec)
    assert answer.message.endswith("may not mutate atomic arrays, maps or structs: .spec.tolerations")


def test_a_mutation_to_an_invalid_object_is_an_internal_error() -> None:
    governed = PolicyCluster()
    governed.mutating("[JSONPatch{op: 'add', path: '/data', value: 'text'}]")
    answer = governed.create()
    assert answer.code == 500
    problem = "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string"
    assert answer.message == f"Internal error occurred: {problem}"


def append(value: str) -> str:
    before = "object.?data.?order.orValue('')"
    return f"[JSONPatch{{op: 'add', path: '/data', value: {{'order': {before} + '{value}'}}}}]"


def test_a_policy_is_reinvoked_after_a_later_mutation_if_it_requests_that() -> None:
    governed = PolicyCluster()
    governed.mutating(append("a"), name="a", reinvocationPolicy="IfNeeded")
    governed.mutating(append("b"), name="b")
    assert governed.create().body["data"] == {"order": "aba"}


def test_conditions_and_parameters() -> None:
    governed = PolicyCluster()
    governed.create("limits", data={"v": "7"})
    more: dict[str, Any] = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"},
        "matchConditions": [{"name": "c", "expression": "object.metadata.name != 'free'"}],
    }
    governed.mutating("[JSONPatch{op: 'add', path: '/data', value: {'v': params.data.v}}]", **more)
    assert governed.create("x").body["data"] == {"v": "7"}
    assert "data" not in governed.create("free").body


def test_mutation_expressions_return_the_required_type() -> None:
    answer = PolicyCluster().stage.send(
        "POST",
        "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
        {
            "metadata": {"name": "p"},
            "spec": {
                "matchConstraints": {"resourceRules": [{**RULE, "operations": ["CREATE"]}]},
                "reinvocationPolicy": "Never",
                "mutations": [
                    {"patchType": "JSONPatch", "jsonPatch": {"expression": "1"}},
                    {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "object"}},
                ],
            },
        },
    )
    assert [each.partition(": ")[2] for each in causes(answer)] == [
        '"1": must evaluate to list(JSONPatch) but got int',
        '"object": must evaluate to Object but got dyn',
    ]
