from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.clock import format_time_seconds, parse_time
from ctrlmgr.controllers.workloads.deletion_order import deletion_cost, deletion_order

NOW = parse_time("2026-01-02T12:00:00Z")
MINUTE = 60_000_000


def ago(microseconds: int) -> str:
    return format_time_seconds(NOW - microseconds)


def pod(
    name: str,
    *,
    node: str = "a",
    phase: str = "Running",
    ready: int | None = 60 * MINUTE,
    age: int = 60 * MINUTE,
    cost: str | None = None,
    restarts: int = 0,
    sidecar_restarts: int | None = None,
) -> Object:
    """Return a pod that became ready `ready` microseconds ago; None means that the pod is not ready."""
    condition = {"type": "Ready", "status": "False" if ready is None else "True", "lastTransitionTime": ago(ready or 0)}
    spec: dict[str, Any] = {"nodeName": node, "containers": [{"name": "c"}]}
    status: dict[str, Any] = {"phase": phase, "conditions": [condition]}
    status["containerStatuses"] = [{"name": "c", "restartCount": restarts}]
    if sidecar_restarts is not None:
        spec["initContainers"] = [{"name": "init"}, {"name": "side", "restartPolicy": "Always"}]
        status["initContainerStatuses"] = [
            {"name": "init", "restartCount": 99},
            {"name": "side", "restartCount": sidecar_restarts},
        ]
    metadata: dict[str, Any] = {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": ago(age)}
    if cost is not None:
        metadata["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": cost}
    return Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": status})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # 1. pods without a node, regardless of the other criteria
        (pod("z", node="", cost="100"), pod("a", phase="Pending", ready=None)),
        # 2. the phase
        (pod("z", phase="Pending", ready=None), pod("a", phase="Unknown", ready=None)),
        (pod("z", phase="Unknown", ready=None, cost="5"), pod("a", ready=None)),
        # 3. readiness
        (pod("z", ready=None, cost="5"), pod("a")),
        # 4. the cost
        (pod("z", cost="-1"), pod("a")),
        (pod("z", cost="1"), pod("a", cost="2")),
        # 6. the time since when it is ready, on a logarithmic scale
        (pod("z", ready=MINUTE), pod("a", ready=60 * MINUTE)),
        # 7. restarts, and then restarts of sidecars
        (pod("z", restarts=3), pod("a", restarts=2)),
        (pod("z", restarts=3, sidecar_restarts=0), pod("a", restarts=2, sidecar_restarts=5)),
        (pod("z", restarts=2, sidecar_restarts=1), pod("a", restarts=2, sidecar_restarts=0)),
        # 8. age
        (pod("z", age=MINUTE), pod("a")),
    ],
)
def test_each_criterion_decides_if_all_earlier_ones_are_equal(first: Object, second: Object) -> None:
    assert deletion_order([second, first], (), NOW) == [first, second]
    assert deletion_order([first, second], (), NOW) == [first, second]


def test_a_pod_with_more_replicas_on_its_node_is_deleted_first() -> None:
    crowded, alone, other = pod("z", node="a"), pod("b", node="b"), pod("y", node="a")
    assert deletion_order([alone, crowded], [alone, crowded, other], NOW) == [crowded, alone]


def test_terminated_replicas_on_the_node_do_not_count() -> None:
    first, second = pod("a", node="a"), pod("z", node="b")
    ended = pod("y", node="b", phase="Succeeded", ready=None)
    assert deletion_order([second, first], [first, second, ended], NOW) == [second, first]


def test_within_one_power_of_two_the_uid_decides() -> None:
    older, younger = pod("a", ready=60 * MINUTE), pod("z", ready=50 * MINUTE)
    assert deletion_order([younger, older], (), NOW) == [older, younger]


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("5", 5),
        ("-5", -5),
        ("0", 0),
        ("+5", 0),
        ("05", 0),
        ("", 0),
        ("1e3", 0),
        ("2147483648", 0),
        ("-2147483648", -(2**31)),
    ],
)
def test_a_deletion_cost_is_a_plain_32_bit_integer(text: str, cost: int) -> None:
    assert deletion_cost(pod("a", cost=text)) == cost
