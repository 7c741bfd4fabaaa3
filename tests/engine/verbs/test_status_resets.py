"""Tests of the fields that writes to `/status` must not change, and of the fields that writes to the object must not
change, for every built-in kind with a status.

The corresponding test of Kubernetes is `TestFieldsWipingConsistency` (kubernetes/kubernetes#137689): a writer does not
become the owner of fields that the strategy resets.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.kinds.builtin import builtin_kinds as kinds_of_the_server
from tests.engine.stage import Stage, builtin_kinds

MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
METADATA = {
    "labels": {"k": "v"},
    "annotations": {"k": "v"},
    "finalizers": ["example.com/f"],
    "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "E", "name": "e", "uid": "u"}],
}
CONTAINERS = [{"name": "c", "image": "i"}]
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
ONCE = {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}
CONDITION = {
    "type": "T",
    "status": "True",
    "reason": "R",
    "message": "m",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
}
RULES = [{"apiGroups": ["x"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["xs"]}]
POLICY = {"matchConstraints": {"resourceRules": RULES}, "validations": [{"expression": "true"}]}
CRD = {
    "group": "example.com",
    "scope": "Cluster",
    "names": {"plural": "xs", "kind": "X"},
    "versions": [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
    ],
}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
CLAIM = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}]}}
VOLUME: dict[str, Any] = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "hostPath": {"path": "/x"},
}
REQUESTED = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
DEVICE = {"request": "a", "driver": "d.example.com", "pool": "p", "device": "x"}
LIMITED = {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}

KINDS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "apps/v1/daemonsets": (SELECTED, {"minReadySeconds": 3}, {"numberReady": 1}, ()),
    "apps/v1/deployments": (SELECTED, {"replicas": 3}, {"observedGeneration": 1}, ("labels",)),
    "apps/v1/replicasets": (SELECTED, {"replicas": 3}, {"observedGeneration": 1}, ()),
    "apps/v1/statefulsets": (SELECTED, {"replicas": 3}, {"observedGeneration": 1}, ()),
    "autoscaling/v1/horizontalpodautoscalers": (
        {"scaleTargetRef": TARGET, "maxReplicas": 3},
        {"maxReplicas": 4},
        {"observedGeneration": 1},
        (),
    ),
    "autoscaling/v2/horizontalpodautoscalers": (
        {"scaleTargetRef": TARGET, "maxReplicas": 3},
        {"maxReplicas": 4},
        {"observedGeneration": 1},
        (),
    ),
    "batch/v1/cronjobs": (
        {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}},
        {"suspend": True},
        {"lastScheduleTime": "2026-01-02T03:04:05Z"},
        (),
    ),
    "batch/v1/jobs": ({"template": ONCE}, {"suspend": True}, {"active": 1}, ()),
    "certificates.k8s.io/v1/certificatesigningrequests": ({}, {}, {}, ()),
    "policy/v1/poddisruptionbudgets": ({"minAvailable": 1}, {"minAvailable": 2}, {"observedGeneration": 1}, ()),
    "networking.k8s.io/v1/ingresses": (
        {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
        {"ingressClassName": "c"},
        {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}},
        (),
    ),
    "networking.k8s.io/v1/servicecidrs": (
        {"cidrs": ["10.200.0.0/24"]},
        {"cidrs": ["10.200.0.0/24", "fd00::/64"]},
        {"conditions": [CONDITION]},
        tuple(METADATA),
    ),
    "storage.k8s.io/v1/volumeattachments": (
        {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "pv"}},
        {},
        {"attached": True},
        tuple(METADATA),
    ),
    "admissionregistration.k8s.io/v1/validatingadmissionpolicies": (
        POLICY,
        {"failurePolicy": "Ignore"},
        {"observedGeneration": 1},
        tuple(METADATA),
    ),
    "flowcontrol.apiserver.k8s.io/v1/flowschemas": (
        {"priorityLevelConfiguration": {"name": "global-default"}},
        {"matchingPrecedence": 7},
        {"conditions": [CONDITION]},
        tuple(METADATA),
    ),
    "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations": (
        LIMITED,
        {"limited": {"nominalConcurrencyShares": 2}},
        {"conditions": [CONDITION]},
        tuple(METADATA),
    ),
    "resource.k8s.io/v1/resourceclaims": (
        CLAIM,
        {},
        {"allocation": {"devices": {"results": [DEVICE]}}},
        tuple(METADATA),
    ),
    "apiregistration.k8s.io/v1/apiservices": (
        {
            "group": "g.example.com",
            "version": "v1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "service": {"name": "s", "namespace": "shop"},
            "insecureSkipTLSVerify": True,
        },
        {"versionPriority": 16},
        {"conditions": [CONDITION]},
        tuple(METADATA),
    ),
    "apiextensions.k8s.io/v1/customresourcedefinitions": (
        CRD,
        {"preserveUnknownFields": False, "scope": "Cluster"},
        {"conditions": [CONDITION], "storedVersions": ["v1"]},
        (),
    ),
    "v1/replicationcontrollers": ({**SELECTED, "selector": {"a": "b"}}, {"replicas": 3}, {"observedGeneration": 1}, ()),
    "v1/services": (
        {"ports": [{"port": 1}]},
        {"sessionAffinity": "ClientIP"},
        {"conditions": [CONDITION]},
        (),
    ),
    "v1/pods": ({"containers": CONTAINERS}, {"activeDeadlineSeconds": 9}, {"phase": "Running"}, ("ownerReferences",)),
    "v1/resourcequotas": ({"hard": {"pods": "5"}}, {"hard": {"pods": "6"}}, {"used": {"pods": "1"}}, ()),
    "v1/persistentvolumeclaims": (REQUESTED, {"volumeName": "v"}, {"phase": "Bound"}, ()),
    "v1/persistentvolumes": (VOLUME, {"persistentVolumeReclaimPolicy": "Delete"}, {"message": "m"}, ()),
    "v1/nodes": ({}, {"unschedulable": True}, {"phase": "Running"}, ()),
    "v1/namespaces": ({}, {}, {"conditions": [CONDITION]}, ()),
}
"""For each kind: a spec, a different spec, a status, and the metadata that a write to `/status` does not change."""
NAMES = {
    "apiregistration.k8s.io/v1/apiservices": "v1.g.example.com",
    "apiextensions.k8s.io/v1/customresourcedefinitions": "xs.example.com",
}
UNMADE = "certificates.k8s.io/v1/certificatesigningrequests"
"""A CertificateSigningRequest needs a request to sign; `test_certificate_signing_status` tests the fields that the
kind's subresources change.
"""
CASES = sorted(KINDS.keys() - {UNMADE})


def made(stage: Stage, kind: str) -> str:
    """Create an object of a kind, and return the object's URL path."""
    group_version, _, plural = kind.rpartition("/")
    group, _, version = group_version.rpartition("/")
    found = builtin_kinds().find(group, version, plural)
    assert found is not None
    stage.namespace("shop")
    base = f"/apis/{group_version}" if group else f"/api/{version}"
    path = f"{base}/namespaces/shop/{plural}" if found.namespaced else f"{base}/{plural}"
    name = NAMES.get(kind, "x")
    response = stage.send("POST", path, {"metadata": {"name": name}, "spec": KINDS[kind][0]})
    assert response.code == 201, response.body
    return f"{path}/{name}"


def test_every_kind_with_a_status_is_listed() -> None:
    kinds = {
        f"{declared.gvk.api_version}/{declared.resource.plural}"
        for declared in kinds_of_the_server()
        if "status" in declared.subresources
    }
    assert KINDS.keys() == kinds


@pytest.mark.parametrize("kind", CASES)
def test_a_status_write_changes_only_fields_allowed_by_its_strategy(kind: str) -> None:
    stage = Stage()
    path = made(stage, kind)
    _, spec, status, kept = KINDS[kind]
    before = stage.send("GET", path).body
    patch = {"metadata": METADATA, "spec": spec, "status": status}
    response = stage.send("PATCH", f"{path}/status", patch, media_type=MERGE)
    assert response.code == 200, response.body
    after = stage.send("GET", path).body
    assert after.get("spec") == before.get("spec")
    assert after["status"] != before.get("status")
    assert {field for field in METADATA if after["metadata"].get(field) != before["metadata"].get(field)} == {
        *METADATA.keys() - set(kept)
    }


@pytest.mark.parametrize("kind", CASES)
def test_a_write_to_the_object_does_not_change_its_status(kind: str) -> None:
    stage = Stage()
    path = made(stage, kind)
    _, spec, status, _ = KINDS[kind]
    before = stage.send("GET", path).body
    patch = {"metadata": {"labels": {"k": "v"}}, "spec": spec, "status": status}
    response = stage.send("PATCH", path, patch, media_type=MERGE)
    assert response.code == 200, response.body
    after = stage.send("GET", path).body
    assert after.get("status") == before.get("status")
    assert after["metadata"]["labels"]["k"] == "v"


@pytest.mark.parametrize("kind", CASES)
def test_the_manager_of_a_status_write_owns_no_reset_fields(kind: str) -> None:
    stage = Stage()
    path = made(stage, kind)
    _, _, status, kept = KINDS[kind]
    group_version = kind.rpartition("/")[0]
    before = stage.send("GET", path).body
    body = {
        "apiVersion": group_version,
        "kind": before["kind"],
        "metadata": {"name": before["metadata"]["name"], **METADATA},
        "status": status,
    }
    response = stage.send(
        "PATCH", f"{path}/status", body, media_type=APPLY, query={"fieldManager": "m", "force": "true"}
    )
    assert response.code == 200, response.body
    (entry,) = [each for each in response.body["metadata"]["managedFields"] if each["manager"] == "m"]
    assert entry["subresource"] == "status"
    owned = {field.removeprefix("f:") for field in entry["fieldsV1"].get("f:metadata", {})}
    assert owned == METADATA.keys() - set(kept)
    assert "f:spec" not in entry["fieldsV1"]
