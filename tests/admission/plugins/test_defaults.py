"""Tests of the plugins that set defaults: tolerations, storage class, ingress class."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.admission.plugins.default_ingress_class import DefaultIngressClass
from ctrlmgr.admission.plugins.default_storage_class import DefaultStorageClass
from ctrlmgr.admission.plugins.default_toleration_seconds import DefaultTolerationSeconds
from tests.admission.stage import Write

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


def added(*keys: str) -> list[dict[str, Any]]:
    return [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for key in keys]


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ([], (NOT_READY, UNREACHABLE)),
        ([{"key": "a", "operator": "Exists"}], (NOT_READY, UNREACHABLE)),
        ([{"operator": "Exists"}], ()),
        ([{"operator": "Exists", "effect": "NoExecute"}], ()),
        ([{"operator": "Exists", "effect": "NoSchedule"}], (NOT_READY, UNREACHABLE)),
        ([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}], (UNREACHABLE,)),
        ([{"key": UNREACHABLE, "operator": "Equal", "value": "x"}], (NOT_READY,)),
        ([{"key": NOT_READY, "effect": "PreferNoSchedule"}], (NOT_READY, UNREACHABLE)),
    ],
)
def test_pods_tolerate_a_failing_node_for_a_short_time(given: list[dict[str, Any]], more: tuple[str, ...]) -> None:
    states: tuple[dict[str, Any] | None, ...] = (None, {"spec": {}})
    for old in states:
        made = Write("v1/pods", {"spec": {"tolerations": given}}, old).admit(DefaultTolerationSeconds())
        assert made["spec"]["tolerations"] == [*given, *added(*more)]


def of_class(kind: str, name: str, created: str, default: str, *, beta: bool = False) -> dict[str, Any]:
    group = {"StorageClass": "storage", "IngressClass": "networking"}[kind]
    prefix = {"StorageClass": "storageclass", "IngressClass": "ingressclass"}[kind]
    mark = f"{prefix}{'.beta' if beta else ''}.kubernetes.io/is-default-class"
    metadata = {"name": name, "creationTimestamp": f"2026-01-01T00:00:0{created}Z", "annotations": {mark: default}}
    return {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, "metadata": metadata}


CLASSES = [("old", "1", "true"), ("newer", "3", "true"), ("new", "3", "true"), ("newest", "5", "false")]


@pytest.mark.parametrize(
    ("metadata", "spec", "named"),
    [
        ({}, {}, "new"),
        ({}, {"storageClassName": ""}, ""),
        ({}, {"storageClassName": "mine"}, "mine"),
        ({"annotations": {"volume.beta.kubernetes.io/storage-class": ""}}, {}, None),
    ],
)
def test_a_claim_gets_the_newest_default_class(
    metadata: dict[str, Any], spec: dict[str, Any], named: str | None
) -> None:
    classes = [of_class("StorageClass", *each) for each in CLASSES]
    write = Write("v1/persistentvolumeclaims", {"metadata": metadata, "spec": spec}, None, *classes)
    assert write.admit(DefaultStorageClass())["spec"].get("storageClassName") == named
    changed = Write("v1/persistentvolumeclaims", {"spec": {}}, {"spec": {}}, *classes)
    assert "storageClassName" not in changed.admit(DefaultStorageClass())["spec"]


def test_the_beta_annotation_of_a_default_class_counts() -> None:
    old = of_class("StorageClass", "old", "1", "true", beta=True)
    made = Write("v1/persistentvolumeclaims", {"spec": {}}, None, old).admit(DefaultStorageClass())
    assert made["spec"]["storageClassName"] == "old"


@pytest.mark.parametrize(
    ("metadata", "spec", "named"),
    [
        ({}, {}, "new"),
        ({}, {"ingressClassName": "mine"}, "mine"),
        ({"annotations": {"kubernetes.io/ingress.class": "x"}}, {}, None),
    ],
)
def test_an_ingress_gets_the_newest_default_class(
    metadata: dict[str, Any], spec: dict[str, Any], named: str | None
) -> None:
    classes = [of_class("IngressClass", *each) for each in CLASSES]
    path = "networking.k8s.io/v1/ingresses"
    write = Write(path, {"metadata": metadata, "spec": spec}, None, *classes)
    assert write.admit(DefaultIngressClass())["spec"].get("ingressClassName") == named
    assert "ingressClassName" not in Write(path, {"spec": {}}).admit(DefaultIngressClass())["spec"]
