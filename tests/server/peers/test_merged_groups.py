"""Tests of the merge of several servers' API groups: the order of names, and the union of what they serve.

Source of the cases: apiserver `peer_aggregated_handler_test.go`, apimachinery `pkg/util/sort/sort_test.go`.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.server.peers.merged_groups import in_common_order, merged_groups, without_versions


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([], []),
        ([["a", "b", "c"], ["b", "c"]], ["a", "b", "c"]),
        ([["a", "c"], ["b", "c"]], ["a", "b", "c"]),
        ([["z", "a"], ["m", "a"]], ["m", "z", "a"]),
        ([["a", "b"], ["b", "a"]], ["a", "b"]),  # the first list that contains all names
        ([["b", "a", "c"], ["a", "b"]], ["b", "a", "c"]),
        ([["b", "a"], ["a", "c", "b"], ["d"]], ["a", "b", "c", "d"]),  # a contradiction: sorted
    ],
)
def test_the_order_of_each_list_is_kept(lists: list[list[str]], expected: list[str]) -> None:
    assert [*in_common_order(lists)] == expected


def group(name: str, **versions: list[dict[str, Any]]) -> dict[str, Any]:
    listed = [{"version": each, "resources": found, "freshness": "Current"} for each, found in versions.items()]
    return {"metadata": {"name": name}, "versions": listed}


def resource(name: str, verbs: str = "get", **parts: str) -> dict[str, Any]:
    subresources = [{"subresource": each, "verbs": [verb]} for each, verb in parts.items()]
    return {"resource": name, "verbs": [verbs], **({"subresources": subresources} if parts else {})}


APPS = group("apps", v1=[resource("deployments")])
BATCH = group("batch", v1=[resource("jobs")])


def test_without_peers_the_groups_are_unchanged() -> None:
    groups = [BATCH, APPS]
    assert merged_groups("own", groups, {}) is groups


def test_groups_of_peers_are_added() -> None:
    peers = {"peer": [APPS, BATCH]}
    assert merged_groups("own", [APPS], peers) == [APPS, BATCH]
    assert merged_groups("peer", [APPS, BATCH], {"own": [APPS]}) == [APPS, BATCH]


def test_versions_and_resources_of_a_common_group_are_added() -> None:
    other = group("batch", v1=[resource("cronjobs"), resource("jobs")], v1beta1=[resource("cronjobs")])
    [merged] = merged_groups("b", [BATCH], {"a": [other]})
    assert merged == other
    assert merged_groups("a", [other], {"b": [BATCH]}) == [merged]


def test_verbs_and_subresources_of_a_common_resource_are_added() -> None:
    ours = group("batch", v1=[resource("jobs", "list", status="get")])
    theirs = group("batch", v1=[resource("jobs", "create", scale="get")])
    [merged] = merged_groups("a", [ours], {"b": [theirs]})
    [job] = merged["versions"][0]["resources"]
    assert job["verbs"] == ["create", "list"]
    assert [each["subresource"] for each in job["subresources"]] == ["scale", "status"]


def test_excluded_versions_are_left_out() -> None:
    both = group("batch", v1=[resource("jobs")], v2=[resource("jobs")])
    assert without_versions([APPS, both], {("apps", "v1"), ("batch", "v1")}) == [group("batch", v2=[resource("jobs")])]
    assert without_versions([APPS], set()) == [APPS]
