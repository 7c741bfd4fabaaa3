"""Tests of the permissions of controllers: each controller has a role, and no permission that the
role does not grant.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.bootstrap import default_bindings as declared
from ctrlmgr.authorization.bootstrap.gated_roles import cluster_role_bindings, cluster_roles
from ctrlmgr.authorization.node.node_graph import NodeGraph
from ctrlmgr.authorization.rbac.rule_resolver import RbacIndex
from ctrlmgr.client.controller_rights import UserRights
from ctrlmgr.controllers import registry
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.engine.operations import Target
from ctrlmgr.errors import Forbidden
from tests.authorization.bootstrap.controllers import account_of, node_rights, rights_of
from tests.kinds.stage import find_kind

EVERY = (
    cluster_roles(lambda gate: True),
    declared.ROLES,
    cluster_role_bindings(lambda gate: True),
    declared.ROLE_BINDINGS,
)
PLACES = ("", "kube-system", "kube-public")


def new_cluster() -> RbacIndex:
    index = RbacIndex()
    for objects in EVERY:
        made = [Object.from_dict(each.fields) for each in objects]
        index.reset(made[0].resource, made)
    return index


@pytest.mark.parametrize("controller", registry.ALL, ids=lambda each: each.name)
def test_each_controller_has_a_role_without_administrator_rights(controller: ControllerDescriptor[Any]) -> None:
    user, index = controller.as_user, new_cluster()
    common = {grant.role for grant in index.grants(user._replace(name="no one"), "kube-system")}
    own = {grant.role for place in PLACES for grant in index.grants(user, place)} - common
    assert own or controller.rules, "it may do nothing"
    assert "system:masters" not in user.groups
    assert "cluster-admin" not in {role.name for role in own}


@pytest.mark.parametrize(
    ("controller", "verb", "path", "allowed"),
    [
        ("deployment-controller", "create", "apps/v1/replicasets", True),
        ("deployment-controller", "create", "v1/pods", False),
        ("deployment-controller", "list", "v1/secrets", False),
        ("endpoints-controller", "update", "v1/endpoints", True),
        ("endpoints-controller", "delete", "v1/pods", False),
        ("namespace-controller", "delete", "v1/secrets", True),
        ("namespace-controller", "create", "v1/secrets", False),
        ("garbage-collector-controller", "delete", "apps/v1/deployments", True),
        ("garbage-collector-controller", "create", "v1/configmaps", False),
        ("serviceaccount-token-controller", "create", "v1/secrets", True),
    ],
)
def test_a_controller_has_the_rights_of_its_role(controller: str, verb: str, path: str, allowed: bool) -> None:
    rights, target = rights_of(account_of(controller)), Target(find_kind(path), "shop", "")
    if allowed:
        rights.check(verb, target)
    else:
        with pytest.raises(Forbidden, match=f"cannot {verb} resource"):
            rights.check(verb, target)


def test_a_right_is_cached_until_roles_change() -> None:
    asked, generation = [], [1]
    allows = rights_of(account_of("namespace-controller"))
    assert isinstance(allows, UserRights)

    def decide(user: Any, attributes: Any) -> Any:
        asked.append(attributes)
        return allows._decide(user, attributes)

    user = account_of("namespace-controller")
    rights = UserRights(user, decide, generation=lambda: generation[0])
    target = Target(find_kind("v1/secrets"), "shop", "s")
    for name in ("a", "b", "c"):
        rights.check("delete", target._replace(name=name))
    assert len(asked) == 1
    generation[0] += 1
    rights.check("delete", target)
    assert len(asked) == 2


def test_node_impersonator_has_the_rights_of_the_node() -> None:
    rights = node_rights(NodeGraph())(User("system:node:n1", "", ("system:nodes",)))
    lease = Target(find_kind("coordination.k8s.io/v1/leases"), "kube-node-lease", "n1")
    rights.check("update", lease)
    with pytest.raises(Forbidden, match="can only access node lease with the same name as the requesting node"):
        rights.check("update", lease._replace(name="n2"))
    rights.check("update", Target(find_kind("v1/pods"), "shop", "p", "status"))
    with pytest.raises(Forbidden):
        rights.check("create", Target(find_kind("v1/secrets"), "shop", "s"))
