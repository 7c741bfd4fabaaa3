"""Decides when a node counts as silent, and which conditions, taints and labels a node gets, with pure functions.

Guarantees, which are the same as in Kubernetes' `pkg/controller/nodelifecycle`:
- A node is alive as long as its condition Ready or its lease is renewed. The time of a renewal is the time when this
  process reads the renewal. Therefore the result does not depend on the kubelet's clock.
- The conditions of a silent node become Unknown, and missing conditions are added. The condition NetworkUnavailable is
  not changed, because kubelets do not report it.
- The NoSchedule taints match the node's conditions and the field `unschedulable`. Other taints are not changed.

In this module, times are in microseconds since 1970, and periods are in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.clock import format_time_seconds, parse_time
from ctrlmgr.controllers.node_lifecycle.view import READY, Condition, HealthNode
from ctrlmgr.scheduling.taints import NO_SCHEDULE, NOT_READY, UNREACHABLE, UNSCHEDULABLE

_SECOND: Final = 1_000_000
_WATCHED: Final = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")

CONDITION_TAINTS: Final[Mapping[str, Mapping[str, str]]] = {
    READY: {"False": NOT_READY, "Unknown": UNREACHABLE},
    "MemoryPressure": {"True": "node.kubernetes.io/memory-pressure"},
    "DiskPressure": {"True": "node.kubernetes.io/disk-pressure"},
    "NetworkUnavailable": {"True": "node.kubernetes.io/network-unavailable"},
    "PIDPressure": {"True": "node.kubernetes.io/pid-pressure"},
}
"""The taint for each condition of a node, keyed by the type and the status of the condition."""

_OURS: Final = frozenset(key for keys in CONDITION_TAINTS.values() for key in keys.values()) | {UNSCHEDULABLE}

MIRRORED_LABELS: Final = (
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
)
"""Labels of nodes, and the former names of these labels, to which the values are copied."""


class Health(NamedTuple):
    """The last seen state of a node: its condition Ready, its lease, and the time of its last renewal."""

    ready: Condition | None
    heard_at: int
    renewed: str = ""
    """The `renewTime` of the node's lease."""


class NodeCheck(NamedTuple):
    """The result of checking a node; `conditions` are the conditions to write, or None if they do not change."""

    health: Health
    observed: str
    """The status of Ready before the check; Unknown if the node did not have the condition Ready."""
    current: str | None
    """The status of Ready after the check; None if the node still has no condition Ready."""
    conditions: list[dict[str, Any]] | None = None


class GracePeriods(NamedTuple):
    """The seconds for which a node may be silent: one value for nodes that have reported, one for other nodes."""

    running: float
    starting: float


def judge(
    node: HealthNode,
    before: Health | None,
    renewed: str,
    now: int,
    grace: GracePeriods,
    raw: Sequence[Mapping[str, Any]] = (),
) -> NodeCheck:
    """Check a node whose lease was last renewed at `renewed` (RFC 3339; "" if there is no lease).

    The argument `raw` contains the complete conditions of the node.
    """
    ready, created = node.ready, _time(node.metadata.creation_timestamp)
    health = _seen(ready, before, created, now)
    if renewed and (not health.renewed or parse_time(health.renewed) < parse_time(renewed)):
        health = health._replace(renewed=renewed, heard_at=now)
    observed = ready.status if ready is not None else "Unknown"
    allowed = grace.starting if ready is None else grace.running
    if now <= health.heard_at + round(allowed * _SECOND):
        return NodeCheck(health, observed, ready.status if ready is not None else None)
    if ready is not None and ready.status == "Unknown":
        return NodeCheck(health, observed, "Unknown")
    conditions = _silent(raw, node.metadata.creation_timestamp, now)
    stored = next(each for each in conditions if each["type"] == READY)
    as_seen = Condition(
        READY, "Unknown", stored.get("lastHeartbeatTime"), stored.get("lastTransitionTime"), stored["reason"]
    )
    return NodeCheck(health._replace(ready=as_seen), observed, "Unknown", conditions)


def _seen(ready: Condition | None, before: Health | None, created: int, now: int) -> Health:
    """Return a node's health, updated with its current Ready condition."""
    if before is None:
        return Health(ready, created if ready is None else now)
    if (before.ready is None) != (ready is None):
        return Health(ready, now)
    if before.ready and ready and before.ready.last_heartbeat_time != ready.last_heartbeat_time:
        return Health(ready, now)
    return before._replace(ready=ready)


def _silent(raw: Sequence[Mapping[str, Any]], created: str | None, now: int) -> list[dict[str, Any]]:
    at = format_time_seconds(now)
    gone = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    found = []
    for each in raw:
        silenced = each["type"] in _WATCHED and each.get("status") != "Unknown"
        found.append({**each, "lastTransitionTime": at, **gone} if silenced else dict(each))
    known = {each["type"] for each in raw}
    never = {"reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status."}
    for type_ in _WATCHED:
        if type_ not in known:
            times = {"lastHeartbeatTime": created, "lastTransitionTime": at}
            found.append({"type": type_, "status": "Unknown", **times, **never})
    return found


def _time(text: str | None) -> int:
    return parse_time(text) if text else 0


def condition_taints(node: HealthNode) -> list[str]:
    """Return the keys of the NoSchedule taints that this controller sets on a node, in the order of its conditions."""
    found = [CONDITION_TAINTS.get(each.type, {}).get(each.status) for each in node.status.conditions or ()]
    keys = [key for key in found if key is not None]
    return [*keys, UNSCHEDULABLE] if node.spec.unschedulable else keys


class TaintChange(NamedTuple):
    """The taints to add to a node and the taints to remove, by key and effect."""

    add: tuple[tuple[str, str], ...] = ()
    remove: tuple[tuple[str, str], ...] = ()


def condition_taint_change(node: HealthNode) -> TaintChange:
    """Return the change of the NoSchedule taints that this controller sets."""
    desired = condition_taints(node)
    current = [each.key for each in node.spec.taints or () if each.effect == NO_SCHEDULE and each.key in _OURS]
    return TaintChange(
        tuple((key, NO_SCHEDULE) for key in dict.fromkeys(desired) if key not in current),
        tuple((key, NO_SCHEDULE) for key in current if key not in desired),
    )


def with_taints(taints: Iterable[Mapping[str, Any]], change: TaintChange, now: int) -> list[dict[str, Any]]:
    """Return a node's taints after a change; added taints have the field `timeAdded`."""
    gone = {*change.remove, *change.add}
    kept = [dict(each) for each in taints if (each.get("key", ""), each.get("effect", "")) not in gone]
    at = format_time_seconds(now)
    return [*kept, *({"key": key, "effect": effect, "timeAdded": at} for key, effect in change.add)]


def label_changes(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the label values that must be copied to a node's former label names, keyed by the former name."""
    return {
        former: labels[name]
        for name, former in MIRRORED_LABELS
        if name in labels and labels.get(former) != labels[name]
    }
