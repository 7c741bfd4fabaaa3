"""Gives controllers in tests the permissions of Kubernetes: each controller has only the permissions of its role."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from ctrlmgr.api.object import Object
from ctrlmgr.authentication.user import User
from ctrlmgr.authentication.user_names import ServiceAccountName
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import Union, Verdict
from ctrlmgr.authorization.bootstrap import default_bindings as declared
from ctrlmgr.authorization.bootstrap.declaring import Binding, Role, service_account
from ctrlmgr.authorization.bootstrap.gated_roles import cluster_role_bindings, cluster_roles, node_rules
from ctrlmgr.authorization.node.node_authorizer import NodeAuthorizer
from ctrlmgr.authorization.node.node_graph import NodeGraph
from ctrlmgr.authorization.rbac.rbac_authorizer import RbacAuthorizer
from ctrlmgr.authorization.rbac.rule_resolver import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    RbacIndex,
)
from ctrlmgr.client.controller_rights import UserRights
from ctrlmgr.controllers import registry
from ctrlmgr.engine.operations import Target


def account_of(controller: str) -> User:
    """Return the user of a controller; `name` is the name of the controller or of its ServiceAccount."""
    known = registry.by_name().get(controller)
    return known.as_user if known is not None else ServiceAccountName("kube-system", controller).user


def rights_of(user: User) -> UserRights:
    """Return the permissions of a user in a new cluster."""
    return UserRights(user, RbacAuthorizer(_index()).authorize)


def node_rights(graph: NodeGraph) -> Callable[[User], UserRights]:
    """Return an authorizer that decides about requests of kubelets by the objects in `graph`."""
    authorizer = Union([NodeAuthorizer(graph, node_rules(lambda gate: True)), RbacAuthorizer(_index())])

    def decide(user: User, asked: Attributes) -> Verdict:
        verdict = authorizer.authorize(user, asked)
        assert verdict is not None
        return verdict

    return lambda user: UserRights(user, decide, generation=lambda: None)


class NamedRights:
    """An authorizer with the permissions of one controller; `named` is called at each request and returns the
    controller's name.
    """

    def __init__(self, named: Callable[[], str]) -> None:
        self._named = named

    def check(self, verb: str, target: Target) -> None:
        if self._named() in registry.by_name():  # the other names are parts of the API server
            rights_of(account_of(self._named())).check(verb, target)


@cache
def _index() -> RbacIndex:
    index = RbacIndex()
    own = [each for each in registry.ALL if each.rules]
    named = [(each, declared.controller_role(each.service_account)) for each in own]
    every: Sequence[tuple[object, Sequence[Role | Binding]]] = (
        (CLUSTER_ROLES, (*cluster_roles(lambda gate: True), *(Role(name, *each.rules) for each, name in named))),
        (ROLES, declared.ROLES),
        (
            CLUSTER_ROLE_BINDINGS,
            (
                *cluster_role_bindings(lambda gate: True),
                *(Binding(name, service_account(each.service_account)) for each, name in named),
            ),
        ),
        (ROLE_BINDINGS, declared.ROLE_BINDINGS),
    )
    for _, objects in every:
        made = [Object.from_dict(each.fields) for each in objects]
        index.reset(made[0].resource, made)
    return index
