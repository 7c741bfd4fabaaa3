"""A naive implementation of the documented behaviour of Kubernetes' scheduler, on plain objects.

The naive scheduler shares no code with the scheduler under test: quantities are fractions, and every rule reads all
objects each time.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

Thing = dict[str, Any]
UNITS = {
    "m": Fraction(1, 1000),
    "Ki": Fraction(1024),
    "Mi": Fraction(1024**2),
    "Gi": Fraction(1024**3),
    "": Fraction(1),
}


def amount(text: str) -> Fraction:
    unit = next(each for each in ("Ki", "Mi", "Gi", "m", "") if text.endswith(each))
    return Fraction(text.removesuffix(unit)) * UNITS[unit]


def asks(pod: Thing, name: str, default: Fraction = Fraction(0)) -> Fraction:
    total = sum(
        (
            amount(each["resources"]["requests"][name]) if name in each["resources"]["requests"] else default
            for each in pod["spec"]["containers"]
        ),
        Fraction(0),
    )
    for each in pod["spec"].get("initContainers", []):
        requests = each["resources"]["requests"]
        total = max(total, amount(requests[name]) if name in requests else default)
    return total + amount(pod["spec"].get("overhead", {}).get(name, "0"))


def names(pod: Thing) -> set[str]:
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    return {name for each in containers for name in each["resources"]["requests"]} | {*pod["spec"].get("overhead", {})}


def tolerated(pod: Thing, taint: Thing) -> bool:
    for each in pod["spec"].get("tolerations", []):
        if each.get("effect") not in (None, taint["effect"]):
            continue
        if each.get("operator") == "Exists" and each.get("key") in (None, taint["key"]):
            return True
        same = each.get("key") == taint["key"] and each.get("value", "") == taint.get("value", "")
        if each.get("operator", "Equal") == "Equal" and same:
            return True
    return False


def expression(each: Thing, labels: dict[str, str]) -> bool:
    has, value = each["key"] in labels, labels.get(each["key"], "")
    return {
        "In": lambda: has and value in each["values"],
        "NotIn": lambda: not has or value not in each["values"],
        "Exists": lambda: has,
        "DoesNotExist": lambda: not has,
        "Gt": lambda: has and value.isdigit() and int(value) > int(each["values"][0]),
    }[each["operator"]]()


def selector_matches(selector: Thing, labels: dict[str, str]) -> bool:
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    return all(expression(each, labels) for each in selector.get("matchExpressions", []))


def node_selected(pod: Thing, node: Thing) -> bool:
    labels = node["metadata"]["labels"]
    if any(labels.get(key) != value for key, value in pod["spec"].get("nodeSelector", {}).items()):
        return False
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(
        all(expression(each, labels) for each in term["matchExpressions"]) for term in required["nodeSelectorTerms"]
    )


def ports(pod: Thing) -> list[tuple[str, int]]:
    return [
        (each.get("hostIP", "0.0.0.0"), each["hostPort"])
        for container in pod["spec"]["containers"]
        for each in container.get("ports", [])
    ]


def clash(one: tuple[str, int], other: tuple[str, int]) -> bool:
    return one[1] == other[1] and (one[0] == other[0] or "0.0.0.0" in (one[0], other[0]))


def beside(node: Thing, others: list[Thing], nodes: list[Thing], key: str) -> list[Thing]:
    """Return the pods in the same topology domain."""
    value = node["metadata"]["labels"].get(key)
    if value is None:
        return []
    same = {each["metadata"]["name"] for each in nodes if each["metadata"]["labels"].get(key) == value}
    return [each for each in others if each["spec"]["nodeName"] in same]


def terms(pod: Thing, kind: str, when: str) -> list[Thing]:
    found: list[Thing] = (
        pod["spec"].get("affinity", {}).get(kind, {}).get(f"{when}DuringSchedulingIgnoredDuringExecution", [])
    )
    return found


def about(term: Thing, owner: Thing, other: Thing) -> bool:
    namespaces = term.get("namespaces", [owner["metadata"]["namespace"]])
    return other["metadata"]["namespace"] in namespaces and selector_matches(
        term["labelSelector"], other["metadata"]["labels"]
    )


def refusals(pod: Thing, node: Thing, nodes: list[Thing], others: list[Thing]) -> list[str]:
    """Return the reason why a node cannot run a pod, from the first plugin that refuses the node."""
    here = [each for each in others if each["spec"]["nodeName"] == node["metadata"]["name"]]
    unschedulable = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if node["spec"].get("unschedulable") and not tolerated(pod, unschedulable):
        return ["node(s) were unschedulable"]
    hard = [each for each in node["spec"].get("taints", []) if each["effect"] != "PreferNoSchedule"]
    if any(not tolerated(pod, each) for each in hard):
        return ["node(s) had untolerated taint(s)"]
    if not node_selected(pod, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    if any(clash(one, other) for one in ports(pod) for each in here for other in ports(each)):
        return ["node(s) didn't have free ports for the requested pod ports"]
    lacking = _lacking(pod, node, here)
    if lacking:
        return lacking
    return (
        _volumes(pod, node, here, others)
        or _spread(pod, node, nodes, others)
        or _affinity(pod, node, nodes, others)
        or _devices(pod, node)
        or _features(pod, node)
    )


def _devices(pod: Thing, node: Thing) -> list[str]:
    wants = any(each["resourceClaimName"] == IN_ZONE for each in pod["spec"].get("resourceClaims", []))
    in_zone = node["metadata"]["labels"].get("topology.kubernetes.io/zone") == "a"
    return ["resourceclaim not available on the node"] if wants and not in_zone else []


def _features(pod: Thing, node: Thing) -> list[str]:
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    rules = [rule for each in containers for rule in each.get("restartPolicyRules", [])]
    needed = {"RestartAllContainersOnContainerExits"} if rules else set()
    if pod["spec"].get("hostNetwork") and pod["spec"].get("hostUsers") is False:
        needed.add("UserNamespacesHostNetworkSupport")
    known = node["status"].get("declaredFeatures", [])
    return ["node(s) didn't match Pod's required features"] if any(each not in known for each in needed) else []


ONE_POD, IN_ZONE = "once", "zoned"
"""A PersistentVolumeClaim that only one pod may use, and a claim whose volume is in zone a; both claims exist in every
namespace.
"""


def volumes(pod: Thing, source: str) -> list[Thing]:
    return [each[source] for each in pod["spec"].get("volumes", []) if source in each]


def claims(pod: Thing) -> list[str]:
    return [each["claimName"] for each in volumes(pod, "persistentVolumeClaim")]


def _volumes(pod: Thing, node: Thing, here: list[Thing], others: list[Thing]) -> list[str]:
    for one in volumes(pod, "gcePersistentDisk"):
        for other in (disk for each in here for disk in volumes(each, "gcePersistentDisk")):
            if one["pdName"] == other["pdName"] and not (one["readOnly"] and other["readOnly"]):
                return ["node(s) had no available disk"]
    rivals = [each for each in others if each["metadata"]["namespace"] == pod["metadata"]["namespace"]]
    if ONE_POD in claims(pod) and any(ONE_POD in claims(each) for each in rivals):
        return [
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
            "another pod"
        ]
    drives = {each["volumeID"] for each in volumes(pod, "cinder")}
    there = {each["volumeID"] for one in here for each in volumes(one, "cinder")}
    allowed = node.get("volumesAllowed")
    new = drives - there
    if new and allowed is not None and len(there | {*node["volumesAttached"]}) + len(new) > allowed:
        return ["node(s) exceed max volume count"]
    labels = node["metadata"]["labels"]
    zone = labels.get("topology.kubernetes.io/zone")
    if IN_ZONE in claims(pod) and zone not in (None, "a"):
        return ["node(s) had no available volume zone"]
    return []


def _lacking(pod: Thing, node: Thing, here: list[Thing]) -> list[str]:
    held = node["status"]["allocatable"]
    found = ["Too many pods"] if len(here) + 1 > amount(held["pods"]) else []
    for name in sorted(
        names(pod), key=lambda each: (["cpu", "memory"].index(each) if each in ("cpu", "memory") else 2, each)
    ):
        used = sum((asks(each, name) for each in here), Fraction(0))
        if asks(pod, name) > 0 and asks(pod, name) + used > amount(held.get(name, "0")):
            found.append(f"Insufficient {name}")
    return found


def hopeless(pod: Thing, node: Thing) -> bool:
    held = node["status"]["allocatable"]
    return any(asks(pod, name) > amount(held.get(name, "0")) for name in names(pod))


def _constraints(pod: Thing, when: str) -> list[Thing]:
    return [each for each in pod["spec"].get("topologySpreadConstraints", []) if each["whenUnsatisfiable"] == when]


def _alike(each: Thing, pod: Thing, others: list[Thing]) -> list[Thing]:
    return [
        other
        for other in others
        if other["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and selector_matches(each["labelSelector"], other["metadata"]["labels"])
    ]


def _spread(pod: Thing, node: Thing, nodes: list[Thing], others: list[Thing]) -> list[str]:
    constraints = _constraints(pod, "DoNotSchedule")
    keys = [each["topologyKey"] for each in constraints]
    for each in constraints:
        key = each["topologyKey"]
        if key not in node["metadata"]["labels"]:
            return ["node(s) didn't match pod topology spread constraints (missing required label)"]
        eligible = [
            one for one in nodes if all(key in one["metadata"]["labels"] for key in keys) and node_selected(pod, one)
        ]
        counts: dict[str, int] = {}
        for one in eligible:
            value = one["metadata"]["labels"][key]
            on_it = [other for other in others if other["spec"]["nodeName"] == one["metadata"]["name"]]
            counts[value] = counts.get(value, 0) + len(_alike(each, pod, on_it))
        fewest = min(counts.values()) if len(counts) >= each.get("minDomains", 1) else 0
        itself = selector_matches(each["labelSelector"], pod["metadata"]["labels"])
        if counts.get(node["metadata"]["labels"][key], 0) + itself - fewest > each["maxSkew"]:
            return ["node(s) didn't match pod topology spread constraints"]
    return []


def _affinity(pod: Thing, node: Thing, nodes: list[Thing], others: list[Thing]) -> list[str]:
    wanted = terms(pod, "podAffinity", "required")
    meets_all = [each for each in others if all(about(term, pod, each) for term in wanted)]
    labels = node["metadata"]["labels"]
    if wanted:
        if any(term["topologyKey"] not in labels for term in wanted):
            return ["node(s) didn't match pod affinity rules"]
        found = all(beside(node, meets_all, nodes, term["topologyKey"]) for term in wanted)
        known = {each["metadata"]["name"]: each["metadata"]["labels"] for each in nodes}
        anywhere = any(term["topologyKey"] in known[each["spec"]["nodeName"]] for each in meets_all for term in wanted)
        if not found and (anywhere or not all(about(term, pod, pod) for term in wanted)):
            return ["node(s) didn't match pod affinity rules"]
    for term in terms(pod, "podAntiAffinity", "required"):
        if any(about(term, pod, each) for each in beside(node, others, nodes, term["topologyKey"])):
            return ["node(s) didn't match pod anti-affinity rules"]
    for each in others:
        for term in terms(each, "podAntiAffinity", "required"):
            if about(term, each, pod) and each in beside(node, others, nodes, term["topologyKey"]):
                return ["node(s) didn't satisfy existing pods anti-affinity rules"]
    return []


def message(pod: Thing, nodes: list[Thing], others: list[Thing]) -> str:
    """Return the first sentence of the scheduler's message for a pod that no node can run."""
    found = [reason for node in nodes for reason in refusals(pod, node, nodes, others)]
    counted = sorted(f"{found.count(reason)} {reason}" for reason in set(found))
    return f"0/{len(nodes)} nodes are available: {', '.join(counted)}."


# Scores


def best(pod: Thing, nodes: list[Thing], others: list[Thing]) -> set[str]:
    """Return the nodes with the highest score among those that can run a pod."""
    feasible = [node for node in nodes if not refusals(pod, node, nodes, others)]
    if len(feasible) < 2:
        return {node["metadata"]["name"] for node in feasible}
    sums = dict.fromkeys((node["metadata"]["name"] for node in feasible), 0)
    for weight, scores in (
        (3, _taint_scores(pod, feasible)),
        (2, _node_scores(pod, feasible)),
        (2, _spread_scores(pod, feasible, nodes, others)),
        (2, _pod_scores(pod, feasible, nodes, others)),
        (1, {each["metadata"]["name"]: _room(pod, each, others) for each in feasible}),
        (1, {each["metadata"]["name"]: _balance(pod, each, others) for each in feasible}),
    ):
        for name, score in scores.items():
            sums[name] += weight * score
    return {name for name, score in sums.items() if score == max(sums.values())}


def _taint_scores(pod: Thing, feasible: list[Thing]) -> dict[str, int]:
    counts = {}
    for node in feasible:
        soft = [each for each in node["spec"].get("taints", []) if each["effect"] == "PreferNoSchedule"]
        counts[node["metadata"]["name"]] = sum(not tolerated(pod, each) for each in soft)
    most = max(counts.values())
    return {name: 100 - (100 * count // most if most else 0) for name, count in counts.items()}


def _node_scores(pod: Thing, feasible: list[Thing]) -> dict[str, int]:
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])
    sums = {
        node["metadata"]["name"]: sum(
            each["weight"]
            for each in preferred
            if all(expression(one, node["metadata"]["labels"]) for one in each["preference"]["matchExpressions"])
        )
        for node in feasible
    }
    most = max(sums.values())
    return {name: 100 * found // most if most else 0 for name, found in sums.items()}


def _room(pod: Thing, node: Thing, others: list[Thing]) -> int:
    here = [each for each in others if each["spec"]["nodeName"] == node["metadata"]["name"]]
    total = 0
    for name, default in (("cpu", Fraction(1, 10)), ("memory", Fraction(200 * 1024**2))):
        held = amount(node["status"]["allocatable"][name])
        wanted = sum((asks(each, name, default) for each in [*here, pod]), Fraction(0))
        total += max(int((held - wanted) * 100 / held), 0)
    return total // 2


def _balance(pod: Thing, node: Thing, others: list[Thing]) -> int:
    if not asks(pod, "cpu") and not asks(pod, "memory"):
        return 0
    here = [each for each in others if each["spec"]["nodeName"] == node["metadata"]["name"]]
    return 50 + (50 + _equality([*here, pod], node) - _equality(here, node)) // 2


def _equality(pods: list[Thing], node: Thing) -> int:
    parts = [
        min(
            float(sum((asks(each, name) for each in pods), Fraction(0)) / amount(node["status"]["allocatable"][name])),
            1.0,
        )
        for name in ("cpu", "memory")
    ]
    return int((1 - abs((parts[0] - parts[1]) / 2)) * 100)


def _spread_scores(pod: Thing, feasible: list[Thing], nodes: list[Thing], others: list[Thing]) -> dict[str, int]:
    constraints = _constraints(pod, "ScheduleAnyway")
    if not constraints:
        return {}
    keys = [each["topologyKey"] for each in constraints]
    counted = [node for node in feasible if all(key in node["metadata"]["labels"] for key in keys)]
    eligible = [
        one for one in nodes if all(key in one["metadata"]["labels"] for key in keys) and node_selected(pod, one)
    ]
    raw = {}
    for node in counted:
        score = 0.0
        for each in constraints:
            key = each["topologyKey"]
            values = {one["metadata"]["labels"][key] for one in counted}
            size = len(counted) if key == "kubernetes.io/hostname" else len(values)
            domain = {
                one["metadata"]["name"]
                for one in (eligible if key != "kubernetes.io/hostname" else [node])
                if one["metadata"]["labels"][key] == node["metadata"]["labels"][key]
            }
            there = [other for other in others if other["spec"]["nodeName"] in domain]
            score += len(_alike(each, pod, there)) * math.log(size + 2) + each["maxSkew"] - 1
        raw[node["metadata"]["name"]] = math.floor(score + 0.5)
    scores = {node["metadata"]["name"]: 0 for node in feasible}
    if raw:
        least, most = min(raw.values()), max(raw.values())
        for name, score in raw.items():
            scores[name] = 100 * (most + least - score) // most if most else 100
    return scores


def _pod_scores(pod: Thing, feasible: list[Thing], nodes: list[Thing], others: list[Thing]) -> dict[str, int]:
    raw = {}
    for node in feasible:
        total = 0
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
            for each in terms(pod, kind, "preferred"):
                term = each["podAffinityTerm"]
                near = beside(node, others, nodes, term["topologyKey"])
                total += sign * each["weight"] * sum(about(term, pod, other) for other in near)
            for other in others:
                for each in terms(other, kind, "preferred"):
                    term = each["podAffinityTerm"]
                    if about(term, other, pod) and other in beside(node, others, nodes, term["topologyKey"]):
                        total += sign * each["weight"]
        for other in others:
            for term in terms(other, "podAffinity", "required"):
                if about(term, other, pod) and other in beside(node, others, nodes, term["topologyKey"]):
                    total += 1
        raw[node["metadata"]["name"]] = total
    least, most = min(0, *raw.values()), max(0, *raw.values())
    return {name: int(100 * ((score - least) / (most - least))) if most > least else 0 for name, score in raw.items()}


# Preemption


def victims(pod: Thing, node: Thing, nodes: list[Thing], others: list[Thing], budgets: list[Thing]) -> list[str] | None:
    """Return the pods of a node that the scheduler would evict, the most important first; return None if evictions do
    not help.
    """
    name = node["metadata"]["name"]
    lower = [
        each
        for each in others
        if each["spec"]["nodeName"] == name and each["spec"]["priority"] < pod["spec"]["priority"]
    ]
    rest = [each for each in others if each not in lower]
    if not lower or refusals(pod, node, nodes, rest):
        return None
    lower.sort(key=_importance)
    left = [each["status"]["disruptionsAllowed"] for each in budgets]
    broken = []
    for each in lower:
        hits = [
            i
            for i, budget in enumerate(budgets)
            if each["metadata"]["namespace"] == budget["metadata"]["namespace"]
            and selector_matches(budget["spec"]["selector"], each["metadata"]["labels"])
        ]
        for index in hits:
            left[index] -= 1
        if any(left[index] < 0 for index in hits):
            broken.append(each)
    gone = []
    for each in [*broken, *(one for one in lower if one not in broken)]:
        if refusals(pod, node, nodes, [*rest, each]):
            gone.append(each)
        else:
            rest.append(each)
    return [each["metadata"]["name"] for each in sorted(gone, key=_importance)]


def _importance(pod: Thing) -> tuple[int, str, str]:
    return -pod["spec"]["priority"], pod["status"]["startTime"], pod["metadata"]["name"]
