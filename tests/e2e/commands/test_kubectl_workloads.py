"""Tests of kubectl set, scale, rollout, taint, cordon and drain, without running pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.kubectl import Kubectl, lines
from tests.e2e.serving import DEADLINE, Server


@pytest.fixture
def deployed(kubectl: Kubectl) -> Kubectl:
    """kubectl in a namespace with a Deployment `app` whose container is `nginx`."""
    kubectl("create deployment app --image=nginx --replicas=2")
    return kubectl


def test_scaling(deployed: Kubectl) -> None:
    assert deployed("scale deployment app --replicas=3") == "deployment.apps/app scaled\n"
    found = deployed.get("deployment app")
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (3, 2)
    scale = "scale deployment app --replicas=4"
    assert "Expected replicas to be 2, was 3" in deployed.fails(f"{scale} --current-replicas=2")
    assert "Expected resource version" in deployed.fails(f"{scale} --resource-version=1")
    deployed(f"{scale} --current-replicas=3")
    assert deployed("get deployments --no-headers").split()[:2] == ["app", "0/4"]


def test_scaling_other_kinds(kubectl: Kubectl) -> None:
    pod = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": pod}
    for version, kind, more in (
        ("apps/v1", "ReplicaSet", {}),
        ("apps/v1", "StatefulSet", {"serviceName": "x"}),
        ("v1", "ReplicationController", {"selector": {"app": "x"}}),
    ):
        document = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec | more}
        kubectl("create -f -", document)
    assert kubectl("scale replicaset/x statefulset/x replicationcontroller/x --replicas=0").splitlines() == [
        "replicaset.apps/x scaled",
        "statefulset.apps/x scaled",
        "replicationcontroller/x scaled",
    ]
    assert [each["spec"]["replicas"] for each in kubectl.get("rs,sts,rc")["items"]] == [0, 0, 0]


def test_setting_parts_of_a_template(deployed: Kubectl) -> None:
    deployed("create serviceaccount robot")
    for command, told in {
        "set image deployment/app nginx=nginx:2": "image updated",
        "set env deployment/app A=B C=D": "env updated",
        "set env deployment/app C-": "env updated",
        "set resources deployment app --limits=cpu=200m,memory=1Gi --requests=cpu=0.1": "resource requirements updated",
        "set serviceaccount deployment app robot": "serviceaccount updated",
    }.items():
        assert deployed(command) == f"deployment.apps/app {told}\n"
    found = deployed.get("deployment app")
    assert found["metadata"]["generation"] == 6
    pod = found["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert (pod["serviceAccountName"], container["image"]) == ("robot", "nginx:2")
    assert container["env"] == [{"name": "A", "value": "B"}]
    assert container["resources"] == {"limits": {"cpu": "200m", "memory": "1Gi"}, "requests": {"cpu": "100m"}}
    assert deployed("set env deployment/app --list").splitlines()[1] == "A=B"


def test_setting_selectors_and_subjects(kubectl: Kubectl) -> None:
    kubectl("create service clusterip web --tcp=80")
    assert kubectl("set selector service web tier=front") == "service/web selector updated\n"
    assert kubectl.get("service web")["spec"]["selector"] == {"tier": "front"}
    kubectl("create rolebinding reads --role=reader --user=a")
    told = kubectl("set subject rolebinding reads --user=b")
    assert told == "rolebinding.rbac.authorization.k8s.io/reads subjects updated\n"
    assert [each["name"] for each in kubectl.get("rolebinding reads")["subjects"]] == ["a", "b"]


def test_rollouts_are_restarted_paused_and_undone(deployed: Kubectl) -> None:
    assert deployed("rollout restart deployment/app") == "deployment.apps/app restarted\n"
    template = deployed.get("deployment app")["spec"]["template"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    assert deployed("rollout pause deployment/app") == "deployment.apps/app paused\n"
    assert deployed.get("deployment app")["spec"]["paused"] is True
    assert "can't restart paused deployment" in deployed.fails("rollout restart deployment/app")
    assert deployed("rollout resume deployment/app") == "deployment.apps/app resumed\n"
    assert deployed("rollout history deployment/app").startswith("deployment.apps/app")
    assert "no rollout history found" in deployed.fails("rollout undo deployment/app")


def test_rollout_status_prints_the_progress(deployed: Kubectl, namespace: str, server: Server) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/app/status"
    with deployed.watching("rollout status deployment/app") as process:
        progress = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 1}
        for status in (progress, progress | {"updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}):
            assert server.request("PATCH", path, {"status": status})[0] == 200
        told = lines(process, 3)
        assert told[0] == "Waiting for deployment spec update to be observed..."
        assert told[1] == 'Waiting for deployment "app" rollout to finish: 1 out of 2 new replicas have been updated...'
        assert told[2] == 'deployment "app" successfully rolled out'
        assert process.wait(DEADLINE) == 0


def test_revisions_of_a_daemon_set(kubectl: Kubectl) -> None:
    pod = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": pod}
    kubectl("create -f -", {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "x"}, "spec": spec})
    uid = kubectl.get("daemonset x")["metadata"]["uid"]
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x", "uid": uid, "controller": True}
    for number, image in ((1, "nginx:1"), (2, "nginx")):
        template = {**pod, "spec": {"containers": [{"name": "c", "image": image}]}, "$patch": "replace"}
        metadata = {"name": f"x-{number}", "labels": {"app": "x"}, "ownerReferences": [owner]}
        revision = {"metadata": metadata, "data": {"spec": {"template": template}}, "revision": number}
        kubectl("create -f -", {"apiVersion": "apps/v1", "kind": "ControllerRevision", **revision})
    listed = [line.split() for line in kubectl("rollout history daemonset/x").splitlines()[2:] if line]
    assert listed == [["1", "<none>"], ["2", "<none>"]]
    assert "nginx:1" in kubectl("rollout history daemonset/x --revision=1")
    assert kubectl("rollout undo daemonset/x --to-revision=1") == "daemonset.apps/x rolled back\n"
    assert kubectl.get("daemonset x")["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1"


@pytest.fixture
def node(anywhere: Kubectl, namespace: str) -> Iterator[str]:
    """The name of a node that is ready."""
    fields: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{namespace}", "labels": {"node-role.kubernetes.io/worker": ""}},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
        },
    }
    anywhere("create -f -", fields)
    yield f"node-{namespace}"
    anywhere(f"delete node node-{namespace}")


def row(anywhere: Kubectl, node: str) -> list[str]:
    return anywhere(f"get node {node} --no-headers -o wide").split()


def test_cordoning(anywhere: Kubectl, node: str) -> None:
    assert anywhere(f"cordon {node}") == f"node/{node} cordoned\n"
    assert row(anywhere, node)[1:3] == ["Ready,SchedulingDisabled", "worker"]
    assert anywhere.get(f"node {node}")["spec"]["unschedulable"] is True
    assert anywhere(f"cordon {node}") == f"node/{node} already cordoned\n"
    assert anywhere(f"uncordon {node}") == f"node/{node} uncordoned\n"
    assert row(anywhere, node)[1] == "Ready"


def test_tainting(anywhere: Kubectl, node: str) -> None:
    assert anywhere(f"taint node {node} k=v:NoSchedule") == f"node/{node} tainted\n"
    assert "--overwrite is false" in anywhere.fails(f"taint node {node} k=w:NoSchedule")
    assert anywhere(f"taint node {node} k=w:NoSchedule --overwrite") == f"node/{node} modified\n"
    assert {"key": "k", "value": "w", "effect": "NoSchedule"} in anywhere.get(f"node {node}")["spec"]["taints"]
    assert anywhere(f"taint node {node} k-") == f"node/{node} untainted\n"
    assert "k" not in anywhere(f"get node {node} -o jsonpath='{{.spec.taints[*].key}}'").split()


def test_draining_evicts_pods(kubectl: Kubectl, node: str) -> None:
    containers = [{"name": "c", "image": "nginx"}]
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": containers}
    kubectl("create -f -", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec})
    assert "cannot delete" in kubectl.fails(f"drain {node}")  # no controller would create the pod again
    told = kubectl(f"drain {node} --force")
    assert f"evicting pod {kubectl.namespace}/one\npod/one evicted\n" in told
    assert kubectl("get pods -o name") == ""


def test_a_pod_without_a_node_cannot_be_reached(kubectl: Kubectl) -> None:
    kubectl("run one --image=nginx")
    assert kubectl("logs one") == ""  # the pod has no log
    assert "pod one does not have a host assigned" in kubectl.fails("exec one -- true")


def test_events_of_an_object(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create configmap app")
    uid = kubectl.get("configmap app")["metadata"]["uid"]
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "app.1", "namespace": namespace},
        "involvedObject": {"kind": "ConfigMap", "apiVersion": "v1", "name": "app", "namespace": namespace, "uid": uid},
        "type": "Warning",
        "reason": "Tested",
        "message": "it was tested",
        "count": 3,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:10:00Z",
        "source": {"component": "tests"},
    }
    kubectl("create -f -", event)
    expected = ["Warning", "Tested", "configmap/app", "it", "was", "tested"]
    assert kubectl("get events --no-headers").split()[1:] == expected
    assert kubectl(f"get events --field-selector involvedObject.uid={uid},type=Warning -o name") == "event/app.1\n"
    assert kubectl("get events --field-selector reason=Other -o name") == ""
    assert json.loads(kubectl("get events.v1.events.k8s.io app.1 -o json"))["regarding"]["uid"] == uid
    if kubectl.minor >= 23:
        assert "it was tested" in kubectl("alpha events" if kubectl.minor < 26 else "events --for configmap/app")
