"""Who may do what in a serving process: its authorizers, put together from the settings.

Guarantees:
- Members of `system:masters` may do everything, whatever the mode. All may read the page at `/ui`, which holds no data
  (that is below `/ui/api`).
- Roles, bindings and what belongs to which node are followed object by object, whatever the mode: they also say who may
  grant what.

Rules: Kubernetes' `pkg/kubeapiserver/authorizer/{config,reload}.go`, `pkg/kubeapiserver/options/authorization.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ctrlmgr.admission.guarded_rights import GuardedRights
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import (
    AlwaysAllow,
    AlwaysDeny,
    Authorizer,
    PrivilegedGroup,
    PublicPaths,
    Union,
    Verdict,
)
from ctrlmgr.authorization.bootstrap.component_roles import NODE_RULES
from ctrlmgr.authorization.node.authorizer import NodeAuthorizer
from ctrlmgr.authorization.node.graph import NodeGraph
from ctrlmgr.authorization.rbac.authorizer import RbacAuthorizer
from ctrlmgr.authorization.rbac.index import RbacIndex
from ctrlmgr.client.rights import UserRights
from ctrlmgr.engine.attributes import Admission
from ctrlmgr.engine.cacher import Cacher
from ctrlmgr.server import Backend
from ctrlmgr.settings import AuthorizationSettings

PAGE: Final = ("/ui", "/ui/*")
"""What all may read: the page, without its data."""
PAGE_DATA: Final = "/ui/api"


class ServingAuthorization:
    """See the module's docstring; `authorizer` is what it is for."""

    def __init__(self, settings: AuthorizationSettings) -> None:
        """Put together what the settings name."""
        self.index = RbacIndex()
        self._graph = NodeGraph()
        made = self._makers()
        self.authorizer: Authorizer = Union(
            [PrivilegedGroup(), PublicPaths(PAGE, but=PAGE_DATA), *(made[mode]() for mode in settings.mode)]
        )

    def follow(self, cacher: Cacher) -> None:
        """Decide on what a cacher has, as it comes to have it."""
        cacher.feed(self.index)
        cacher.feed(self._graph)

    def guard(self, admission: Admission) -> GuardedRights:
        """Return admission that also sees to it that users grant only what they have."""
        return GuardedRights(admission, self.authorizer, self.index)

    def rights(self, user: User, backend: Backend) -> UserRights:
        """Return what a controller of this process may do; it asks on a thread of its own."""
        return UserRights(
            user,
            self._decide,
            generation=lambda: self.index.generation,
            refresh=lambda: backend.wait_for(backend.catch_up()),
        )

    def _decide(self, user: User, attributes: Attributes) -> Verdict:
        verdict = self.authorizer.authorize(user, attributes)
        assert verdict is not None, "no authorizer has to ask another process"
        return verdict

    def _makers(self) -> Mapping[str, Callable[[], Authorizer]]:
        return {
            "Node": lambda: NodeAuthorizer(self._graph, NODE_RULES),
            "RBAC": lambda: RbacAuthorizer(self.index),
            "AlwaysAllow": AlwaysAllow,
            "AlwaysDeny": AlwaysDeny,
        }
