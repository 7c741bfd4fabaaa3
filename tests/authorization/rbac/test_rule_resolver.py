"""Property tests of the RBAC index against a naive implementation, and against a new index."""

from __future__ import annotations

from random import Random

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes, Requirement
from ctrlmgr.authorization.authorizer import Decision
from ctrlmgr.authorization.rbac.rbac_authorizer import RbacAuthorizer
from ctrlmgr.authorization.rbac.rule_resolver import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, RbacIndex
from tests.authorization.rbac.naive import RbacObjects, put, some_object, some_question

QUESTIONS = 10_000


def fresh(world: RbacObjects) -> RbacIndex:
    index = RbacIndex()
    objects = [Object.from_dict(fields) for fields in world.objects.values()]
    for resource in index.resources:
        index.reset(resource, [obj for obj in objects if obj.resource == resource])
    return index


def changed(world: RbacObjects, index: RbacIndex, random: Random) -> None:
    """Change or remove an object, and pass the resulting event to the index."""
    fields = some_object(random)
    obj = put(world, fields)
    if random.random() < 0.3:
        del world.objects[fields["kind"], obj.namespace, obj.name]
        index.apply(obj.resource, obj.key, None)
    else:
        index.apply(obj.resource, obj.key, obj)


def test_ten_thousand_decisions_equal_a_naive_evaluator() -> None:
    random, world, index, allowed = Random(1), RbacObjects(), RbacIndex(), 0
    authorizer = RbacAuthorizer(index)
    for number in range(QUESTIONS):
        if number < 60 or number % 25 == 0:
            changed(world, index, random)
        user, asked = some_question(random)
        verdict = authorizer.authorize(user, asked)
        assert verdict.allows == world.allows(user, asked), (user, asked, verdict)
        allowed += verdict.allows
    assert QUESTIONS / 10 < allowed < QUESTIONS * 9 / 10, "the questions tell nothing apart"


@pytest.mark.parametrize("seed", range(5))
def test_an_incrementally_updated_resolver_equals_a_new_one(seed: int) -> None:
    random, world, index = Random(seed), RbacObjects(), RbacIndex()
    for _ in range(40):
        for _ in range(5):
            changed(world, index, random)
        again = fresh(world)
        for _ in range(10):
            user, asked = some_question(random)
            told = [grant[:2] for grant in index.grants(user, asked.namespace)]
            assert told == [grant[:2] for grant in again.grants(user, asked.namespace)]
            one, other = RbacAuthorizer(index), RbacAuthorizer(again)
            assert one.authorize(user, asked) == other.authorize(user, asked)


def test_a_missing_role_is_reported() -> None:
    index = RbacIndex()
    binding = {
        "kind": "ClusterRoleBinding",
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": "lost"},
        "roleRef": {"kind": "ClusterRole", "name": "ghost"},
        "subjects": [{"kind": "User", "name": "ann"}],
    }
    index.reset(CLUSTER_ROLE_BINDINGS, [Object.from_dict(binding)])
    verdict = RbacAuthorizer(index).authorize(User("ann"), Attributes("get", resource="pods"))
    assert verdict.decision is Decision.NO_OPINION
    assert verdict.reason == 'RBAC: clusterrole.rbac.authorization.k8s.io "ghost" not found'


@pytest.mark.parametrize(
    ("user", "asked"),
    [
        (User("ann", "", tuple(f"group-{number}" for number in range(10_000))), Attributes("get", resource="pods")),
        (User("ann"), Attributes("get", resource="pods", name="x" * 100_000)),
        (User("ann"), Attributes("get", "/" + "x" * 100_000, is_resource=False)),
        (User("x" * 100_000), Attributes("get", resource="pods")),
        (User("ann"), Attributes("list", labels=(Requirement("a", "In", ("x" * 100_000,)),))),
    ],
)
def test_large_requests_do_not_fill_memory(user: User, asked: Attributes) -> None:
    index = RbacIndex()
    authorizer = RbacAuthorizer(index)
    assert authorizer.authorize(user, asked).decision is Decision.NO_OPINION
    assert len(authorizer._found) == 0
    assert index._grants.size < 10_000


def test_a_role_is_found_among_many_groups() -> None:
    groups = tuple(f"group-{number}" for number in range(100_000))
    index = RbacIndex()
    role = {"metadata": {"name": "all"}, "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}
    reference = {"kind": "ClusterRole", "name": "all", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [{"kind": "Group", "name": "group-99999"}]}
    for resource, kind, fields in (
        (CLUSTER_ROLES, "ClusterRole", role),
        (CLUSTER_ROLE_BINDINGS, "ClusterRoleBinding", binding),
    ):
        obj = Object.from_dict({"kind": kind, "apiVersion": "rbac.authorization.k8s.io/v1", **fields})
        index.apply(resource, obj.key, obj)
    authorizer = RbacAuthorizer(index)
    assert authorizer.authorize(User("ann", "", groups), Attributes("get", resource="pods")).allows
    index.apply(CLUSTER_ROLE_BINDINGS, obj.key, None)
    assert not authorizer.authorize(User("ann", "", groups), Attributes("get", resource="pods")).allows
