"""Tests of kubectl describe, which sends several requests for many kinds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.kubectl import Kubectl, squeezed
from tests.e2e.serving import Server, until

ROLE = "roles.rbac.authorization.k8s.io"


@pytest.mark.parametrize(
    ("create", "what", "expected"),
    [
        ("configmap one --from-literal=key=value", "configmap one", ["Data", "key:", "value", "Events: <none>"]),
        (
            "secret generic one --from-literal=password=hush",
            "secret one",
            ["Type: Opaque", "password: 4 bytes"],
        ),
        (
            "service clusterip one --tcp=80:8080",
            "service one",
            [
                "Selector: app=one",
                "Type: ClusterIP",
                "IP: 10.96.",
                "Port: 80-8080 80/TCP",
                "TargetPort: 8080/TCP",
                "Session Affinity: None",
            ],
        ),
        ("service externalname one --external-name=example.com", "service one", ["External Name: example.com"]),
        (
            "deployment one --image=nginx --replicas=2",
            "deployment one",
            [
                "Selector: app=one",
                "Replicas: 2 desired | 0 updated | 0 total | 0 available | 0 unavailable",
                "StrategyType: RollingUpdate",
                "RollingUpdateStrategy: 25% max unavailable, 25% max surge",
                "Image: nginx",
            ],
        ),
        (
            "job one --image=busybox -- true",
            "job one",
            ["Parallelism: 1", "Completions: 1", "Image: busybox", "controller-uid="],
        ),
        ("serviceaccount one", "serviceaccount one", ["Image pull secrets: <none>", "Tokens: <none>"]),
        (
            "role one --verb=get,list --resource=pods",
            f"{ROLE} one",
            ["Resources Non-Resource URLs Resource Names Verbs", "pods [] [] [get list]"],
        ),
        (
            "rolebinding one --role=reader --user=bob",
            "rolebinding one",
            ["Kind: Role", "Name: reader", "User bob"],
        ),
        ("quota one --hard=pods=2", "quota one", ["Resource Used Hard"]),
        ("ingress one --rule=example.com/x=web:80", "ingress one", ["example.com", "/x web:80 ("]),
    ],
)
def test_describing(kubectl: Kubectl, create: str, what: str, expected: list[str]) -> None:
    kubectl(f"create {create}")
    told = squeezed(kubectl(f"describe {what}"))
    assert told.startswith("Name: one\n")
    assert [words for words in expected if words not in told] == [], told


def test_describing_what_newer_clients_create(kubectl: Kubectl) -> None:
    kubectl.since(21)
    kubectl("create cronjob one --image=busybox --schedule='* * * * *'")
    told = squeezed(kubectl("describe cronjob one"))
    assert "Schedule: * * * * *\nConcurrency Policy: Allow\nSuspend: False\n" in told
    kubectl("create poddisruptionbudget one --selector=app=web --max-unavailable=1")
    assert "Max unavailable: 1" in squeezed(kubectl("describe pdb one"))


def test_describing_a_pod_and_its_events(kubectl: Kubectl, server: Server) -> None:
    kubectl("run one --image=nginx --port=80 --env=A=B")
    uid = kubectl.get("pod one")["metadata"]["uid"]
    about = {"kind": "Pod", "apiVersion": "v1", "name": "one", "namespace": kubectl.namespace, "uid": uid}
    event = {"involvedObject": about, "reason": "Tested", "message": "it was tested", "type": "Normal", "count": 2}
    kubectl("create -f -", {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "one.1"}, **event})
    told = squeezed(kubectl("describe pod one"))
    for words in ("Status: Pending", "Port: 80/TCP", "A: B", "QoS Class: BestEffort", "Normal Tested", "it was tested"):
        assert words in told
    assert "Node-Selectors: <none>" in told
    assert "node.kubernetes.io/not-ready:NoExecute op=Exists for 300s" in told


def test_describing_a_service_with_endpoints(kubectl: Kubectl, server: Server) -> None:
    kubectl("create service clusterip one --tcp=80")
    server.create("/api/v1/nodes", {"metadata": {"name": kubectl.namespace}})
    there = json.dumps({"spec": {"nodeName": kubectl.namespace}})
    kubectl(f"run one --image=nginx --labels=app=one --overrides='{there}'")
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/one/status"
    status: dict[str, Any] = {"podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "phase": "Running"}
    status["conditions"] = [{"type": "Ready", "status": "True"}]
    assert server.request("PATCH", path, {"status": status})[0] == 200
    until(lambda: "\nEndpoints: 10.1.2.3:80\n" in squeezed(kubectl("describe service one")))
    until(lambda: kubectl("get endpointslices --no-headers").split()[1:4] == ["IPv4", "80", "10.1.2.3"])
    server.request("DELETE", f"/api/v1/nodes/{kubectl.namespace}")
    told = squeezed(kubectl("describe endpoints one"))
    assert "Addresses: 10.1.2.3\nNotReadyAddresses: <none>\nPorts:\nName Port Protocol\n" in told
    assert "\n80 80 TCP\n" in told


def test_describing_a_namespace_and_its_limits(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create quota one --hard=pods=2")
    limits = {"type": "Container", "default": {"cpu": "1"}, "max": {"memory": "1Gi"}}
    spec = {"limits": [limits]}
    kubectl("create -f -", {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "one"}, "spec": spec})
    told = squeezed(kubectl(f"describe namespace {namespace}"))
    assert told.startswith(f"Name: {namespace}\nLabels: kubernetes.io/metadata.name={namespace}\n")
    assert "Status: Active" in told
    assert "Container cpu - - 1 1 -" in told
    assert "Container memory - 1Gi" in told


def test_describing_a_node(anywhere: Kubectl) -> None:
    needed = "architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion kubeletVersion machineID "
    needed += "operatingSystem osImage systemUUID"
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "kubectl-described"},
        "spec": {"podCIDR": "10.1.0.0/24"},
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
            "nodeInfo": dict.fromkeys(needed.split(), "x") | {"kubeletVersion": "v1.36.2"},
        },
    }
    anywhere("create -f -", node)
    told = squeezed(anywhere("describe node kubectl-described"))
    anywhere("delete node kubectl-described")
    for words in ("InternalIP: 192.0.2.1", "cpu: 4", "memory: 8Gi", "Kubelet Version: v1.36.2", "PodCIDR: 10.1.0.0/24"):
        assert words in told
    assert "Non-terminated Pods: (0 in total)" in told


def test_describing_several_objects(kubectl: Kubectl) -> None:
    for name in ("one", "two"):
        kubectl(f"create configmap {name}")
    kubectl("label configmap two picked=1")
    assert kubectl("describe configmaps").count("Name: ") == 3
    assert squeezed(kubectl("describe configmaps -l picked")).startswith("Name: two")
    assert squeezed(kubectl("describe configmap tw")).startswith("Name: two")  # selected by the prefix of their names


def test_describing_an_autoscaler(kubectl: Kubectl) -> None:
    kubectl("create deployment one --image=nginx")
    scaled = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"}
    spec = {"maxReplicas": 5, "scaleTargetRef": scaled, "targetCPUUtilizationPercentage": 50}
    kind = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "one"}}
    kubectl("create -f -", {**kind, "spec": spec})
    told = squeezed(kubectl("describe hpa one"))
    assert "Reference: Deployment/one" in told
    assert "Max replicas: 5" in told


def test_describe_of_a_missing_object_is_refused(kubectl: Kubectl) -> None:
    assert kubectl.fails("describe configmap none") == 'Error from server (NotFound): configmaps "none" not found\n'
    assert kubectl.fails("describe nothing x") == 'error: the server doesn\'t have a resource type "nothing"\n'
    assert json.loads(kubectl("get secrets -o json"))["items"] == []
