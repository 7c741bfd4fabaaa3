"""Tests of kubectl get --watch and kubectl wait."""

from __future__ import annotations

from typing import Any

from tests.e2e.kubectl import Kubectl, lines
from tests.e2e.serving import DEADLINE, Server


def events(told: list[str]) -> list[list[str]]:
    return [line.split()[:2] for line in told]


def test_a_watch_lists_objects_and_then_every_change(kubectl: Kubectl) -> None:
    kubectl("create configmap first")
    with kubectl.watching("get configmaps -w --output-watch-events") as process:
        kubectl("label configmap first a=b")
        kubectl("create configmap second")
        kubectl("delete configmap first")
        assert events(lines(process, 6)) == [
            ["EVENT", "NAME"],
            ["ADDED", "first"],
            ["ADDED", "kube-root-ca.crt"],
            ["MODIFIED", "first"],
            ["ADDED", "second"],
            ["DELETED", "first"],
        ]


def test_watch_only_omits_existing_objects(kubectl: Kubectl) -> None:
    kubectl("create configmap first")
    with kubectl.watching("get configmaps --watch-only -o name") as process:
        kubectl("create configmap second")
        assert lines(process, 1) == ["configmap/second"]


def test_selectors_add_and_delete_objects_of_a_watch(kubectl: Kubectl) -> None:
    kubectl("create configmap one")
    with kubectl.watching("get configmaps -w --output-watch-events -l on=yes --no-headers") as process:
        kubectl("label configmap one on=yes")
        kubectl("annotate configmap one a=b")
        kubectl("label configmap one on=no --overwrite")
        assert events(lines(process, 3)) == [["ADDED", "one"], ["MODIFIED", "one"], ["DELETED", "one"]]


def test_one_object_can_be_watched_as_yaml(kubectl: Kubectl) -> None:
    kubectl("create configmap one")
    with kubectl.watching("get configmap one -w -o jsonpath='{.metadata.labels}{\"\\n\"}'") as process:
        kubectl("label configmap one a=b")
        kubectl("create configmap other")
        kubectl("label configmap one a-")
        assert lines(process, 3) == ["", '{"a":"b"}', ""]


def test_the_whole_cluster_can_be_watched(kubectl: Kubectl, namespace: str) -> None:
    with kubectl.watching("get secrets -A --watch-only --no-headers") as process:
        kubectl("create secret generic s --from-literal=a=b")
        assert lines(process, 1)[0].split()[:4] == [namespace, "s", "Opaque", "1"]


def pod(kubectl: Kubectl, server: Server, **status: Any) -> None:
    """Write a pod's status, as a kubelet does."""
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/app/status"
    code, answer = server.request("PATCH", path, {"status": status})
    assert code == 200, answer


def test_waiting_for_a_condition(kubectl: Kubectl, server: Server) -> None:
    kubectl("run app --image=nginx")
    assert "timed out waiting for the condition on pods/app" in kubectl.fails(
        "wait --for=condition=Ready pod/app --timeout=100ms"
    )
    with kubectl.watching("wait --for=condition=Ready pod/app --timeout=30s") as process:
        pod(kubectl, server, conditions=[{"type": "Ready", "status": "False"}])
        pod(kubectl, server, conditions=[{"type": "Ready", "status": "True"}])
        assert lines(process, 1) == ["pod/app condition met"]
        assert process.wait(DEADLINE) == 0


def test_waiting_for_a_value(kubectl: Kubectl, server: Server) -> None:
    kubectl.since(23)
    kubectl("run app --image=nginx")
    with kubectl.watching("wait --for=jsonpath='{.status.phase}'=Running pod/app --timeout=30s") as process:
        pod(kubectl, server, phase="Running")
        assert lines(process, 1) == ["pod/app condition met"]


def test_wait_returns_after_a_deletion(kubectl: Kubectl) -> None:
    kubectl("create configmap one")
    with kubectl.watching("wait --for=delete configmap/one --timeout=30s") as process:
        kubectl("delete configmap one")
        assert lines(process, 1) == ["configmap/one condition met"]
        assert process.wait(DEADLINE) == 0


def test_wait_returns_after_a_creation(kubectl: Kubectl) -> None:
    kubectl.since(31)
    with kubectl.started("wait --for=create configmap/one --timeout=30s") as process:  # kubectl polls here
        kubectl("create configmap one")
        assert lines(process, 1) == ["configmap/one condition met"]
        assert process.wait(DEADLINE) == 0


def test_wait_of_a_missing_object_is_refused(kubectl: Kubectl) -> None:
    assert kubectl.fails("wait --for=condition=Ready pod/nothing --timeout=1s") == (
        'Error from server (NotFound): pods "nothing" not found\n'
    )
