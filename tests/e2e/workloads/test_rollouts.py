from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.kubectl import Kubectl, squeezed
from tests.e2e.serving import until

APP = "registry.example/app"


def labelled(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """Return a workload of apps/v1 with one container."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": f"{APP}:1"}]}}
    wanted = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {"kind": kind, "apiVersion": "apps/v1", "metadata": {"name": name}, "spec": wanted}


def images(kubectl: Kubectl) -> list[str]:
    pods = kubectl.get("pods")["items"]
    return sorted(
        each["spec"]["containers"][0]["image"].rpartition(":")[2]
        for each in pods
        if "deletionTimestamp" not in each["metadata"]
    )


@pytest.fixture
def web(kubectl: Kubectl) -> Kubectl:
    kubectl(f"create deployment web --image={APP}:1 --replicas=3")
    assert "successfully rolled out" in kubectl("rollout status deployment web --timeout=20s")
    return kubectl


def test_an_image_is_rolled_out_and_rolled_back(web: Kubectl) -> None:
    web(f"set image deployment/web app={APP}:2")
    told = web("rollout status deployment web --timeout=20s")
    assert told.endswith('deployment "web" successfully rolled out\n')
    assert images(web) == ["2", "2", "2"]
    assert squeezed(web("rollout history deployment web")).splitlines()[2:] == ["1 <none>", "2 <none>"]
    assert f"{APP}:1" in web("rollout history deployment web --revision=1")
    assert web("rollout undo deployment web") == "deployment.apps/web rolled back\n"
    web("rollout status deployment web --timeout=20s")
    assert images(web) == ["1", "1", "1"]
    assert squeezed(web("rollout history deployment web")).splitlines()[2:] == ["2 <none>", "3 <none>"]


def test_a_paused_deployment_rolls_out_all_changes_after_resume(web: Kubectl) -> None:
    web("rollout pause deployment web")
    web(f"set image deployment/web app={APP}:2")
    web("set env deployment/web COLOUR=red")
    assert web("rollout status deployment web --watch=false") == (
        'Waiting for deployment "web" rollout to finish: 0 out of 3 new replicas have been updated...\n'
    )
    assert images(web) == ["1", "1", "1"]
    web("rollout resume deployment web")
    web("rollout status deployment web --timeout=20s")
    assert images(web) == ["2", "2", "2"]
    assert len(web.get("replicasets")["items"]) == 2


def test_a_restart_recreates_all_pods(web: Kubectl) -> None:
    before = {each["metadata"]["uid"] for each in web.get("pods")["items"]}
    web("rollout restart deployment web")
    web("rollout status deployment web --timeout=20s")
    staying = [each for each in web.get("pods")["items"] if "deletionTimestamp" not in each["metadata"]]
    assert before.isdisjoint(each["metadata"]["uid"] for each in staying)
    assert "kubectl.kubernetes.io/restartedAt" in staying[0]["metadata"]["annotations"]


def test_a_broken_image_stops_a_rollout_and_is_undone(web: Kubectl) -> None:
    web(f"set image deployment/web app={APP}:broken")
    until(lambda: images(web) == ["1", "1", "1", "broken"])
    assert "1 out of 3 new replicas have been updated" in web("rollout status deployment web --watch=false")
    web("rollout undo deployment web")
    web("rollout status deployment web --timeout=20s")
    until(lambda: images(web) == ["1", "1", "1"])


def test_scale_respects_the_current_replicas_precondition(web: Kubectl) -> None:
    assert web("scale deployment web --replicas=1 --current-replicas=3") == "deployment.apps/web scaled\n"
    until(lambda: images(web) == ["1"])
    assert "Expected replicas to be 3, was 1" in web.fails("scale deployment web --replicas=2 --current-replicas=3")


def test_a_deployment_is_autoscaled_within_its_bounds(web: Kubectl) -> None:
    web("autoscale deployment web --min=4 --max=6 --cpu-percent=80")
    shown = squeezed(web("get hpa web")).splitlines()[1].split()
    assert shown[0:2] == ["web", "Deployment/web"]
    assert web.get("hpa web")["spec"]["minReplicas"] == 4


def test_a_replica_set_is_deleted_or_orphaned_with_its_deployment(web: Kubectl) -> None:
    web("delete deployment web --cascade=orphan")
    (left,) = web.get("replicasets")["items"]
    until(lambda: "ownerReferences" not in web.get("replicasets")["items"][0]["metadata"])
    assert len(images(web)) == 3
    web(f"delete replicaset {left['metadata']['name']} --cascade=foreground --timeout=20s")
    assert images(web) == []


def test_a_stateful_set_is_rolled_out_in_order_and_rolled_back(kubectl: Kubectl) -> None:
    kubectl("create -f -", labelled("StatefulSet", "db", replicas=2, serviceName="db"))
    kubectl("rollout status statefulset db --timeout=20s")
    kubectl(f"set image statefulset/db app={APP}:2")
    told = kubectl("rollout status statefulset db --timeout=20s")
    assert told.endswith("roll out complete: 2 new pods have been updated...\n")
    assert images(kubectl) == ["2", "2"]
    kubectl("rollout undo statefulset db")
    kubectl("rollout status statefulset db --timeout=20s")
    assert images(kubectl) == ["1", "1"]
    assert squeezed(kubectl("rollout history statefulset db")).splitlines()[2:] == ["2 <none>", "3 <none>"]


def test_a_daemon_set_is_rolled_out_node_by_node_and_rolled_back(kubectl: Kubectl) -> None:
    kubectl("create -f -", labelled("DaemonSet", "agent"))
    kubectl("rollout status daemonset agent --timeout=20s")
    assert {each["spec"]["nodeName"] for each in kubectl.get("pods")["items"]} == {"node-a", "node-b"}
    kubectl(f"set image daemonset/agent app={APP}:2")
    assert "successfully rolled out" in kubectl("rollout status daemonset agent --timeout=20s")
    assert images(kubectl) == ["2", "2"]
    kubectl("rollout undo daemonset agent --to-revision=1")
    kubectl("rollout status daemonset agent --timeout=20s")
    assert images(kubectl) == ["1", "1"]
