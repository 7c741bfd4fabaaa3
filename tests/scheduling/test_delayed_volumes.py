from __future__ import annotations

import msgspec
import pytest

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.node_selection import NodeSelector
from ctrlmgr.scheduling.volume_binding import Candidate, Delayed, Topology, allotted

ONE, TWO = Key("a", "one"), Key("a", "two")
ZONE_A: dict[str, frozenset[str]] = {"zone": frozenset(["a"])}


def volume(name: str, zone: str = "") -> Candidate:
    """Return a PersistentVolume that is accessible from all nodes, or only from one zone."""
    if not zone:
        return Candidate(name)
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]
    return Candidate(name, msgspec.convert({"nodeSelectorTerms": terms}, NodeSelector))


def claim(
    *candidates: Candidate,
    key: Key = ONE,
    size: int = 1,
    selected: str = "",
    provisioned: bool = False,
    topologies: tuple[Topology, ...] = (),
) -> Delayed:
    return Delayed(key, size, candidates, selected, provisioned, topologies)


@pytest.mark.parametrize(
    ("delayed", "expected"),
    [
        pytest.param([claim(volume("v"))], {ONE: "v"}, id="there is one"),
        pytest.param([claim(volume("small"), volume("large"))], {ONE: "small"}, id="the first that will do"),
        pytest.param([claim(volume("far", "b"), volume("near", "a"))], {ONE: "near"}, id="the first within reach"),
        pytest.param([claim(volume("far", "b"))], None, id="out of reach"),
        pytest.param([claim()], None, id="there is none"),
        pytest.param([claim(provisioned=True)], {ONE: ""}, id="it is to be made"),
        pytest.param([claim(volume("far", "b"), provisioned=True)], {ONE: ""}, id="out of reach, it is to be made"),
        pytest.param([claim(provisioned=True, topologies=(ZONE_A,))], {ONE: ""}, id="it can be made here"),
        pytest.param(
            [claim(provisioned=True, topologies=({"zone": frozenset("b")},))], None, id="made elsewhere alone"
        ),
        pytest.param([claim(volume("v"), selected="here")], {ONE: ""}, id="under way for here"),
        pytest.param([claim(volume("v"), selected="there", provisioned=True)], None, id="under way for there"),
        pytest.param([claim(volume("v")), claim(volume("v"), key=TWO)], None, id="one for two"),
        pytest.param(
            [claim(volume("v"), volume("w"), size=9), claim(volume("v"), key=TWO)],
            {TWO: "v", ONE: "w"},
            id="the smaller claim chooses first",
        ),
    ],
)
def test_claims_of_a_pod_are_checked_for_its_node(delayed: list[Delayed], expected: dict[Key, str] | None) -> None:
    assert allotted(delayed, "here", {"zone": "a"}) == expected
