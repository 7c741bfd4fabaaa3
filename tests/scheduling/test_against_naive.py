"""Property tests with hundreds of random clusters: chosen nodes, messages, scores and preemption victims equal those of
the naive scheduler.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.cluster_model import Cluster, NodeInfo, PodInfo
from ctrlmgr.scheduling.cycle import Decision, decide
from ctrlmgr.scheduling.declared_features import HOST_NETWORK_USERS, RESTARTS_ALL, UNSATISFIED
from ctrlmgr.scheduling.dynamic_resources import ELSEWHERE, NO_DEVICES, Allocated, Devices
from ctrlmgr.scheduling.filters import Filters, Refusal, Volumes
from ctrlmgr.scheduling.node_selection import NodeSelector
from ctrlmgr.scheduling.preemption import Budget, victims_on
from ctrlmgr.scheduling.scheduling_view import NodeView, PodView, Selector
from ctrlmgr.scheduling.volume_limits import EXCEEDED, Attached, VolumeLimits, volume_name
from ctrlmgr.scheduling.volume_restrictions import IN_USE, NO_DISK, NO_ZONE
from tests.scheduling import naive

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
CINDER = "cinder.csi.openstack.org"
CASES = range(600)


def make_node(random: Random, name: str) -> dict[str, Any]:
    labels = {HOST: name, "disk": random.choice(["ssd", "hdd"]), "cores": random.choice(["4", "8", "many"])}
    if random.random() < 0.85:
        labels[ZONE] = random.choice("ab")
    spec: dict[str, Any] = {}
    if random.random() < 0.1:
        spec["unschedulable"] = True
    if random.random() < 0.3:
        effect = random.choice(["NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule"])
        spec["taints"] = [{"key": random.choice("kl"), "value": random.choice("xy"), "effect": effect}]
    held = {
        "cpu": random.choice(["2", "4", "1500m"]),
        "memory": random.choice(["2Gi", "4Gi"]),
        "pods": random.choice("39"),
    }
    if random.random() < 0.3:
        held["example.com/gpu"] = "2"
    status: dict[str, Any] = {"allocatable": held}
    if random.random() < 0.5:
        status["declaredFeatures"] = random.sample([RESTARTS_ALL, HOST_NETWORK_USERS], random.choice([1, 2]))
    found: dict[str, Any] = {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}
    if random.random() < 0.7:
        found |= {"volumesAllowed": random.choice([1, 2]), "volumesAttached": random.choice([[], ["v"]])}
    return found


def make_container(random: Random) -> dict[str, Any]:
    requests = {}
    if random.random() < 0.8:
        requests["cpu"] = random.choice(["100m", "250m", "500m", "1", "1800m"])
    if random.random() < 0.6:
        requests["memory"] = random.choice(["64Mi", "500Mi", "1Gi", "3Gi"])
    if random.random() < 0.1:
        requests["example.com/gpu"] = random.choice("13")
    container: dict[str, Any] = {"name": "c", "image": "i", "resources": {"requests": requests}}
    if random.random() < 0.15:
        port = {"containerPort": 80, "hostPort": random.choice([80, 81])}
        container["ports"] = [port | ({"hostIP": "127.0.0.1"} if random.random() < 0.5 else {})]
    if random.random() < 0.05:
        container["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
    return container


def make_selector(random: Random) -> dict[str, Any]:
    if random.random() < 0.6:
        return {"matchLabels": {"app": random.choice("xyz")}}
    return {"matchExpressions": [{"key": "app", "operator": random.choice(["In", "NotIn"]), "values": ["x", "y"]}]}


def make_term(random: Random) -> dict[str, Any]:
    term: dict[str, Any] = {"topologyKey": random.choice([HOST, ZONE]), "labelSelector": make_selector(random)}
    if random.random() < 0.2:
        term["namespaces"] = ["n", "m"]
    return term


def make_affinity(random: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if random.random() < 0.3:
        one = {"key": random.choice(["disk", ZONE]), "operator": random.choice(["In", "NotIn"]), "values": ["ssd", "a"]}
        two = {"key": "cores", "operator": "Gt", "values": ["5"]}
        terms = [{"matchExpressions": [each]} for each in random.sample([one, two], random.choice([1, 2]))]
        found["nodeAffinity"] = random.choice(
            [
                {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}},
                {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": random.choice([1, 10, 50]), "preference": each} for each in terms
                    ]
                },
            ]
        )
    for kind in ("podAffinity", "podAntiAffinity"):
        if random.random() < 0.2:
            if random.random() < 0.5:
                found[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [make_term(random)]}
            else:
                weighted = {"weight": random.choice([1, 20, 100]), "podAffinityTerm": make_term(random)}
                found[kind] = {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}
    return found


def make_spread(random: Random) -> list[dict[str, Any]]:
    constraint = {
        "maxSkew": random.choice([1, 2]),
        "topologyKey": random.choice([HOST, ZONE]),
        "whenUnsatisfiable": random.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": make_selector(random),
    }
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and random.random() < 0.3:
        constraint["minDomains"] = 3
    return [constraint]


def make_volumes(random: Random) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if random.random() < 0.15:
        disk = {"pdName": random.choice("de"), "readOnly": random.random() < 0.5}
        found.append({"name": "disk", "gcePersistentDisk": disk})
    if random.random() < 0.25:
        name = random.choice([naive.ONE_POD, naive.IN_ZONE])
        found.append({"name": "claim", "persistentVolumeClaim": {"claimName": name}})
    if random.random() < 0.3:
        found.append({"name": "drive", "cinder": {"volumeID": random.choice("vwx")}})
    return found


def attached(pod: PodInfo) -> Attached:
    names = [volume_name(each) for each in pod.view.spec.volumes or () if each.cinder]
    return {each.unique: each.driver for each in names if each is not None}


def volumes_of(pod: dict[str, Any], nodes: list[dict[str, Any]]) -> Volumes:
    """The data about a pod's volumes that the scheduler reads."""
    names = naive.claims(pod)
    zones = ((ZONE, frozenset("a")),) if naive.IN_ZONE in names else ()
    known = {each["metadata"]["name"]: each for each in nodes}
    allowed = {name: each["volumesAllowed"] for name, each in known.items() if "volumesAllowed" in each}
    limits = VolumeLimits(
        attached(PodInfo(msgspec.convert(pod, PodView))),
        lambda node: {CINDER: allowed[node]} if node in allowed else {},
        attached,
        lambda node: {f"{CINDER}/{name}": CINDER for name in known[node].get("volumesAttached", [])},
    )
    return Volumes(zones=zones, once=frozenset([naive.ONE_POD]).intersection(names), limits=limits)


def devices_of(pod: dict[str, Any]) -> Devices:
    """The data about a pod's resource claim, whose devices only nodes in zone a can reach."""
    if not pod["spec"].get("resourceClaims"):
        return NO_DEVICES
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
    selector = msgspec.convert({"nodeSelectorTerms": [term]}, NodeSelector)
    return Devices((Allocated(Key("n", naive.IN_ZONE), selector),))


def decided(case: Case) -> Decision:
    return decide(case.info, case.cluster, volumes=volumes_of(case.pod, case.nodes), devices=devices_of(case.pod))


def make_pod(random: Random, name: str, node: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [make_container(random) for _ in range(random.choice([1, 1, 2]))],
        "priority": random.choice([0, 0, 5, 10]) if node else random.choice([0, 10]),
        "schedulerName": "default-scheduler",
        **({"nodeName": node} if node else {}),
    }
    if random.random() < 0.15:
        spec["initContainers"] = [make_container(random)]
    if random.random() < 0.1:
        spec["overhead"] = {"cpu": "250m"}
    if random.random() < 0.3:
        toleration = {"key": "k", "operator": random.choice(["Exists", "Equal"])}
        spec["tolerations"] = [toleration | ({"value": "x"} if toleration["operator"] == "Equal" else {})]
    if random.random() < 0.15:
        spec["nodeSelector"] = {"disk": "ssd"}
    if random.random() < 0.6:
        spec["affinity"] = make_affinity(random)
    if random.random() < 0.35:
        spec["topologySpreadConstraints"] = make_spread(random)
    spec["volumes"] = make_volumes(random)
    if random.random() < 0.1:
        spec["resourceClaims"] = [{"name": "device", "resourceClaimName": naive.IN_ZONE}]
    if random.random() < 0.1:
        spec |= {"hostNetwork": True, "hostUsers": random.random() < 0.3}
    metadata = {
        "name": name,
        "namespace": random.choice(["n", "n", "m"]),
        "uid": name,
        "labels": {"app": random.choice("xyz")},
    }
    start = f"2026-01-01T00:00:{random.randrange(60):02}Z"
    return {"metadata": metadata, "spec": spec, "status": {"startTime": start} if node else {}}


class Case:
    """A cluster and a pending pod, both as plain objects and in the form of the scheduler under test."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.nodes = [make_node(random, f"n{number}") for number in range(random.choice([1, 3, 5, 8]))]
        self.others = [
            make_pod(random, f"p{number}", random.choice(self.nodes)["metadata"]["name"])
            for number in range(random.choice([0, 4, 10, 16]))
        ]
        self.pod = make_pod(random, "new")
        self.budgets: list[dict[str, Any]] = [
            {
                "metadata": {"namespace": "n"},
                "spec": {"selector": make_selector(random)},
                "status": {"disruptionsAllowed": random.choice([0, 1])},
            }
            for _ in range(random.choice([0, 1, 2]))
        ]
        self.cluster = Cluster()
        for node in self.nodes:
            self.cluster.put(NodeInfo.of_view(msgspec.convert(node, NodeView)))
        for each in self.others:
            self.cluster.nodes[each["spec"]["nodeName"]].add(PodInfo(msgspec.convert(each, PodView)))
        self.info = PodInfo(msgspec.convert(self.pod, PodView))


@pytest.mark.parametrize("seed", CASES)
def test_nodes_messages_and_scores_equal_a_naive_scheduler(seed: int) -> None:
    case = Case(seed)
    found = decided(case)
    feasible = {
        node["metadata"]["name"] for node in case.nodes if not naive.refusals(case.pod, node, case.nodes, case.others)
    }
    assert {name for name in case.cluster.nodes if name not in found.refusals} == feasible
    assert set(found.best) == naive.best(case.pod, case.nodes, case.others)
    if not feasible:
        assert found.message.startswith(naive.message(case.pod, case.nodes, case.others))


@pytest.mark.parametrize("seed", CASES)
def test_victims_equal_a_naive_scheduler(seed: int) -> None:
    case = Case(seed)
    filters = Filters(case.info, case.cluster.list(), {}, volumes_of(case.pod, case.nodes), devices_of(case.pod))
    budgets = [
        Budget(namespace, msgspec.convert(each["spec"]["selector"], Selector), each["status"]["disruptionsAllowed"])
        for each in case.budgets
        for namespace in ("n",)
    ]
    for node in case.nodes:
        name = node["metadata"]["name"]
        if not naive.refusals(case.pod, node, case.nodes, case.others):
            continue
        ours = victims_on(filters, case.cluster.nodes[name], budgets)
        expected = naive.victims(case.pod, node, case.nodes, case.others, case.budgets)
        assert (None if isinstance(ours, Refusal) else [each.key.name for each in ours.victims]) == expected


def test_the_generated_cases_cover_all_features() -> None:
    cases = [Case(seed) for seed in CASES]
    decisions = [decided(each) for each in cases]
    reasons = {reason for each in decisions for refusal in each.refusals.values() for reason in refusal.reasons}
    assert len(reasons) >= 15
    assert {NO_DISK, IN_USE, NO_ZONE, EXCEEDED, UNSATISFIED, ELSEWHERE} <= reasons
    assert sum(bool(each.best) for each in decisions) > 200
    assert sum(not each.best for each in decisions) > 80
    assert sum(len(each.best) > 1 for each in decisions) > 10


def test_cache_keys_belong_to_equal_pods() -> None:
    assert Case(1).info.key == Key(Case(1).pod["metadata"]["namespace"], "new")
