"""Tests of the grouping of similar nodes in a graph of causes, and of the descriptions of changes."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.inspection.change_summary import summary
from ctrlmgr.inspection.differences import differences
from ctrlmgr.ui.grouping import grouped

Node = dict[str, Any]


def event(revision: int, name: str = "", *, said: str = "", actor: str = "kubelet", **more: Any) -> Node:
    place = {"resource": "pods", "namespace": "shop", "name": name or f"web-{revision}", "type": "MODIFIED"}
    return {"id": f"e{revision}", "revision": revision, "actor": actor, "said": [said], **place, **more}


def run(number: int, controller: str, **more: Any) -> Node:
    return {"id": f"r{number}", "controller": controller, "key": str(number), "attempt": 1, "outcome": "ok", **more}


def drawn(nodes: list[Node], edges: list[tuple[str, str]], root: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return the number of events in each node of a graph, and the edges between the nodes."""
    found, lines = grouped(nodes, edges, root)
    return {each["id"]: max(1, len(each["alike"])) for each in found}, lines


def test_nine_pods_that_became_unready_are_one_node() -> None:
    pods = [event(number, said="Ready True→False") for number in range(1, 10)]
    edges = [(each["id"], "r1") for each in pods]
    nodes, lines = drawn([*pods, run(1, "endpoints-controller"), event(20, "web")], [*edges, ("r1", "e20")], "e20")
    assert nodes == {"e1": 9, "r1": 1, "e20": 1}
    assert lines == [("e1", "r1"), ("r1", "e20")]


def test_causes_of_grouped_objects_are_grouped() -> None:
    nodes: list[Node] = [run(100, "endpoints-controller"), event(200, "web")]
    edges = [("r100", "e200")]
    for number in range(1, 4):
        nodes += [event(number, said="bound"), run(number, "kubelets"), event(number + 10, said="Ready none→True")]
        edges += [(f"e{number}", f"r{number}"), (f"r{number}", f"e{number + 10}"), (f"e{number + 10}", "r100")]
    counts, lines = drawn(nodes, edges, "e200")
    assert counts == {"r100": 1, "e200": 1, "e1": 3, "r1": 3, "e11": 3}
    assert lines == [("e1", "r1"), ("e11", "r100"), ("r1", "e11"), ("r100", "e200")]


@pytest.mark.parametrize(
    "other",
    [
        event(2, said="Ready False→True"),
        event(2, said="Ready True→False", actor="alice"),
        event(2, said="Ready True→False", hidden=3),
        {"id": "e2", "revision": 2, "forbidden": True},
        {"id": "e2", "revision": 2, "compacted": True},
    ],
)
def test_different_changes_are_separate_nodes(other: Node) -> None:
    nodes = [event(1, said="Ready True→False"), other, run(1, "endpoints-controller"), event(9)]
    counts, _ = drawn(nodes, [("e1", "r1"), ("e2", "r1"), ("r1", "e9")], "e9")
    assert set(counts.values()) == {1}


def test_equal_changes_of_different_objects_are_separate_nodes() -> None:
    nodes = [event(1), event(2), run(1, "one"), run(2, "another"), event(9)]
    edges = [("e1", "r1"), ("e2", "r2"), ("r1", "e9"), ("r2", "e9")]
    assert set(drawn(nodes, edges, "e9")[0].values()) == {1}


def status(ready: str, **more: Any) -> Any:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"status": {**more, "conditions": [condition]}}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (status("True"), status("False"), ["Ready True→False"]),
        ({"status": {}}, status("True", phase="Running"), ["Ready none→True", "phase none→Running"]),
        ({"spec": {"replicas": 3}}, {"spec": {"replicas": 2}}, ["replicas 3→2"]),
        ({"spec": {}}, {"spec": {"nodeName": "node-1"}}, ["bound to node-1"]),
        ({"metadata": {}}, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, ["deletion requested"]),
        ({"addresses": [{"ip": "10.0.0.7"}]}, {"addresses": [{"ip": "10.0.0.8"}]}, ["+10.0.0.8", "−10.0.0.7"]),
        ({"status": {"observedGeneration": 1}}, {"status": {"observedGeneration": 2}}, []),
        ({"spec": {"text": "x" * 30}}, {"spec": {"text": "y" * 30}}, []),
    ],
)
def test_a_change_is_described_in_words(before: Any, after: Any, words: list[str]) -> None:
    assert summary(differences(before, after)) == words
