"""Tests of the sets of nodes on which a group may be placed, and of the errors for pods that already have nodes."""

from __future__ import annotations

import pytest

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.cluster_model import Cluster, NodeInfo
from ctrlmgr.scheduling.group_placements import ANYWHERE, PlacementError, placements


def cluster(**racks: str) -> Cluster:
    labels = {name: {"rack": rack} if rack else {} for name, rack in racks.items()}
    return Cluster(NodeInfo(name, each, [], unschedulable=False, allocatable={}) for name, each in labels.items())


CLUSTER = cluster(a1="a", b1="b", a2="a", bare="")


def test_each_value_of_the_label_is_a_placement() -> None:
    found = placements("rack", CLUSTER, {})
    assert [(each.name, sorted(each.nodes or ())) for each in found] == [("a", ["a1", "a2"]), ("b", ["b1"])]
    assert placements("", CLUSTER, {}) == [ANYWHERE]
    assert placements("row", CLUSTER, {}) == []


def test_placed_pods_limit_the_placements() -> None:
    (found,) = placements("rack", CLUSTER, {Key("x", "p"): "a2", Key("x", "q"): "a1"})
    assert found == ("a", frozenset({"a1", "a2"}))


@pytest.mark.parametrize(
    ("placed", "problem"),
    [
        ({"p": "a1", "q": "b1"}, "more than 1 domain found for pod group: a, b"),
        ({"p": "bare"}, "no topology domain found for pod x/p"),
        ({"p": "gone"}, 'getting node for pod x/p: nodeinfo not found for node name "gone"'),
    ],
)
def test_placed_pods_outside_of_one_placement_are_an_error(placed: dict[str, str], problem: str) -> None:
    with pytest.raises(PlacementError) as raised:
        placements("rack", CLUSTER, {Key("x", name): node for name, node in placed.items()})
    assert str(raised.value) == f"cannot determine domain for already scheduled pods: {problem}"
