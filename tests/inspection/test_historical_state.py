"""Tests of earlier states, and of the causes and effects of changes, on both types of database."""

from __future__ import annotations

import random

import pytest

from ctrlmgr.api.resource import ENDPOINTS, PODS, Key, Resource
from ctrlmgr.errors import Expired, NotFound
from ctrlmgr.eventlog import Cause, EventType, Proposal, open_log
from ctrlmgr.inspection import causes, historical_state, resource_lookup
from ctrlmgr.inspection.causes import Node
from ctrlmgr.inspection.database import Database, open_database
from ctrlmgr.testing import FakeClock
from tests.inspection import story

WEB, WEB_0 = Key("shop", "web"), Key("shop", "web-0")


def compact(url: str, before: int, resource: Resource | None = None) -> None:
    log = open_log(url, clock=FakeClock(story.START), random=random.Random(2))
    log.compact(before, resource=resource)
    log.close()


@pytest.mark.parametrize(
    ("at", "expected"),
    [(None, [("web-1", 10)]), (12, [("web-0", 5), ("web-1", 10)]), (4, [("web-0", 4)]), (3, [])],
)
def test_objects_are_returned_as_of_the_revision(
    database: Database, at: int | None, expected: list[tuple[str, int]]
) -> None:
    found = historical_state.objects(database, PODS, namespace="shop", at=at)
    assert [(obj.name, obj.revision) for obj in found] == expected
    assert historical_state.objects(database, PODS, namespace="elsewhere", at=at) == []


def test_an_object_is_returned_with_its_revision(database: Database) -> None:
    [pod] = historical_state.objects(database, PODS, namespace="shop", name="web-0", at=9)
    assert pod.to_dict()["metadata"]["resourceVersion"] == "5"


def test_a_compacted_state_is_expired(past_url: str) -> None:
    compact(past_url, 13)
    with open_database(past_url) as database:
        with pytest.raises(Expired):
            historical_state.objects(database, PODS, at=5)
        with pytest.raises(Expired):
            historical_state.between(database, 5, 14)
        assert [obj.name for obj in historical_state.objects(database, PODS, at=13)] == ["web-1"]


def test_a_history_contains_every_change_with_the_previous_object(database: Database) -> None:
    changes = historical_state.history(database, PODS, WEB_0, until=story.HEAD)
    assert [(change.revision, change.type.name) for change in changes] == [
        (4, "ADDED"),
        (5, "MODIFIED"),
        (13, "DELETED"),
    ]
    assert [change.before and change.before.revision for change in changes] == [None, 4, 5]
    assert [change.author.actor for change in changes] == ["system:node:node-a", "system:node:node-a", "alice"]


def test_a_history_ends_at_the_requested_revision(database: Database) -> None:
    assert [change.revision for change in historical_state.history(database, PODS, WEB_0, until=12)] == [4, 5]
    assert historical_state.history(database, PODS, Key("shop", "none"), until=12) == []


def test_a_history_without_its_beginning_is_marked(past_url: str) -> None:
    compact(past_url, 12)
    with open_database(past_url) as database:
        first, *_ = historical_state.history(database, ENDPOINTS, WEB, until=story.HEAD)
    assert (first.revision, first.type.name, first.before) == (12, "MODIFIED", None)


def test_a_comparison_of_two_revisions_lists_differences(database: Database) -> None:
    found = historical_state.between(database, 5, 15)
    sides = {
        str(pair.resource).split(".")[0] + "/" + pair.key.name: (
            pair.before and pair.before.revision,
            pair.after and pair.after.revision,
        )
        for pair in found
    }
    assert sides == {
        "endpoints/web": (None, 14),
        "endpointslices/web-x": (None, 15),
        "leases/kube-controller-manager": (None, 11),
        "nodeports/30080": (None, 6),
        "pods/web-0": (5, None),
        "pods/web-1": (None, 10),
    }


def test_reverted_changes_are_not_listed(database: Database) -> None:
    assert historical_state.between(database, 5, 16, resource=Resource("internal.ctrlmgr.io", "nodeports")) == []


def test_only_a_separately_compacted_resource_is_omitted(past_url: str) -> None:
    compact(past_url, 13, PODS)
    with open_database(past_url) as database:
        found = historical_state.between(database, 5, 15)
        assert {pair.key.name for pair in found} == {"web", "web-x", "30080", "kube-controller-manager"}
        with pytest.raises(Expired):
            historical_state.between(database, 5, 15, resource=PODS)


def test_a_comparison_can_be_limited_to_one_object(database: Database) -> None:
    [pair] = historical_state.between(database, 4, 13, resource=PODS, namespace="shop", name="web-0")
    assert (pair.key, pair.after) == (WEB_0, None)


# Causes.


def shape(node: Node) -> object:
    """Return the revisions of all nodes in a tree of causes."""
    return (node.revision, [shape(each) for each in node.links]) if node.links else node.revision


def test_why_lists_every_change_that_the_reconcile_handled(database: Database) -> None:
    tree = causes.why(database, 8)
    assert shape(tree) == (8, [2, 4, 5])
    assert tree.run is not None
    assert (tree.run.controller, tree.run.key, tree.run.outcome) == ("endpoint-controller", "shop/web", "ok")
    assert causes.count(tree) == 4


def test_why_continues_through_writes_of_controllers(database: Database) -> None:
    assert shape(causes.why(database, 14)) == (14, [(12, [10]), 13])


def test_a_tree_is_truncated_at_the_requested_depth_and_marked(database: Database) -> None:
    tree = causes.why(database, 14, depth=1)
    assert shape(tree) == (14, [12, 13])
    assert [each.cut for each in tree.links] == ["too deep", ""]


def test_effects_are_the_writes_caused_by_a_change(database: Database) -> None:
    assert shape(causes.effects(database, 10)) == (10, [(12, [14, 15])])
    assert shape(causes.effects(database, 16)) == 16


def test_a_node_already_in_the_tree_is_not_expanded_again(past_url: str) -> None:
    log = open_log(past_url, clock=FakeClock(story.START), random=random.Random(2))
    cause = Cause(74, "endpoint-controller", "shop/web", 1, story.START, (12, 14))
    change = Proposal(EventType.MODIFIED, story.endpoints([]), None)
    log.append([change], author=story.CONTROLLER, cause=cause)
    log.close()
    with open_database(past_url) as database:
        tree = causes.why(database, 17)
    assert shape(tree) == (17, [(12, [10]), (14, [12, 13])])
    assert [each.cut for each in tree.links[1].links] == ["repeated", ""]


def test_a_compacted_cause_is_still_named(past_url: str) -> None:
    compact(past_url, 13)
    with open_database(past_url) as database:
        tree = causes.why(database, 14)
    assert [(each.revision, each.change is None) for each in tree.links] == [(12, False), (13, True)]
    with open_database(past_url) as database, pytest.raises(NotFound, match="compacted"):
        causes.why(database, 8)


def test_why_begins_at_the_newest_event(database: Database) -> None:
    assert causes.newest_event(database, ENDPOINTS, WEB, until=story.HEAD) == 14
    assert causes.newest_event(database, ENDPOINTS, WEB, until=13) == 12
    with pytest.raises(NotFound, match="up to revision 7"):
        causes.newest_event(database, ENDPOINTS, WEB, until=7)


# Names.


@pytest.mark.parametrize(
    ("text", "resource", "singular"),
    [
        ("pods", "pods", "pod"),
        ("po", "pods", "pod"),
        ("Pod", "pods", "pod"),
        ("deploy", "deployments.apps", "deployment.apps"),
        ("deployments.v1.apps", "deployments.apps", "deployment.apps"),
        ("ev", "events", "event"),
        ("leases.coordination.k8s.io", "leases.coordination.k8s.io", "lease.coordination.k8s.io"),
        ("nodeports.internal.ctrlmgr.io", "nodeports.internal.ctrlmgr.io", "nodeports.internal.ctrlmgr.io"),
    ],
)
def test_a_resource_has_many_names(database: Database, text: str, resource: str, singular: str) -> None:
    named = resource_lookup.find(database, text)
    assert (str(named.resource), named.singular) == (resource, singular)


def test_resources_outside_the_log_have_no_name(database: Database) -> None:
    assert not resource_lookup.find(database, "nodeports.internal.ctrlmgr.io").namespaced
    with pytest.raises(NotFound, match="widgets"):
        resource_lookup.find(database, "widgets")
