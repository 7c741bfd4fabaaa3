"""Tests of printed trees of causes: similar causes share a line, and a cause that was printed before is printed without
its own causes.
"""

from __future__ import annotations

import click
import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.cli.output import trees
from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection.causes import Node, Run
from ctrlmgr.inspection.historical_state import Author, Change

KUBELET = Author("system:node:n", "kubelet", 0, 0, "", "", 0)
RUN = Run(1, "endpoints-controller", "shop/web", 1, 0, 1000, "ok", "")


def pod(name: str, ready: str, at: str = "2026-01-01T00:00:00Z") -> Object:
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": at}]
    metadata = {"name": name, "namespace": "shop", "uid": name}
    return Object.from_dict(
        {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "status": {"conditions": conditions}}
    )


def flip(number: int, ready: str = "False", author: Author = KUBELET) -> Node:
    """Return the event in which the pod with this number became ready or became unready."""
    name, before = f"web-{number}", "False" if ready == "True" else "True"
    new = pod(name, ready, f"2026-01-01T00:01:{number:02}Z").at(100 + number)
    change = Change(100 + number, EventType.MODIFIED, 0, author, new, pod(name, before))
    return Node(100 + number, change, None, ())


def endpoints(*causes: Node, revision: int = 200) -> Node:
    fields = {"kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": "web", "namespace": "shop", "uid": "e"}}
    obj = Object.from_dict(fields).at(revision)
    author = Author(
        "system:serviceaccount:kube-system:endpoint-controller", "ctrlmgr", 1, 1, RUN.controller, RUN.key, 1
    )
    return Node(revision, Change(revision, EventType.ADDED, 0, author, obj, None), RUN, causes)


def drawn(node: Node, *, whole: bool = False) -> list[str]:
    return [click.unstyle(line) for line in trees.causes(node, whole=whole)]


def test_equal_branches_are_printed_as_one() -> None:
    lines = drawn(endpoints(*map(flip, range(1, 10))))
    assert lines[2].startswith("   └─ 101  9 pods in shop: web-1, web-2 … +7  MODIFIED  ")
    assert [line.strip() for line in lines[3:]] == [
        '~ status.conditions[type=Ready].status: "True" → "False"',
        '~ status.conditions[type=Ready].lastTransitionTime: "2026-01-01T00:00:00Z" → "2026-01-01T00:01:01Z"',
    ]


@pytest.mark.parametrize("other", [flip(2, "True"), flip(2, author=Author("admin", "kubectl", 0, 0, "", "", 0))])
def test_different_branches_are_printed_separately(other: Node) -> None:
    assert sum("pods shop/web-" in line for line in drawn(endpoints(flip(1), other, flip(3)))) == 1
    assert sum("2 pods in shop: web-1, web-3  " in line for line in drawn(endpoints(flip(1), other, flip(3)))) == 1


def test_the_whole_tree_contains_each_branch() -> None:
    lines = drawn(endpoints(*map(flip, range(1, 10))), whole=True)
    assert sum("pods shop/web-" in line for line in lines) == 9


def test_a_repeated_node_is_printed_without_its_changes() -> None:
    before = endpoints(flip(1), revision=150)
    lines = drawn(endpoints(before, flip(1)))
    (again,) = [line for line in lines if "(see above)" in line]
    assert again.startswith("   └─ 101  pods shop/web-1  MODIFIED")
    assert sum("Ready].status" in line for line in lines) == 1
    assert sum("Ready].status" in line for line in drawn(endpoints(before, flip(1)), whole=True)) == 2
