"""Tests of kubectl delete: removed objects, terminating objects, and dependents of deleted objects."""

from __future__ import annotations

import pytest

from tests.e2e.kubectl import Kubectl, lines, patch
from tests.e2e.serving import DEADLINE, Server, until


def named(kubectl: Kubectl, what: str, name: str) -> str:
    """Return kubectl's message about a deletion; since 1.34, the message contains the namespace."""
    return f'{what} "{name}" deleted' + (f" from {kubectl.namespace} namespace" if kubectl.minor >= 34 else "")


def test_objects_are_deleted_by_name(kubectl: Kubectl) -> None:
    kubectl("create configmap one")
    assert kubectl("delete configmap one") == named(kubectl, "configmap", "one") + "\n"
    gone = 'Error from server (NotFound): configmaps "one" not found\n'
    assert kubectl.fails("delete configmap one") == gone
    assert kubectl("delete configmap one --ignore-not-found") == ""
    kubectl("create secret generic one")
    kubectl("create secret generic two")
    assert kubectl("delete secrets one two -o name") == "secret/one\nsecret/two\n"


def test_objects_are_deleted_by_selector(kubectl: Kubectl) -> None:
    for name in ("a", "b", "c"):
        kubectl(f"create configmap {name}")
    kubectl("label configmaps a b old=1")
    assert kubectl("delete configmaps -l old=1 --dry-run=server -o name") == "configmap/a\nconfigmap/b\n"
    assert kubectl("delete configmaps -l old=1 -o name") == "configmap/a\nconfigmap/b\n"
    assert kubectl("get configmaps -o name") == "configmap/c\nconfigmap/kube-root-ca.crt\n"


def test_deleting_all_of_several_kinds(kubectl: Kubectl) -> None:
    kubectl("create secret generic a")
    kubectl("create service clusterip b --tcp=80")
    kubectl("run c --image=nginx")
    told = kubectl("delete secrets,services,pods --all --now").splitlines()
    assert told == [named(kubectl, *each) for each in (("secret", "a"), ("service", "b"), ("pod", "c"))]
    assert kubectl("get secrets,services,pods -o name") == ""


def test_delete_accepts_files(kubectl: Kubectl) -> None:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
    kubectl("create -f -", document)
    assert kubectl("delete -f -", document) == named(kubectl, "configmap", "one") + "\n"
    assert kubectl.fails("delete -f -", document) == (
        'Error from server (NotFound): error when deleting "STDIN": configmaps "one" not found\n'
    )


def test_delete_raw_deletes_a_path(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create configmap one")
    assert '"status":"Success"' in kubectl(f"delete --raw /api/v1/namespaces/{namespace}/configmaps/one")


def test_finalizers_hold_an_object(kubectl: Kubectl) -> None:
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "finalizers": ["example.com/hold"]}}
    kubectl("create -f -", held)
    assert "timed out waiting for the condition" in kubectl.fails("delete configmap one --timeout=50ms")
    metadata = kubectl.get("configmap one")["metadata"]
    assert (metadata["deletionGracePeriodSeconds"], metadata["finalizers"]) == (0, ["example.com/hold"])
    assert "object is being deleted" in kubectl.fails("create -f -", held)
    with kubectl.watching("delete configmap one") as process:
        kubectl(patch("configmap one", {"metadata": {"finalizers": None}}, "--type=merge"))
        assert lines(process, 1) == [named(kubectl, "configmap", "one")]
        assert process.wait(DEADLINE) == 0
    assert "NotFound" in kubectl.fails("get configmap one")


def test_delete_without_wait_returns_at_once(kubectl: Kubectl) -> None:
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "finalizers": ["example.com/hold"]}}
    kubectl("create -f -", held)
    kubectl("delete configmap one --wait=false")
    assert kubectl.get("configmap one")["metadata"]["deletionTimestamp"]
    kubectl(patch("configmap one", [{"op": "remove", "path": "/metadata/finalizers"}], "--type=json"))
    assert kubectl("get configmap one --ignore-not-found -o name") == ""


def bound(kubectl: Kubectl, server: Server, name: str) -> None:
    """Create a pod and bind it to a node, so that a deletion of the pod waits for the node's kubelet."""
    kubectl(f"run {name} --image=nginx")
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{name}/binding"
    code, answer = server.request("POST", path, {"target": {"kind": "Node", "name": "elsewhere"}})
    assert code == 201, answer


def test_pods_get_a_grace_period(kubectl: Kubectl, server: Server) -> None:
    bound(kubectl, server, "one")
    kubectl("delete pod one --wait=false")
    metadata = kubectl.get("pod one")["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert kubectl("get pod one --no-headers").split()[2] == "Terminating"
    kubectl("delete pod one --wait=false --grace-period=5")
    assert kubectl.get("pod one")["metadata"]["deletionGracePeriodSeconds"] == 5
    kubectl("delete pod one --wait=false --now")
    assert kubectl.get("pod one")["metadata"]["deletionGracePeriodSeconds"] == 1
    assert 'pod "one" force deleted' in kubectl("delete pod one --grace-period=0 --force")
    assert kubectl("get pods -o name") == ""


def test_unscheduled_pods_are_deleted_at_once(kubectl: Kubectl) -> None:
    kubectl("run one --image=nginx")
    assert kubectl("delete pod one") == named(kubectl, "pod", "one") + "\n"


@pytest.fixture
def owner(kubectl: Kubectl, server: Server) -> Kubectl:
    """kubectl in a namespace with a Deployment `app` that owns a ReplicaSet `app-1`."""
    kubectl("create deployment app --image=nginx")
    deployment = kubectl.get("deployment app")
    metadata = {"name": "app-1", "ownerReferences": [{
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "app", "uid": deployment["metadata"]["uid"],
        "controller": True, "blockOwnerDeletion": True,
    }]}  # fmt: skip
    spec = {"replicas": 1, "selector": deployment["spec"]["selector"], "template": deployment["spec"]["template"]}
    path = f"/apis/apps/v1/namespaces/{kubectl.namespace}/replicasets"
    server.create(path, {"metadata": metadata, "spec": spec})
    return kubectl


def test_foreground_deletion_deletes_dependents_first(owner: Kubectl) -> None:
    owner("delete deployment app --cascade=foreground")
    assert owner("get deployments,replicasets -o name") == ""


def test_background_deletion_deletes_dependents_later(owner: Kubectl) -> None:
    assert owner("delete deployment app") == named(owner, "deployment.apps", "app") + "\n"
    until(lambda: owner("get replicasets -o name") == "")


def test_orphan_deletion_keeps_dependents(owner: Kubectl) -> None:
    owner("delete deployment app --cascade=orphan")
    assert owner("get deployments,replicasets -o name") == "replicaset.apps/app-1\n"
    assert "ownerReferences" not in owner.get("replicaset app-1")["metadata"]


def test_a_namespace_is_deleted_with_its_content(kubectl: Kubectl, namespace: str) -> None:
    for each in ("configmap one", "service clusterip web --tcp=80", "deployment app --image=nginx"):
        kubectl(f"create {each}")
    kubectl(patch(f"namespace {namespace}", {"metadata": {"finalizers": ["example.com/hold"]}}, "--type=merge"))
    with kubectl.watching(f"delete namespace {namespace}") as process:
        assert kubectl(f"get namespace {namespace} --no-headers").split()[1] == "Terminating"
        refused = kubectl.fails("create configmap late")
        assert (
            f'configmaps "late" is forbidden: unable to create new content in namespace {namespace} because it is '
            "being terminated"
        ) in refused
        until(lambda: kubectl("get configmaps,services,deployments -o name") == "")
        kubectl(patch(f"namespace {namespace}", {"metadata": {"finalizers": None}}, "--type=merge"))
        assert lines(process, 1) == [f'namespace "{namespace}" deleted']
        assert process.wait(DEADLINE) == 0
    assert kubectl.fails("create configmap later").endswith(f'namespaces "{namespace}" not found\n')


def test_protected_namespaces_are_kept(anywhere: Kubectl) -> None:
    assert anywhere.fails("delete namespace default").endswith(
        'Error from server (Forbidden): namespaces "default" is forbidden: this namespace may not be deleted\n'
    )
