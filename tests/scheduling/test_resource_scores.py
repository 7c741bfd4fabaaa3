"""Tests of the strategies of NodeResourcesFit, with values computed by hand from kube-scheduler's formulas."""

from __future__ import annotations

import msgspec
import pytest

from ctrlmgr.scheduling.cluster_model import NodeInfo, PodInfo
from ctrlmgr.scheduling.profile import BASIC, LEAST, MOST, RATIO, ShapePoint, Strategy, WeightedResource
from ctrlmgr.scheduling.resource_scores import balance_scores, fit_scores
from ctrlmgr.scheduling.scheduling_view import NodeView, PodView

GPU = "example.com/gpu"
UP = (ShapePoint(0, 0), ShapePoint(100, 10))


def pod(**requests: str) -> PodInfo:
    container = {"resources": {"requests": requests}}
    return PodInfo(msgspec.convert({"metadata": {"name": "p"}, "spec": {"containers": [container]}}, PodView))


@pytest.fixture
def node() -> NodeInfo:
    held = {"cpu": "4", "memory": "8Gi", GPU: "4", "pods": "10"}
    found = {"metadata": {"name": "n"}, "status": {"allocatable": held}}
    return NodeInfo.of_view(msgspec.convert(found, NodeView))


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Strategy(LEAST), (75 + 50) // 2),
        (Strategy(MOST), (25 + 50) // 2),
        (Strategy(MOST, (WeightedResource("cpu", 3), WeightedResource("memory"))), (3 * 25 + 50) // 4),
        (Strategy(RATIO, BASIC, UP), 38),
        (Strategy(RATIO, BASIC, (ShapePoint(0, 10), ShapePoint(50, 0))), 50),
        (Strategy(MOST, (WeightedResource(GPU),)), 0),
        (Strategy(LEAST, (WeightedResource("cpu"), WeightedResource(GPU))), 75),
    ],
)
def test_a_strategy_scores_the_use_of_resources(node: NodeInfo, strategy: Strategy, expected: int) -> None:
    assert fit_scores(pod(cpu="1", memory="4Gi"), [node], strategy) == [expected]


def test_balance_scores_the_improvement_by_the_pod(node: NodeInfo) -> None:
    even, uneven = pod(cpu="2", memory="4Gi"), pod(cpu="4", memory="1Ki")
    assert balance_scores(even, [node], BASIC) == [75]
    assert balance_scores(uneven, [node], BASIC) == [50 + (50 + 50 - 100) // 2]
    node.add(uneven)
    assert balance_scores(pod(memory="8Gi", cpu="1m"), [node], BASIC) == [50 + (50 + 100 - 50) // 2]
    assert balance_scores(pod(), [node], BASIC) is None
