"""Tests of the graph of owner references in DOT, at `/debug/controllers/garbage-collector-controller/graph`."""

from __future__ import annotations

import pytest

from ctrlmgr.controllers.garbage_collector import DESCRIPTOR
from ctrlmgr.manager.debug_page import Debuggable, DebugPage
from ctrlmgr.server.pages.controller_debug import controller_debug_pages
from ctrlmgr.server.workers import Workers
from tests.controllers.garbage_collector.cluster import Cluster

ABSENT = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "0-absent"}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def graph(cluster: Cluster, *uids: str) -> str:
    reconciler = cluster.controller.reconciler
    assert isinstance(reconciler, Debuggable)
    cluster.hear()
    page: DebugPage = reconciler.debug_page("graph", {"uid": uids} if uids else {})
    assert page.media_type == "text/vnd.graphviz"
    return page.body


def vertices(dot: str) -> list[str]:
    return [line.strip()[len('name="') : -1] for line in dot.splitlines() if line.startswith("    name=")]


def edges(dot: str) -> int:
    return dot.count(" -> ")


def test_an_empty_graph_has_no_vertices(cluster: Cluster) -> None:
    cluster.create("a/alone")
    assert graph(cluster) == "strict digraph full {\n}\n"


def test_the_graph_has_owners_dependents_and_their_edges(cluster: Cluster) -> None:
    owner = cluster.create("a/owner")
    child = cluster.create("a/child", owner)
    dot = graph(cluster)
    assert sorted(vertices(dot)) == ["child", "owner"]
    assert f'  "{child["uid"]}" -> "{owner["uid"]}";\n' in dot
    uid = owner["uid"]
    assert (
        f'  "{uid}" [\n'
        f'    label="uid={uid}\\nnamespace=a\\nConfigMap.v1/owner\\n"\n'
        '    group=""\n    version="v1"\n    kind="ConfigMap"\n    namespace="a"\n    name="owner"\n'
        f'    uid="{uid}"\n    missing="false"\n    beingDeleted="false"\n    deletingDependents="false"\n'
        '    virtual="false"\n  ];\n'
    ) in dot
    assert dot.startswith("strict digraph full {\n  // Node definitions.\n")
    assert dot.index("// Edge definitions.") > dot.rindex("];")


def test_an_owner_that_does_not_exist_is_missing(cluster: Cluster) -> None:
    cluster.create("a/orphan", ABSENT)
    cluster.create("a/sibling", ABSENT)
    dot = graph(cluster)
    assert vertices(dot)[0] == "gone", "vertices are sorted by uid"
    assert 'label="uid=0-absent\\nnamespace=\\nConfigMap.v1/gone\\nmissingFromGraph\\n"' in dot
    assert (dot.count('missing="true"'), edges(dot)) == (1, 2)


def test_an_owner_in_foreground_deletion_is_marked(cluster: Cluster) -> None:
    owner = cluster.create("a/owner")
    cluster.create("a/child", {**owner, "blockOwnerDeletion": True}, metadata={"finalizers": ["example.com/wait"]})
    cluster.delete("a/owner", "Foreground")
    cluster.settle()
    dot = graph(cluster)
    assert 'ConfigMap.v1/owner\\nbeingDeleted,deletingDependents\\n"' in dot
    assert 'beingDeleted="true"\n    deletingDependents="true"' in dot


def test_a_uid_selects_the_connected_objects(cluster: Cluster) -> None:
    owner = cluster.create("a/owner")
    child = cluster.create("a/child", owner, ABSENT)
    cluster.create("a/grandchild", child)
    cluster.create("a/other-child-of-the-absent", ABSENT)
    other = cluster.create("b/owner-of-another")
    cluster.create("b/child-of-another", other)
    assert sorted(vertices(graph(cluster, child["uid"]))) == ["child", "gone", "grandchild", "owner"]
    both = graph(cluster, owner["uid"], other["uid"])
    assert sorted(vertices(both)) == ["child", "child-of-another", "gone", "grandchild", "owner", "owner-of-another"]
    assert graph(cluster, "unknown") == "strict digraph full {\n}\n"


def test_the_page_has_the_names_and_aliases_of_its_controller(cluster: Cluster) -> None:
    workers = Workers(1)
    pages = controller_debug_pages([DESCRIPTOR], [cluster.controller], workers)
    assert sorted(pages) == [
        "/debug/controllers/garbage-collector-controller/graph",
        "/debug/controllers/garbagecollector/graph",
    ]
    assert controller_debug_pages([DESCRIPTOR], [], workers) == {}
