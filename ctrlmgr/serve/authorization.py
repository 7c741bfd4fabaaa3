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
from pathlib import Path
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
from ctrlmgr.clock import Clock
from ctrlmgr.engine.attributes import Admission
from ctrlmgr.engine.cacher import Cacher
from ctrlmgr.errors import SettingsError
from ctrlmgr.server import Backend
from ctrlmgr.server.authz.webhook import Webhook, WebhookAuthorizer
from ctrlmgr.settings import AuthorizationSettings

PAGE: Final = ("/ui", "/ui/*")
"""What all may read: the page, without its data."""
PAGE_DATA: Final = "/ui/api"


class ServingAuthorization:
    """See the module's docstring; `authorizer` is what it is for."""

    def __init__(self, settings: AuthorizationSettings, *, clock: Clock) -> None:
        """Put together what the settings name; raises `SettingsError`."""
        self.index = RbacIndex()
        self._graph = NodeGraph()
        self._asks = "Webhook" in settings.mode
        if bool(settings.webhook_config_file) != self._asks:
            raise SettingsError("authorization.webhook_config_file is for the mode Webhook, which needs it")
        made = self._makers(settings, clock)
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

        def decide(user: User, attributes: Attributes) -> Verdict:
            verdict = self.authorizer.authorize(user, attributes)
            return verdict if verdict is not None else backend.wait_for(self.authorizer.ask(user, attributes))

        return UserRights(
            user,
            decide,
            generation=lambda: None if self._asks else self.index.generation,
            refresh=lambda: backend.wait_for(backend.catch_up()),
        )

    def _makers(self, settings: AuthorizationSettings, clock: Clock) -> Mapping[str, Callable[[], Authorizer]]:
        return {
            "Node": lambda: NodeAuthorizer(self._graph, NODE_RULES),
            "RBAC": lambda: RbacAuthorizer(self.index),
            "Webhook": lambda: WebhookAuthorizer(_webhook(settings), clock=clock),
            "AlwaysAllow": AlwaysAllow,
            "AlwaysDeny": AlwaysDeny,
        }


def _webhook(settings: AuthorizationSettings) -> Webhook:
    return Webhook(
        Path(settings.webhook_config_file).expanduser(),
        settings.webhook_version,
        settings.webhook_cache_authorized_ttl,
        settings.webhook_cache_unauthorized_ttl,
    )
