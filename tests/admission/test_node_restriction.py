"""Tests of the writes that kubelets may make: labels, taints, mirror pods, and tokens of the pods on their nodes."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.admission.node_restriction import decide

OWNER = {"apiVersion": "v1", "kind": "Node", "name": "one", "uid": "u", "controller": True}


def mirror(*owners: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": list(owners)}
    return {"metadata": metadata, "spec": {"nodeName": "one", **spec}}


def projecting(**source: Any) -> dict[str, Any]:
    return mirror(OWNER, volumes=[{"name": "v", "projected": {"sources": [source]}}])


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        (mirror(OWNER), ""),
        ({"spec": {"nodeName": "one"}}, "can only create mirror pods"),
        (mirror(OWNER, nodeName="two"), "spec.nodeName set to itself"),
        (mirror(), "an owner reference set to itself"),
        (mirror(OWNER, OWNER), "a single owner reference"),
        (mirror({**OWNER, "uid": "v"}), "UID mismatch: expected v got u"),
        (mirror({**OWNER, "controller": False}), "a controller owner reference"),
        (mirror({**OWNER, "blockOwnerDeletion": True}), "must not set blockOwnerDeletion"),
        (mirror(OWNER, serviceAccountName="a"), "reference serviceaccounts"),
        (mirror(OWNER, volumes=[{"secret": {"secretName": "s"}}]), "reference secrets"),
        (mirror(OWNER, volumes=[{"configMap": {"name": "c"}}]), "reference configmaps"),
        (mirror(OWNER, volumes=[{"persistentVolumeClaim": {"claimName": "c"}}]), "reference persistentvolumeclaims"),
        (mirror(OWNER, resourceClaims=[{"name": "c", "resourceClaimName": "x"}]), "reference resourceclaims"),
        (mirror(OWNER, imagePullSecrets=[{"name": "s"}]), "reference secrets"),
        (mirror(OWNER, volumes=[{"secret": {"optional": True}}]), "reference secrets (via secret volumes)"),
        (mirror(OWNER, volumes=[{"configMap": {}}]), "reference configmaps (via configmap volumes)"),
        (mirror(OWNER, volumes=[{"csi": {"driver": "d"}}]), "reference csidrivers (via CSI volumes)"),
        (mirror(OWNER, volumes=[{"glusterfs": {"endpoints": "e"}}]), "reference endpoints (via glusterFS volumes)"),
        (mirror(OWNER, volumes=[{"ephemeral": {}}]), "reference persistentvolumeclaims (via ephemeral volumes)"),
        (mirror(OWNER, volumes=[{"azureFile": {"shareName": "s"}}]), "reference secrets (via azureFile volumes)"),
        (projecting(secret={"optional": True}), "reference secrets (via projected volumes)"),
        (projecting(configMap={}), "reference configmaps (via projected volumes)"),
        (projecting(serviceAccountToken={"path": "t"}), "reference serviceaccounts (via projected volumes)"),
        (projecting(clusterTrustBundle={"name": "b"}), "reference clustertrustbundles"),
        (projecting(podCertificate={"signerName": "s"}), "reference podcertificates"),
        (projecting(downwardAPI={}), ""),
        (projecting(novel={}), 'unknown source for projected volume "v"'),
        (mirror(OWNER, volumes=[{"name": "v", "novel": {}}]), 'unknown volume type for volume  "v"'),
        (mirror(OWNER, volumes=[{"hostPath": {"path": "/"}}, {"emptyDir": {}}, {"nfs": {"server": "s"}}]), ""),
    ],
)
def test_nodes_create_only_mirror_pods(pod: dict[str, Any], problem: str) -> None:
    told = decide.mirror_pod_problem("one", pod, "u")
    assert problem in told
    assert bool(problem) == bool(told)


@pytest.mark.parametrize(
    ("label", "own"),
    [
        ("plain", True),
        ("example.com/x", True),
        ("kubernetes.io/hostname", True),
        ("node.kubernetes.io/anything", True),
        ("sub.kubelet.kubernetes.io/x", True),
        ("foo.kubernetes.io/x", False),
        ("x.k8s.io/y", False),
        ("node-restriction.kubernetes.io/a", False),
        ("a.node-restriction.kubernetes.io/a", False),
        ("node-role.kubernetes.io/control-plane", False),
    ],
)
def test_nodes_cannot_set_labels_that_steer_scheduling(label: str, own: bool) -> None:
    before: dict[str, Any] = {"metadata": {"name": "one"}}
    after = {"metadata": {"name": "one", "labels": {label: "x"}}}
    assert bool(decide.node_problem("one", after, before)) is not own
    assert bool(decide.node_problem("one", before, after)) is not own
    assert bool(decide.node_problem("one", after, None)) is not own


def test_a_node_requests_tokens_only_for_audiences_of_its_pods_volumes() -> None:
    token = {"projected": {"sources": [{"serviceAccountToken": {"audience": "vault"}}]}}
    assert decide.mounts_token_for({"spec": {"volumes": [token]}}, "vault")
    assert not decide.mounts_token_for({"spec": {"volumes": [token]}}, "other")
    assert not decide.mounts_token_for({"spec": {}}, "")
