"""End-to-end tests of a simulated cluster with kubectl: rollout, crash loop, drain, node loss, preemption."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl, find_kubectl, lines
from tests.e2e.serving import Server, until

FAST = (
    *("--nodes", "3", "--simulated-seed", "7"),
    *("--node-monitor-period", "1s", "--node-monitor-grace-period", "14s", "--node-eviction-rate", "100"),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    """A server with three simulated nodes that are ready."""
    folder = tmp_path_factory.mktemp("cluster")
    database = f"sqlite:///{folder / 'ctrlmgr.db'}"
    server = Server(folder, "--database", database, *FAST)
    with server.running():
        yield server, database


@pytest.fixture
def kubectl(cluster: tuple[Server, str], tmp_path: Path) -> Kubectl:
    server, _ = cluster
    found = Kubectl(find_kubectl(), server.kubeconfig, tmp_path, server.new_namespace())
    found("wait nodes --all --for condition=Ready --timeout 20s")
    return found


def nodes_of(kubectl: Kubectl, selector: str) -> list[str]:
    return [each["spec"].get("nodeName", "") for each in kubectl.get(f"pods -l {selector}")["items"]]


def test_a_deployment_rolls_out_and_its_pods_are_spread(kubectl: Kubectl) -> None:
    kubectl("create deployment web --image nginx --replicas 3")
    assert "successfully rolled out" in kubectl("rollout status deployment web --timeout 20s")
    assert sorted(nodes_of(kubectl, "app=web")) == ["node-1", "node-2", "node-3"]
    kubectl("set image deployment web nginx=nginx:2")
    assert "successfully rolled out" in kubectl("rollout status deployment web --timeout 20s")
    kubectl("set image deployment web nginx=nginx:nonexistent")
    until(lambda: "ImagePullBackOff" in kubectl("get pods"))
    assert "3/3" in kubectl("get deployment web")


def test_a_crash_loop_is_visible_and_its_logs_are_readable(kubectl: Kubectl) -> None:
    kubectl("run crash --image busybox -- sh -c 'echo going down; sleep 1; exit 3'")
    until(lambda: "CrashLoopBackOff" in kubectl("get pod crash"))
    status = kubectl.get("pod crash")["status"]["containerStatuses"][0]
    assert (status["restartCount"] > 0, status["lastState"]["terminated"]["exitCode"]) == (True, 3)
    assert kubectl("logs crash") == "going down\n"


DATABASE = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: db, image: postgres, volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def volumes_of(kubectl: Kubectl) -> list[str]:
    return [each["spec"]["volumeName"] for each in kubectl.get("pvc")["items"]]


def test_a_stateful_set_gets_volumes_that_are_attached_expanded_and_deleted(kubectl: Kubectl) -> None:
    kubectl("apply -f -", DATABASE)
    until(lambda: "2/2" in kubectl("get statefulset db"))
    volumes = volumes_of(kubectl)
    attached = kubectl.get("volumeattachments")["items"]
    held = {each["spec"]["source"]["persistentVolumeName"]: each["status"]["attached"] for each in attached}
    assert [held.get(each) for each in volumes] == [True, True]
    kubectl("""patch pvc data-db-0 -p '{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}'""")
    until(lambda: kubectl.get("pvc data-db-0")["status"]["capacity"]["storage"] == "2Gi")
    kubectl("delete statefulset db --cascade=foreground")
    kubectl("delete pvc --all")
    until(lambda: not any(kubectl.run(f"get pv {each}").out for each in volumes))


SPEAKS = """
apiVersion: v1
kind: Pod
metadata: {name: talk, labels: {app: talk}}
spec:
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: first, image: busybox, command: [sh, -c, echo before]}
  containers:
  - {name: one, image: busybox, command: [sh, -c, "echo one; sleep 2; echo two; sleep 2; exit 1"]}
  - {name: other, image: busybox, command: [sh, -c, "echo other; sleep 100"]}
"""


def test_logs_are_followed_until_the_container_ends(kubectl: Kubectl) -> None:
    kubectl("apply -f -", SPEAKS)
    until(lambda: kubectl.run("logs talk -c one").out == "one\n")
    assert kubectl("logs -f talk -c one") == "one\ntwo\n"  # it ends by itself, as the container does
    until(lambda: kubectl.get("pod talk")["status"]["containerStatuses"][0]["restartCount"] >= 1)
    assert kubectl("logs talk -c one -p") == "one\ntwo\n"
    assert kubectl("logs talk -c one -p --tail 1") == "two\n"
    assert kubectl("logs talk -c one -p --limit-bytes 5") == "one\nt"
    stamped = kubectl("logs talk -c other --timestamps --since 1h")
    assert re.fullmatch(r"[-0-9]+T[0-9:]+\.\d{9}Z other\n", stamped)
    everything = kubectl("logs talk --all-containers --prefix").splitlines()
    assert {"[pod/talk/first] before", "[pod/talk/one] one", "[pod/talk/other] other"} <= {*everything}
    assert "[pod/talk/other] other" in kubectl("logs -l app=talk --all-containers --prefix --tail -1")
    assert "container x is not valid for pod talk" in kubectl.fails("logs talk -c x")
    assert "previous terminated container" in kubectl.fails("logs talk -c other -p")
    bad = f"/api/v1/namespaces/{kubectl.namespace}/pods/talk/log?container=one&tailLines=-2"
    assert 'PodLogOptions "talk" is invalid: tailLines: Invalid value: -2' in kubectl.fails(f"get --raw '{bad}'")


def test_following_a_log_ends_with_its_pod(kubectl: Kubectl) -> None:
    kubectl("apply -f -", SPEAKS)
    until(lambda: kubectl.run("logs talk -c other").out == "other\n")
    with kubectl.started("logs -f talk -c other") as process:
        assert lines(process, 1) == ["other"]
        kubectl("delete pod talk")
        assert process.wait(20) == 0


def test_a_drain_moves_the_pods(kubectl: Kubectl) -> None:
    kubectl("create deployment web --image nginx --replicas 3")
    kubectl("rollout status deployment web --timeout 20s")
    kubectl("drain node-1 --ignore-daemonsets --delete-emptydir-data --force --timeout 20s")
    kubectl("rollout status deployment web --timeout 20s")
    assert "node-1" not in nodes_of(kubectl, "app=web")
    kubectl("uncordon node-1")


def test_a_pod_with_a_higher_priority_preempts_another(kubectl: Kubectl, cluster: tuple[Server, str]) -> None:
    name = kubectl.namespace
    kubectl(f"create priorityclass {name} --value 1000")
    requests = '"resources":{"requests":{"cpu":"5"}}'
    pin = '"nodeSelector":{"kubernetes.io/hostname":"node-2"}'
    one = f'{{"spec":{{{pin},"containers":[{{"name":"c","image":"nginx",{requests}}}]}}}}'
    kubectl(f"run victim --image nginx --overrides '{one}'")
    kubectl("wait pod victim --for condition=Ready --timeout 20s")
    two = one.replace(pin, f'{pin},"priorityClassName":"{name}"')
    kubectl(f"run winner --image nginx --overrides '{two}'")
    kubectl("wait pod winner --for condition=Ready --timeout 20s")
    until(lambda: "victim" not in kubectl("get pods"))
    assert "Preempted by pod" in kubectl("events")
    command = [sys.executable, "-m", "ctrlmgr", "why", "pod", "winner", "-n", name, "--database", cluster[1]]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "how the scheduler chose its node" in told
    assert "node-2  the only suitable node" in told


def test_pods_of_a_lost_node_start_on_other_nodes(kubectl: Kubectl) -> None:
    kubectl("create deployment web --image nginx --replicas 3")
    soon = [
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    ]
    spec = str({"spec": {"template": {"spec": {"tolerations": soon}}}}).replace("'", '"')
    kubectl(f"patch deployment web --patch '{spec}'")
    kubectl("rollout status deployment web --timeout 20s")
    kubectl("annotate node node-3 simulate.ctrlmgr.io/node=lost")
    kubectl("wait node node-3 --for condition=Ready=Unknown --timeout 25s")
    there = "get pods --selector app=web --field-selector spec.nodeName=node-3 -o json"
    # A lost node cannot confirm that its pods have ended, so evicted pods stay there with a deletion timestamp.
    until(lambda: all("deletionTimestamp" in pod["metadata"] for pod in json.loads(kubectl(there))["items"]))
    until(lambda: "3/3" in kubectl("get deployment web"))
    kubectl("annotate node node-3 simulate.ctrlmgr.io/node-")
    kubectl("wait node node-3 --for condition=Ready --timeout 20s")
    until(lambda: "node-3" not in nodes_of(kubectl, "app=web"))
