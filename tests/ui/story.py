"""Writes the events of the demo's cluster, in order."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.eventlog import Author, open_log
from ctrlmgr.testing import FakeClock
from tests.ui.demo import ALICE, APPS, ARGO, BOB, NODES, START, App, Cluster, RunningPod, controller, digest, kubelet

HOSTILE = "<script>document.title = 'taken over'</script>"
"""A string with HTML markup that a user wrote into objects."""

NODE_CONTROLLER = "node-lifecycle-controller"


def write(url: str) -> str:
    """Fill the new database at `url` and return the URL."""
    clock = FakeClock(START)
    log = open_log(url, clock=clock, random=Random(1), migrate=True)
    cluster = Cluster(log, clock)
    begin(cluster)
    morning(cluster)
    log.close()
    return url


def begin(cluster: Cluster) -> None:
    """Create all objects."""
    for name in ("kube-system", "shop", "payments"):
        cluster.put(ALICE, cluster.made("Namespace", "", name, status={"phase": "Active"}))
    cluster.lead("ctrlmgr-1_5f2c")
    for node in NODES:
        cluster.put(kubelet(node), _node(cluster, node, ready=True))
    secret = cluster.made("Secret", "payments", "ledger-db", type="Opaque", data={"password": "aHVudGVyMg=="})
    cluster.put(BOB, secret)
    notes = {"notes": HOSTILE, "NOTES.txt": "1. wake the on-call\n2. look at the page\n"}
    meta = {"labels": {"team": HOSTILE}, "annotations": {"note": HOSTILE}}
    cluster.put(Author(HOSTILE, "curl"), cluster.made("ConfigMap", "shop", "runbook", meta=meta, data=notes))
    for app in APPS:
        cluster.wait(40)
        _deploy(cluster, app)


def morning(cluster: Cluster) -> None:
    """Write the events of the morning: rollouts, a failing node, a new leader, and scaling by a user."""
    web, cart, checkout, search, gateway, ledger = APPS
    cluster.wait(1500)
    roll(cluster, web, "v1", "v2", ARGO)
    cluster.wait(2400)
    roll(cluster, gateway, "v1", "v2", ARGO)
    cluster.wait(1900)
    node_fails(cluster, "node-b")
    cluster.wait(30)
    cluster.lead("ctrlmgr-2_91ad")
    cluster.wait(420)
    node_recovers(cluster, "node-b")
    cluster.wait(1700)
    roll(cluster, cart, "v1", "v2", ARGO)
    cluster.wait(600)
    for version, author in (("v3-hotfix", BOB), ("v3-hotfix2", BOB), ("v4", ARGO)):
        roll(cluster, checkout, cluster.running[checkout][0].version, version, author)
        cluster.wait(260)
    cluster.wait(2100)
    cluster.lead("ctrlmgr-1_77e0")
    roll(cluster, search, "v1", "v2", ARGO)
    cluster.wait(900)
    roll(cluster, ledger, "v1", "v2", ALICE)
    cluster.wait(300)
    roll(cluster, web, "v2", "v3", ARGO)
    cluster.wait(90)


def _node(cluster: Cluster, name: str, *, ready: bool) -> Object:
    reason = "KubeletReady" if ready else "NodeStatusUnknown"
    condition = {"type": "Ready", "status": "True" if ready else "Unknown", "reason": reason}
    status = {"conditions": [condition], "nodeInfo": {"kubeletVersion": "v1.36.2"}}
    return cluster.made("Node", "", name, spec={"podCIDR": f"10.244.{NODES.index(name)}.0/24"}, status=status)


def _deployment(cluster: Cluster, app: App, version: str) -> Object:
    image = f"registry.example.com/{app.namespace}/{app.name}:{version}"
    template = {"metadata": {"labels": {"app": app.name}}, "spec": {"containers": [{"name": app.name, "image": image}]}}
    spec = {"replicas": app.replicas, "selector": {"matchLabels": {"app": app.name}}, "template": template}
    return cluster.made("Deployment", app.namespace, app.name, api_version="apps/v1", spec=spec, status=_counts(app))


def _counts(app: App) -> dict[str, int]:
    number = app.replicas
    return {"replicas": number, "readyReplicas": number, "updatedReplicas": number, "availableReplicas": number}


def _replica_set(cluster: Cluster, app: App, version: str, replicas: int) -> Object:
    name = f"{app.name}-{digest(version)}"
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": app.name}}}
    status = {"replicas": replicas, "readyReplicas": replicas}
    meta = {"labels": {"app": app.name, "version": version}}
    return cluster.made("ReplicaSet", app.namespace, name, api_version="apps/v1", meta=meta, spec=spec, status=status)


def _deploy(cluster: Cluster, app: App) -> None:
    number = APPS.index(app)
    ports = [{"name": "http", "port": 80, "targetPort": app.port, "protocol": "TCP"}]
    spec = {"selector": {"app": app.name}, "clusterIP": f"10.96.{number}.{17 + number}", "type": "ClusterIP"}
    service = cluster.made("Service", app.namespace, app.name, spec={**spec, "ports": ports})
    triggers = cluster.put(ARGO, service)
    triggers += _scale_up(cluster, app, "v1", cluster.put(ARGO, _deployment(cluster, app, "v1")))
    _publish(cluster, app, triggers)


def _scale_up(cluster: Cluster, app: App, version: str, deployed: Sequence[int]) -> list[int]:
    """Create and start the pods of a new version; return the revisions that affect the Service of these pods."""
    key = f"{app.namespace}/{app.name}"
    replicas = cluster.reconciled("deployment-controller", key, deployed, _replica_set(cluster, app, version, 0))
    cluster.wait(1)
    pending = [RunningPod(cluster.new_pod_name(app, version), version, "", False) for _ in range(app.replicas)]
    created = cluster.reconciled(
        "replicaset-controller", f"{key}-{version}", replicas, *(cluster.pod(app, each) for each in pending)
    )
    _publish(cluster, app, created)
    changed: list[int] = []
    for index, each in enumerate(pending):
        cluster.wait(2 + cluster.random.random() * 5)
        pod = each._replace(node=NODES[(index + APPS.index(app)) % len(NODES)])
        for ready in (False, True):
            pod = pod._replace(ready=ready)
            changed += cluster.put(kubelet(pod.node), cluster.pod(app, pod))
            cluster.wait(0.5 + cluster.random.random())
        cluster.running.setdefault(app, []).append(pod)
        if index % 2:
            _publish(cluster, app, changed)
            changed = []
    return changed


def roll(cluster: Cluster, app: App, old: str, new: str, author: Author) -> None:
    """Change the image of a Deployment, as a user would."""
    before = list(cluster.running[app])
    changed = _scale_up(cluster, app, new, cluster.put(author, _deployment(cluster, app, new)))
    key = f"{app.namespace}/{app.name}"
    last = changed or [cluster.head]
    scaled = cluster.reconciled("deployment-controller", key, last, _replica_set(cluster, app, old, 0))
    gone = [cluster.pod(app, each) for each in before]
    deleted = cluster.reconciled("replicaset-controller", f"{key}-{old}", scaled, gone=gone)
    cluster.running[app] = [each for each in cluster.running[app] if each not in before]
    cluster.wait(1)
    _publish(cluster, app, [*changed, *deleted])


def node_fails(cluster: Cluster, node: str) -> None:
    """Write the events of a node that stops reporting, and of its pods, which become not ready."""
    _mark(cluster, node, cluster.put(controller(NODE_CONTROLLER), _node(cluster, node, ready=False)), ready=False)


def node_recovers(cluster: Cluster, node: str) -> None:
    """Write the events of the node when it reports again."""
    _mark(cluster, node, cluster.put(kubelet(node), _node(cluster, node, ready=True)), ready=True)


def _mark(cluster: Cluster, node: str, triggers: Sequence[int], *, ready: bool) -> None:
    for app in APPS:
        pods = [each._replace(ready=ready) if each.node == node else each for each in cluster.running[app]]
        cluster.running[app] = pods
        marked = [cluster.pod(app, each) for each in pods if each.node == node]
        if marked:
            written = cluster.reconciled(NODE_CONTROLLER, node, triggers, *marked)
            cluster.wait(0.4)
            _publish(cluster, app, written)


def _publish(cluster: Cluster, app: App, triggers: Sequence[int]) -> None:
    """Update the Endpoints and the EndpointSlice of a Service to the Service's pods."""
    pods = cluster.running.get(app, [])
    key = f"{app.namespace}/{app.name}"
    cluster.reconciled("endpoint-controller", key, triggers, _endpoints(cluster, app, pods))
    cluster.reconciled("endpoint-slice-controller", key, triggers, _slice(cluster, app, pods))


def _endpoints(cluster: Cluster, app: App, pods: Sequence[RunningPod]) -> Object:
    subset: dict[str, Any] = {}
    for field, wanted in (("addresses", True), ("notReadyAddresses", False)):
        found = [
            {"ip": pod.address, "nodeName": pod.node, "targetRef": {"kind": "Pod", "name": pod.name}}
            for pod in pods
            if pod.ready is wanted
        ]
        if found:
            subset[field] = found
    subsets = [{**subset, "ports": [{"name": "http", "port": app.port, "protocol": "TCP"}]}] if subset else []
    return cluster.made("Endpoints", app.namespace, app.name, subsets=subsets)


def _slice(cluster: Cluster, app: App, pods: Sequence[RunningPod]) -> Object:
    return cluster.made(
        "EndpointSlice",
        app.namespace,
        f"{app.name}-x7k2p",
        api_version="discovery.k8s.io/v1",
        meta={"labels": {"kubernetes.io/service-name": app.name}},
        addressType="IPv4",
        endpoints=[
            {"addresses": [pod.address], "conditions": {"ready": pod.ready}, "nodeName": pod.node} for pod in pods
        ],
        ports=[{"name": "http", "port": app.port, "protocol": "TCP"}],
    )
