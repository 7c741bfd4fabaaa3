"""Tests of the number of replicas that an autoscaler computes, by the documented algorithm of Kubernetes.

The algorithm is desired = ceil(current · usage / target), with the documented rules for missing, unready and deleted
pods.
"""

from __future__ import annotations

import math
from random import Random

import pytest

from ctrlmgr.controllers.horizontal_pod_autoscaler.autoscaled_pods import MeasuredPod, requests_of
from ctrlmgr.controllers.horizontal_pod_autoscaler.metrics_client import MetricsError
from ctrlmgr.controllers.horizontal_pod_autoscaler.replicas import (
    MetricInput,
    Proposal,
    Tolerances,
    by_average,
    by_total,
    by_total_per_pod,
    by_utilization,
    total_of,
)
from tests.controllers.horizontal_pod_autoscaler.measured import MINUTE, NOW, pod, used


def running(count: int) -> list[MeasuredPod]:
    return [pod(f"p{place}") for place in range(count)]


def situation(pods: list[MeasuredPod], current: int | None = None, tolerances: Tolerances | None = None) -> MetricInput:
    return MetricInput(len(pods) if current is None else current, pods, NOW, tolerances or Tolerances())


@pytest.mark.parametrize(
    ("usage", "target", "expected"),
    [
        ([300, 500, 700], 30, Proposal(5, 500, 50)),  # ceil(3 · 50/30)
        ([400, 500, 700], 20, Proposal(8, 533, 53)),  # ceil(3 · 53/20)
        ([100, 300, 500, 250, 250], 50, Proposal(3, 280, 28)),  # ceil(5 · 28/50)
        ([1000, 1000, 1000], 100, Proposal(3, 1000, 100)),
        ([1100, 1100, 1100], 100, Proposal(3, 1100, 110)),  # 1.1 is within the tolerance
        ([1110, 1110, 1110], 100, Proposal(4, 1110, 111)),
        ([900, 900, 900], 100, Proposal(3, 900, 90)),
        ([890, 890], 100, Proposal(2, 890, 89)),  # ceil(1.78)
        ([0, 0], 50, Proposal(0, 0, 0)),
    ],
)
def test_utilization_of_pods_that_all_count(usage: list[int], target: int, expected: Proposal) -> None:
    assert by_utilization(situation(running(len(usage))), target, used(*usage), "cpu") == expected


@pytest.mark.parametrize(
    ("usage", "target", "replicas"),
    [
        # One pod has no metrics: for scaling up it counts with no usage, and the direction stays.
        ([None, 1000, 1000], 50, 4),  # (0 + 1000 + 1000) / 3 = 66 %; ceil(3 · 66/50)
        # For scaling down, a pod without metrics counts with all of its request.
        ([None, 100, 100], 60, 2),  # (1000 + 100 + 100) / 3 = 40 %; ceil(3 · 40/60)
        # This would reverse the direction, so nothing changes.
        ([None, 300, 400], 50, 3),  # 35 % without this pod, 56 % with it
        ([None, None, 700], 50, 3),  # 140 % without these pods, 23 % with them
        # If the target exceeds 100 %, a missing pod counts with the target's usage.
        ([None, 100, 100], 300, 2),  # (3000 + 100 + 100) / 3 = 106 %; ceil(3 · 106/300)
    ],
)
def test_pods_without_metrics(usage: list[int | None], target: int, replicas: int) -> None:
    assert by_utilization(situation(running(len(usage))), target, used(*usage), "cpu").replicas == replicas


def test_unready_pods_use_nothing_when_scaling_up() -> None:
    pods = [pod("p0", ready=False, age=2, ready_age=2), pod("p1"), pod("p2")]
    assert by_utilization(situation(pods), 30, used(100, 500, 700), "cpu") == Proposal(4, 600, 60)  # (0+500+700)/3=40%


def test_unready_pods_are_ignored_when_scaling_down() -> None:
    pods = [pod("p0", ready=False, age=2, ready_age=2), pod("p1"), pod("p2")]
    assert by_utilization(situation(pods), 50, used(100, 200, 200), "cpu") == Proposal(1, 200, 20)


def test_pending_pods_count_as_unready_for_any_metric() -> None:
    pods = [pod("p0", phase="Pending", ready=None), pod("p1"), pod("p2")]
    assert by_average(situation(pods), 100, used(None, 300, 300)) == Proposal(6, 300)  # (0+300+300)/3 = 200


@pytest.mark.parametrize("gone", [{"phase": "Failed"}, {"deleted": True}])
def test_metrics_of_deleted_pods_are_ignored(gone: dict[str, object]) -> None:
    pods = [pod("p0", **gone), pod("p1"), pod("p2")]
    assert by_utilization(situation(pods), 50, used(9000, 500, 1000), "cpu") == Proposal(3, 750, 75)


@pytest.mark.parametrize(
    ("fields", "at", "counts"),
    [
        # In its first five minutes, a pod counts if it is ready, and was ready during the whole window of the metric.
        ({"age": 4, "ready": False, "ready_age": 4}, NOW, False),
        ({"age": 4, "ready": True, "ready_age": 2}, NOW, True),
        ({"age": 4, "ready": True, "ready_age": 2}, NOW - MINUTE - 1, False),
        # Afterwards a pod counts unless it has never been ready.
        ({"age": 10, "ready": False, "ready_age": 10}, NOW, False),
        ({"age": 10, "ready": False, "ready_age": 3}, NOW, True),
        ({"age": 10, "ready": True, "ready_age": 0}, NOW, True),
        ({"age": 10, "ready": None}, NOW, False),
    ],
)
def test_the_cpu_of_a_starting_pod_counts_after_its_initialization(
    fields: dict[str, object], at: int, counts: bool
) -> None:
    pods = [pod("p0", **fields)]
    if counts:
        assert by_utilization(situation(pods), 100, used(1000, at=at), "cpu").utilization == 100
    else:
        with pytest.raises(MetricsError, match="did not receive metrics for targeted pods"):
            by_utilization(situation(pods), 100, used(1000, at=at), "cpu")
    assert by_average(situation(pods), 1000, used(1000, at=at)).replicas == 1  # other metrics always count


def test_rebalancing_never_reverses_the_direction() -> None:
    """The target requires twelve replicas, but only a few pods exist: scaling up must not reduce the number of
    replicas.
    """
    pods = [pod("p0", ready=False, age=2, ready_age=2), pod("p1")]
    assert by_utilization(situation(pods, current=12), 10, used(1, 500), "cpu").replicas == 12


@pytest.mark.parametrize(
    ("usage", "target", "expected"),
    [
        ([20000, 10000, 30000], 15000, Proposal(4, 20000)),
        ([12000, 12000, 12000], 11000, Proposal(3, 12000)),  # within the tolerance
        ([None, 12000, 24000], 8000, Proposal(5, 18000)),  # 36000/3 = 12000; ceil(3 · 1.5)
        ([None, 4000, 4000], 16000, Proposal(2, 4000)),  # 24000/3 = 8000; ceil(3 · 0.5)
    ],
)
def test_amounts_per_pod(usage: list[int | None], target: int, expected: Proposal) -> None:
    assert by_average(situation(running(len(usage))), target, used(*usage)) == expected


@pytest.mark.parametrize(
    ("current", "usage", "target", "expected"),
    [
        (3, 20000, 15000, 4),
        (3, 12000, 11000, 3),
        (0, 2000, 1000, 2),  # at zero replicas, pods are not counted
        (0, 0, 1000, 0),
        (3, 2**63 - 1, 1, 2**31 - 1),
    ],
)
def test_one_amount_for_all_pods(current: int, usage: int, target: int, expected: int) -> None:
    assert by_total(situation(running(3), current=current), usage, target).replicas == expected


def test_one_amount_for_all_pods_counts_only_ready_pods() -> None:
    pods = [pod("p0", ready=False), pod("p1"), pod("p2", phase="Pending", ready=None)]
    assert by_total(situation(pods), 2000, 1000).replicas == 2


@pytest.mark.parametrize(
    ("current", "usage", "target", "expected"),
    [(3, 8600, 2150, Proposal(4, 2867)), (3, 8600, 2867, Proposal(3, 2867)), (2, 9000, 1000, Proposal(9, 4500))],
)
def test_one_amount_shared_by_all_pods(current: int, usage: int, target: int, expected: Proposal) -> None:
    assert by_total_per_pod(current, usage, target, Tolerances()) == expected


def test_external_values_are_summed_up_to_the_maximum() -> None:
    assert total_of([1, 2, 3]) == 6
    assert total_of([2**63 - 1, 5]) == 2**63 - 1


def test_each_direction_has_its_tolerance() -> None:
    steady = Tolerances(down=0.5, up=0.0)
    assert by_utilization(situation(running(2), tolerances=steady), 100, used(600, 600), "cpu").replicas == 2
    assert by_utilization(situation(running(2), tolerances=steady), 100, used(1010, 1010), "cpu").replicas == 3


def test_without_pods_or_metrics_the_result_is_an_error() -> None:
    with pytest.raises(MetricsError, match="no pods returned by selector while calculating replica count"):
        by_utilization(situation([], current=3), 50, used(), "cpu")
    with pytest.raises(MetricsError, match="no pods returned by selector while calculating replica count"):
        by_total(situation([], current=3), 5000, 1000)
    with pytest.raises(MetricsError, match=r"did not receive metrics for targeted pods \(pods might be unready\)"):
        by_average(situation(running(2)), 50, used())


def test_requests_of_pods() -> None:
    plain = pod("plain", request="250m")
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}}
    once = {"name": "once", "resources": {"requests": {"cpu": "5"}}}
    with_sidecar = pod("sidecar", request="250m", initContainers=[sidecar, once])
    as_a_whole = pod("whole", resources={"requests": {"cpu": "700m"}}, overhead={"cpu": "10m"})
    found = requests_of([plain, with_sidecar, as_a_whole], "cpu", "")
    assert found == {"plain": 250, "sidecar": 300, "whole": 710}
    assert requests_of([with_sidecar], "cpu", "s") == {"sidecar": 50}
    with pytest.raises(MetricsError, match="missing request for cpu in container c of Pod p0"):
        requests_of([pod("p0", request=None)], "cpu", "")
    with pytest.raises(MetricsError, match="container x not found in Pod p0"):
        requests_of([pod("p0")], "cpu", "x")
    with pytest.raises(MetricsError, match="missing pod-level request for memory in Pod whole"):
        requests_of([as_a_whole], "memory", "")


def test_utilization_of_counted_pods_equals_the_documented_formula() -> None:
    random = Random(3)
    for _ in range(3000):
        usage = [random.randrange(0, 3000) for _ in range(random.randrange(1, 30))]
        target = random.randrange(1, 200)
        proposal = by_utilization(situation(running(len(usage))), target, used(*usage), "cpu")
        percent = sum(usage) * 100 // (1000 * len(usage))
        ratio = percent / target
        expected = len(usage) if 0.9 <= ratio <= 1.1 else math.ceil(ratio * len(usage))
        assert proposal.replicas == expected


def test_pods_without_metrics_never_reverse_the_direction() -> None:
    random = Random(4)
    for _ in range(3000):
        usage = [random.choice([None, random.randrange(0, 3000)]) for _ in range(random.randrange(1, 12))]
        pods = [pod(f"p{place}", **random.choice([{}, {"ready": False, "age": 1}])) for place in range(len(usage))]
        target = random.randrange(1, 200)
        try:
            proposal = by_utilization(situation(pods), target, used(*usage), "cpu")
        except MetricsError:
            continue
        assert proposal.utilization is not None
        if proposal.utilization > target:
            assert proposal.replicas >= len(pods)
        elif proposal.utilization < target and None in usage:
            assert proposal.replicas <= len(pods)
