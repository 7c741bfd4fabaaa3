"""Tests of the difference of two lists of policy rules, and of the description of the difference in refusals."""

from __future__ import annotations

import pytest

from ctrlmgr.authorization.rbac.policy_rules import PolicyRule, compacted, covers

PODS = PolicyRule(("get", "list"), ("",), ("pods",))


@pytest.mark.parametrize(
    ("wanted", "lacking"),
    [
        ([PODS], ['{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}']),
        ([PODS, PODS], ['{APIGroups:[""], Resources:["pods"], Verbs:["get" "list" "get" "list"]}']),
        (
            [PolicyRule(("get", "get"), ("",), ("pods", "pods"))],
            ['{APIGroups:[""], Resources:["pods"], Verbs:["get" "get" "get" "get"]}'],
        ),
        (
            [PolicyRule(("get",), ("",), ("pods",), ("a", "b"))],
            [
                '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get"]}',
                '{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}',
            ],
        ),
        (
            [PolicyRule(("get", "put"), urls=("/a",))],
            ['{NonResourceURLs:["/a"], Verbs:["get"]}', '{NonResourceURLs:["/a"], Verbs:["put"]}'],
        ),
        ([PolicyRule(('a"b',), ("",), ("pods",))], ['{APIGroups:[""], Resources:["pods"], Verbs:["a\\"b"]}']),
    ],
)
def test_missing_rights_are_listed_like_kubernetes(wanted: list[PolicyRule], lacking: list[str]) -> None:
    assert [each.describe() for each in compacted(covers([], wanted))] == lacking
