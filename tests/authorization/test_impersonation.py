"""Tests of impersonation: the impersonated user in the headers, and the permissions that are necessary for
impersonation.
"""

from __future__ import annotations

import asyncio

import pytest

from ctrlmgr.authentication.user import ANONYMOUS, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, AlwaysAllow, Immediate, Verdict
from ctrlmgr.authorization.impersonation import Impersonated, impersonate, wanted_user
from ctrlmgr.errors import BadRequest, Forbidden

PODS = Attributes("list", "/api/v1/pods", "", "v1", "pods")
JOE = User("joe", "", ("system:authenticated",))


class Rights(Immediate):
    """An authorizer that allows some (verb, group, resource, subresource, namespace, name) tuples for all users."""

    def __init__(self, *rights: tuple[str, ...]) -> None:
        self.rights = rights
        self.asked: list[User] = []

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        self.asked.append(user)
        verb, _, group, _, resource, subresource, namespace, name = attributes[:8]
        return ALLOWED if (verb, group, resource, subresource, namespace, name) in self.rights else NO_OPINION


def act(wanted: User, rights: Immediate, *, user: User = JOE) -> Impersonated:
    return asyncio.run(impersonate(user, wanted, PODS, rights))


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        pytest.param([(b"impersonate-user", b"joe")], User("joe"), id="a user"),
        pytest.param(
            [(b"impersonate-user", b"joe"), (b"impersonate-group", b"a"), (b"impersonate-group", b"b")],
            User("joe", "", ("a", "b")),
            id="groups",
        ),
        pytest.param([(b"impersonate-user", "jürgen".encode())], User("jürgen"), id="UTF-8"),
        pytest.param([(b"impersonate-user", b""), (b"impersonate-foo", b"x")], None, id="nobody"),
        pytest.param(
            [
                (b"impersonate-user", b"joe"),
                (b"impersonate-uid", b"1"),
                (b"impersonate-extra-example.com%2frole", b"dev"),
                (b"impersonate-extra-bad%zz", b"x"),
                (b"impersonate-extra-scopes", b"a"),
                (b"impersonate-extra-scopes", b"b"),
            ],
            User("joe", "1", (), {"example.com/role": ("dev",), "bad%zz": ("x",), "scopes": ("a", "b")}),
            id="uid and extra",
        ),
    ],
)
def test_headers_select_the_impersonated_user(headers: list[tuple[bytes, bytes]], user: User | None) -> None:
    assert wanted_user(headers) == user


@pytest.mark.parametrize("header", [b"impersonate-uid", b"impersonate-group", b"impersonate-extra-x"])
def test_impersonated_groups_require_a_user_name(header: bytes) -> None:
    with pytest.raises(BadRequest, match="without impersonating a user name"):
        wanted_user([(header, b"x")])


@pytest.mark.parametrize(
    ("wanted", "groups"),
    [
        (User("bob"), ("system:authenticated",)),
        (User("bob", "", ("a",)), ("a", "system:authenticated")),
        (User("bob", "", ("system:unauthenticated",)), ("system:unauthenticated",)),
        (User(ANONYMOUS.name), ("system:unauthenticated",)),
        (
            User("system:serviceaccount:ns:sa"),
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
        ),
        (User("system:serviceaccount:Bad Name:sa"), ("system:authenticated",)),
    ],
)
def test_a_user_name_implies_groups(wanted: User, groups: tuple[str, ...]) -> None:
    assert act(wanted, AlwaysAllow()).user.groups == groups


def test_the_legacy_mode_requires_a_right_per_part() -> None:
    rights = [
        ("impersonate", "", "users", "", "", "bob"),
        ("impersonate", "authentication.k8s.io", "uids", "", "", "1"),
        ("impersonate", "", "groups", "", "", "g"),
        ("impersonate", "authentication.k8s.io", "userextras", "scopes", "", "view"),
    ]
    wanted = User("bob", "1", ("g",), {"scopes": ("view",)})
    assert act(wanted, Rights(*rights)) == Impersonated(wanted._replace(groups=("g", "system:authenticated")))
    for missing in rights:
        with pytest.raises(Forbidden, match='User "joe" cannot impersonate-on:user-info:list resource "pods"'):
            act(wanted, Rights(*(right for right in rights if right != missing)))


def test_a_constrained_mode_also_requires_the_right_to_the_verb() -> None:
    own = "authentication.k8s.io"
    to_act = ("impersonate-on:user-info:list", "", "pods", "", "", "")
    to_be = ("impersonate:user-info", own, "users", "", "", "bob")
    impersonated = act(User("bob"), Rights(to_act, to_be))
    assert (impersonated.user.name, impersonated.constraint) == ("bob", "impersonate:user-info")
    with pytest.raises(Forbidden, match=r'users\.authentication\.k8s\.io "bob" is forbidden: .*impersonate:user-info'):
        act(User("bob"), Rights(to_act))
    with pytest.raises(Forbidden, match="impersonate-on:user-info:list"):
        act(User("bob"), Rights(to_be))


def test_a_constrained_mode_never_grants_the_masters_group() -> None:
    own = "authentication.k8s.io"
    rights = [
        ("impersonate-on:user-info:list", "", "pods", "", "", ""),
        ("impersonate:user-info", own, "users", "", "", "bob"),
        ("impersonate:user-info", own, "groups", "", "", "system:masters"),
        ("impersonate:user-info", own, "groups", "", "", "*"),
    ]
    for groups in (("system:masters",), ("a", "b", "c", "system:masters")):
        with pytest.raises(Forbidden, match="impersonating the system:masters group is not allowed"):
            act(User("bob", "", groups), Rights(*rights))


def test_a_service_account_can_impersonate_only_its_own_node() -> None:
    rights = Rights(
        ("impersonate-on:associated-node:list", "", "pods", "", "", ""),
        ("impersonate:associated-node", "authentication.k8s.io", "nodes", "", "", "*"),
    )
    extra = {"authentication.kubernetes.io/node-name": ("node-a",), "other": ("x",)}
    agent = User("system:serviceaccount:ns:agent", "", (), extra)
    impersonated = act(User("system:node:node-a"), rights, user=agent)
    assert impersonated.user == User("system:node:node-a", "", ("system:nodes", "system:authenticated"))
    assert impersonated.constraint == "impersonate:associated-node"
    keys = ("authentication.kubernetes.io/node-name", "other")
    assert all(user.extra == {"authentication.kubernetes.io/associated-node-keys": keys} for user in rights.asked)
    for wanted, user in ((User("system:node:node-b"), agent), (User("system:node:node-a"), JOE)):
        with pytest.raises(Forbidden, match="impersonate-on:arbitrary-node:list"):
            act(wanted, rights, user=user)
