from typing import Any

import pytest

from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.networking.ingress_class import IngressClassStrategy
from ctrlmgr.kinds.node.runtime_class import RuntimeClassStrategy
from ctrlmgr.kinds.scheduling.priority_class import PriorityClassStrategy
from ctrlmgr.kinds.storage.storage_classes import StorageClassStrategy
from tests.engine.stage import Stage
from tests.kinds.write import create, update

PRIORITY = PriorityClassStrategy()
INGRESS = IngressClassStrategy()
STORAGE = StorageClassStrategy()
RUNTIME = RuntimeClassStrategy()
METADATA = {"name": "c"}
RESERVED = (
    "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: "
)


def test_defaults_of_classes() -> None:
    priority = create(PRIORITY, {"metadata": METADATA, "value": 1}, namespaced=False)
    assert priority.object["preemptionPolicy"] == "PreemptLowerPriority"
    assert priority.object["metadata"]["generation"] == 1
    storage = create(STORAGE, {"metadata": METADATA, "provisioner": "p"}, namespaced=False)
    assert storage.object["reclaimPolicy"] == "Delete"
    assert storage.object["volumeBindingMode"] == "Immediate"
    spec = {"controller": "a.b/c", "parameters": {"kind": "K", "name": "n"}}
    ingress = create(INGRESS, {"metadata": METADATA, "spec": spec}, namespaced=False)
    assert ingress.object["spec"]["parameters"]["scope"] == "Cluster"


@pytest.mark.parametrize(
    ("name", "fields", "messages"),
    [
        ("c", {"value": 10**9, "preemptionPolicy": "Never"}, []),
        ("c", {"value": -5}, []),
        (
            "c",
            {"value": 10**9 + 1},
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        ),
        (
            "c",
            {"preemptionPolicy": "x"},
            ['preemptionPolicy: Unsupported value: "x": supported values: "PreemptLowerPriority", "Never"'],
        ),
        ("system-node-critical", {"value": 2000001000}, []),
        ("system-x", {}, [f"{RESERVED}system-x is not a known system priority class"]),
        (
            "system-node-critical",
            {"value": 5},
            [f"{RESERVED}value of system-node-critical PriorityClass must be 2000001000"],
        ),
        (
            "system-node-critical",
            {"value": 2000001000, "globalDefault": True},
            [f"{RESERVED}globalDefault of system-node-critical PriorityClass must be false"],
        ),
    ],
)
def test_priority_classes(name: str, fields: dict[str, Any], messages: list[str]) -> None:
    assert create(PRIORITY, {"metadata": {"name": name}, **fields}, namespaced=False).messages == messages


def test_a_priority_is_immutable() -> None:
    old = {"metadata": METADATA, "value": 5, "preemptionPolicy": "Never"}
    change = {"value": 6, "preemptionPolicy": None, "description": "d"}
    assert update(PRIORITY, old, change, namespaced=False).messages == [
        "value: Forbidden: may not be changed in an update.",
        'preemptionPolicy: Invalid value: "PreemptLowerPriority": field is immutable',
    ]


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        ({"controller": "example.com/ingress"}, []),
        ({}, ["controller: Required value"]),
        (
            {"controller": "example.com"},
            [
                'controller: Invalid value: "example.com": must be a domain-prefixed path (such as "acme.io/foo")',
            ],
        ),
        (
            {"controller": "A/b c"},
            [
                f'controller: Invalid value: "A": {name_formats.dns1123_subdomain("A")[0]}',
                f'controller: Invalid value: "b c": {name_formats.http_path("b c")[0]}',
            ],
        ),
        (
            {"controller": f"a/{'b' * 249}"},
            ["controller: Too long: may not be more than 250 bytes"],
        ),
        (
            {"controller": "a/b", "parameters": {"apiGroup": "-", "kind": "", "name": "n/m"}},
            [
                f'parameters.apiGroup: Invalid value: "-": {name_formats.dns1123_subdomain("-")[0]}',
                "parameters.kind: Required value",
                "parameters.name: Invalid value: \"n/m\": may not contain '/'",
            ],
        ),
        (
            {"controller": "a/b", "parameters": {"kind": "K", "name": "n", "namespace": "ns"}},
            ["parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
        ),
        (
            {"controller": "a/b", "parameters": {"kind": "K", "name": "n", "scope": "Namespace"}},
            ["parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"],
        ),
        (
            {"controller": "a/b", "parameters": {"kind": "K", "name": "n", "scope": "x"}},
            ['parameters.scope: Unsupported value: "x": supported values: "Cluster", "Namespace"'],
        ),
        (
            {"controller": "a/b", "parameters": {"kind": "K", "name": "n", "scope": "Namespace", "namespace": "a.b"}},
            ['parameters.namespace: Invalid value: "a.b": must not contain dots'],
        ),
    ],
)
def test_ingress_classes(spec: dict[str, Any], messages: list[str]) -> None:
    written = create(INGRESS, {"metadata": METADATA, "spec": spec}, namespaced=False)
    assert written.messages == [f"spec.{each}" for each in messages]


def test_a_controller_is_immutable() -> None:
    old = {"metadata": METADATA, "spec": {"controller": "a/b"}}
    assert update(INGRESS, old, {"spec": {"controller": "a/c"}}, namespaced=False).messages == [
        'spec.controller: Invalid value: "a/c": field is immutable'
    ]


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({"provisioner": "kubernetes.io/No-Provisioner", "parameters": {"a": "b"}}, []),
        ({}, ["provisioner: Required value"]),
        ({"provisioner": "a/b/c"}, [f'provisioner: Invalid value: "a/b/c": {name_formats.qualified_name("a/b/c")[0]}']),
        ({"provisioner": "p", "parameters": {"": "b"}}, ['parameters: Invalid value: "": field can not be empty.']),
        (
            {"provisioner": "p", "parameters": {str(each): "" for each in range(513)}},
            ["parameters: Too long: may not be more than 512 bytes"],
        ),
        (
            {"provisioner": "p", "parameters": {"a": "b" * 262144}},
            ["parameters: Too long: may not be more than 262144 bytes"],
        ),
        (
            {"provisioner": "p", "reclaimPolicy": "Recycle", "volumeBindingMode": "x"},
            [
                'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"',
                'volumeBindingMode: Unsupported value: "x": supported values: "Immediate", "WaitForFirstConsumer"',
            ],
        ),
    ],
)
def test_storage_classes(fields: dict[str, Any], messages: list[str]) -> None:
    assert create(STORAGE, {"metadata": METADATA, **fields}, namespaced=False).messages == messages


def test_parameters_of_a_storage_class_are_immutable() -> None:
    old = {"metadata": METADATA, "provisioner": "p", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
    assert update(STORAGE, old, {"allowVolumeExpansion": True}, namespaced=False).errors == []
    change = {
        "provisioner": "q",
        "parameters": {"a": "b"},
        "reclaimPolicy": "Retain",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    assert update(STORAGE, old, change, namespaced=False).messages == [
        'parameters: Invalid value: {"a":"b"}: field is immutable',
        'provisioner: Invalid value: "q": field is immutable',
        'reclaimPolicy: Invalid value: "Retain": field is immutable',
        'volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable',
    ]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "handler: Required value"),
        ({"handler": "Bad_"}, 'handler: Invalid value: "Bad_": a lowercase RFC 1123 label'),
        ({"handler": "h", "overhead": {"podFixed": {"cpu": "-1"}}}, 'overhead.limits[cpu]: Invalid value: "-1"'),
        ({"handler": "h", "scheduling": {"nodeSelector": {"a b": "c"}}}, "scheduling.nodeSelector: Invalid value"),
        (
            {"handler": "h", "scheduling": {"tolerations": [{"operator": "Exists"}, {"operator": "Exists"}]}},
            "scheduling.tolerations[1]: Duplicate value",
        ),
    ],
)
def test_invalid_runtime_classes_are_refused(fields: dict[str, Any], problem: str) -> None:
    made = create(RUNTIME, {"metadata": METADATA, **fields}, namespaced=False)
    assert problem in made.messages[0]


def test_the_handler_of_a_runtime_class_is_immutable() -> None:
    old = {"metadata": METADATA, "handler": "h"}
    changed = update(RUNTIME, old, {"handler": "other"}, namespaced=False)
    assert changed.messages == ['handler: Invalid value: "other": field is immutable']


def test_system_priority_classes_cannot_be_deleted() -> None:
    stage = Stage()
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    name = "system-node-critical"
    assert stage.send("POST", path, {"metadata": {"name": name}, "value": 2_000_001_000}).code == 201
    refused = stage.send("DELETE", f"{path}/{name}")
    assert refused.code == 403
    assert refused.message.endswith("is forbidden: this is a system priority class and cannot be deleted")


def test_deprecated_labels_of_nodes_cause_warnings() -> None:
    scheduling = {"nodeSelector": {"beta.kubernetes.io/arch": "a", "kubernetes.io/arch": "a"}}
    made = create(RUNTIME, {"metadata": METADATA, "handler": "h", "scheduling": scheduling}, namespaced=False)
    assert made.warnings == [
        'scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/arch" instead',
    ]


def test_tolerations_are_compared_without_seconds_and_formatted_as_structs() -> None:
    toleration = {"key": "k", "operator": "Exists", "effect": "NoExecute"}
    scheduling = {"tolerations": [toleration, {**toleration, "tolerationSeconds": 5}]}
    assert create(
        RUNTIME, {"metadata": METADATA, "handler": "h", "scheduling": scheduling}, namespaced=False
    ).messages == [
        'scheduling.tolerations[1]: Duplicate value: {"Key":"k","Operator":"Exists","Value":"","Effect":"NoExecute",'
        '"TolerationSeconds":5}'
    ]
