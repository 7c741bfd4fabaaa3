"""Property tests of the graph of objects that belong to nodes: the graph always equals a newly built graph and a naive
implementation.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.authorization.node.node_graph import ATTACHMENTS, PODS, SLICES, VOLUMES, NodeGraph
from ctrlmgr.authorization.node.references import (
    ACCOUNT,
    CLAIM,
    CONFIG_MAP,
    RESOURCE_CLAIM,
    SECRET,
    Reference,
    pod_references,
    volume_secrets,
)

NODES = ("n1", "n2", "n3")
NAMESPACES = ("a", "b")
NAMES = ("x", "y", "z")
KINDS = (SECRET, CONFIG_MAP, CLAIM, ACCOUNT, RESOURCE_CLAIM)
World = dict[tuple[Resource, Key], dict[str, Any]]


def some_pod(random: Random) -> dict[str, Any]:
    def name() -> str:
        return random.choice(NAMES)

    volumes: list[dict[str, Any]] = [
        {"name": "s", "secret": {"secretName": name()}},
        {"name": "c", "configMap": {"name": name()}},
        {"name": "p", "persistentVolumeClaim": {"claimName": name()}},
        {"name": "x", "ephemeral": {}},
        {"name": "t", "projected": {"sources": [{"secret": {"name": name()}}, {"configMap": {"name": name()}}]}},
        {"name": "v", "csi": {"nodePublishSecretRef": {"name": name()}}},
    ]
    spec: dict[str, Any] = {
        "volumes": random.sample(volumes, random.randrange(4)),
        "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": name()}}}] if random.random() < 0.3 else []}],
        "resourceClaims": [{"name": "r", "resourceClaimName": name()}] if random.random() < 0.3 else [],
    }
    if random.random() < 0.8:
        spec["nodeName"] = random.choice(NODES)
    if random.random() < 0.7:
        spec["serviceAccountName"] = name()
    annotations = {"kubernetes.io/config.mirror": "m"} if random.random() < 0.1 else {}
    return {"metadata": {"annotations": annotations}, "spec": spec}


def some_volume(random: Random) -> dict[str, Any]:
    spec: dict[str, Any] = {"csi": {"nodeStageSecretRef": {"namespace": random.choice(NAMESPACES), "name": "x"}}}
    if random.random() < 0.5:
        spec = {"azureFile": {"secretName": random.choice(NAMES)}}
    if random.random() < 0.8:
        spec["claimRef"] = {"namespace": random.choice(NAMESPACES), "name": random.choice(NAMES)}
    return {"metadata": {}, "spec": spec}


def some_change(random: Random) -> tuple[Resource, Key, dict[str, Any]]:
    resource = random.choice((PODS, PODS, PODS, VOLUMES, ATTACHMENTS, SLICES))
    key = Key(random.choice(NAMESPACES) if resource == PODS else "", random.choice(NAMES))
    if resource in (PODS, VOLUMES):
        fields = some_pod(random) if resource == PODS else some_volume(random)
    else:
        fields = {"metadata": {}, "spec": {"nodeName": random.choice(NODES)}}
    kinds = {
        PODS: ("v1", "Pod"),
        VOLUMES: ("v1", "PersistentVolume"),
        ATTACHMENTS: ("storage.k8s.io/v1", "VolumeAttachment"),
    }
    api_version, kind = kinds.get(resource, ("resource.k8s.io/v1", "ResourceSlice"))
    metadata = {**fields["metadata"], "name": key.name, **({"namespace": key.namespace} if key.namespace else {})}
    return resource, key, {**fields, "apiVersion": api_version, "kind": kind, "metadata": metadata}


def changed(random: Random, world: World, graph: NodeGraph) -> None:
    """Create, change or remove an object; sometimes pass all objects of a resource to the graph again."""
    resource, key, fields = some_change(random)
    if random.random() < 0.3:
        world.pop((resource, key), None)
        graph.apply(resource, key, None)
    else:
        world[resource, key] = fields
        graph.apply(resource, key, Object.from_dict(fields))
    if random.random() < 0.05:
        graph.reset(resource, list(objects(world, resource)))


def objects(world: World, resource: Resource) -> Iterator[Object]:
    for (kind, _), fields in world.items():
        if kind == resource:
            yield Object.from_dict(fields)


def fresh(world: World) -> NodeGraph:
    graph = NodeGraph()
    for resource in graph.resources:
        graph.reset(resource, list(objects(world, resource)))
    return graph


def answers(graph: NodeGraph) -> list[bool]:
    """Return the graph's answers to all possible queries."""
    references = [Reference(kind, space, name) for kind in KINDS for space in NAMESPACES for name in all_names()]
    keys = [(PODS, Key(space, name)) for space in NAMESPACES for name in NAMES]
    keys += [(kind, Key("", name)) for kind in (ATTACHMENTS, SLICES) for name in NAMES]
    return [
        answer
        for node in NODES
        for answer in (
            *(graph.leads_to(node, reference) for reference in references),
            *(graph.is_on(node, resource, key) for resource, key in keys),
            *(graph.uses_volume(node, name) for name in NAMES),
        )
    ]


def all_names() -> list[str]:
    return [*NAMES, *(f"{name}-x" for name in NAMES)]


def leads_to(world: World, node: str, wanted: Reference) -> bool:
    """Return the answers that the graph must give, computed from all objects."""
    of_pods = {
        reference
        for pod in objects(world, PODS)
        if pod.to_dict()["spec"].get("nodeName") == node
        for reference in pod_references(pod.to_dict())
    }
    if wanted in of_pods:
        return True
    for volume in objects(world, VOLUMES):
        claim = volume.to_dict()["spec"].get("claimRef")
        is_used = claim and Reference(CLAIM, claim["namespace"], claim["name"]) in of_pods
        if is_used and wanted in volume_secrets(volume.to_dict()):
            return True
    return False


@pytest.mark.parametrize("seed", range(10))
def test_an_incrementally_updated_graph_equals_a_new_one(seed: int) -> None:
    random, world, graph = Random(seed), World(), NodeGraph()
    for _ in range(60):
        for _ in range(4):
            changed(random, world, graph)
        again = fresh(world)
        assert answers(graph) == answers(again)
        assert vars(graph) == vars(again)


@pytest.mark.parametrize("seed", range(4))
def test_decisions_equal_a_full_scan(seed: int) -> None:
    random, world, graph, led = Random(seed), World(), NodeGraph(), 0
    for _ in range(15):
        for _ in range(5):
            changed(random, world, graph)
        for node in NODES:
            for kind in KINDS:
                for name in all_names():
                    reference = Reference(kind, random.choice(NAMESPACES), name)
                    assert graph.leads_to(node, reference) == leads_to(world, node, reference), (node, reference)
                    led += graph.leads_to(node, reference)
    assert led > 20


def test_deleted_objects_leave_no_edges() -> None:
    random, world, graph = Random(1), World(), NodeGraph()
    for _ in range(200):
        changed(random, world, graph)
    for resource, key in world:
        graph.apply(resource, key, None)
    assert vars(graph) == vars(NodeGraph())


def test_the_newest_event_of_a_pod_is_kept_if_its_node_sends_no_request() -> None:
    key, spec = Key("a", "p"), {"nodeName": "n", "serviceAccountName": "s"}
    pod = {"apiVersion": "v1", "kind": "Pod"}
    first, second = (
        Object.from_dict({**pod, "metadata": {"namespace": "a", "name": "p"}, "spec": spec, "status": {"phase": phase}})
        for phase in ("Pending", "Running")
    )
    graph, fresh_one = NodeGraph(), NodeGraph()
    for each in (first, second):
        graph.apply(PODS, key, each)
    fresh_one.apply(PODS, key, second)
    assert vars(graph) == vars(fresh_one)
