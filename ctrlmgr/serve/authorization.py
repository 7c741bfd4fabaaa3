"""Creates the authorizers of a serving process from the settings.

Guarantees:
- Members of the group `system:masters` may do everything in every authorization mode. All users may read the page at
  `/ui`, but not the page's data at paths below `/ui/api`.
- Roles, bindings and the objects of each node are indexed in every mode, because they also determine which users may
  grant permissions.

Source: Kubernetes' `pkg/kubeapiserver/authorizer/{config,reload}.go`, `pkg/kubeapiserver/options/authorization.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Final

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.abac import AbacAuthorizer, read_policies
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorization_configuration import WEBHOOK, ConfiguredAuthorizer, Webhook
from ctrlmgr.authorization.authorizer import (
    AlwaysAllow,
    AlwaysDeny,
    Authorizer,
    PrivilegedGroup,
    PublicPaths,
    Union,
    Verdict,
)
from ctrlmgr.authorization.bootstrap.gated_roles import node_rules
from ctrlmgr.authorization.node.node_authorizer import NodeAuthorizer
from ctrlmgr.authorization.node.node_graph import NodeGraph
from ctrlmgr.authorization.rbac.rbac_authorizer import RbacAuthorizer
from ctrlmgr.authorization.rbac.rule_resolver import RbacIndex
from ctrlmgr.client.controller_rights import UserRights
from ctrlmgr.clock import Clock
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.errors import SettingsError
from ctrlmgr.server import Backend
from ctrlmgr.server.authz.authorization_webhook import WebhookAuthorizer
from ctrlmgr.server.authz.configured_authorizers import ConfiguredAuthorizers
from ctrlmgr.settings import AuthorizationSettings
from ctrlmgr.settings.authorization_settings import ABAC

PAGE: Final = ("/ui", "/ui/*")
"""The paths that all users may read: the page at `/ui` without its data."""
PAGE_DATA: Final = "/ui/api"


class ServingAuthorization:
    """The authorizers of a serving process; `authorizer` combines all of them."""

    def __init__(self, settings: AuthorizationSettings, *, clock: Clock) -> None:
        """Create the authorizers that the settings name; raises `SettingsError` if one cannot be created."""
        self.index = RbacIndex()
        self._graph = NodeGraph(pod_certificates=is_on("PodCertificateRequest"))
        self._clock = clock
        self._policy_file = Path(settings.policy_file).expanduser()
        self._configured: ConfiguredAuthorizers | None = None
        self._named: Sequence[ConfiguredAuthorizer] = ()
        if settings.config:
            _refuse_more(settings)
            self._configured = ConfiguredAuthorizers(Path(settings.config).expanduser(), self._made)
        else:
            if bool(settings.webhook_config_file) != (WEBHOOK in settings.mode):
                raise SettingsError(
                    "authorization.webhook_config_file must be set if, and only if, authorization.mode contains Webhook"
                )
            if bool(settings.policy_file) != (ABAC in settings.mode):
                raise SettingsError(
                    "authorization.policy_file must be set if, and only if, authorization.mode contains ABAC"
                )
            self._named = _named(settings)
        self.authorizer: Authorizer = self._configured or self._made(self._named)

    @property
    def reloads(self) -> Sequence[Callable[[], object]]:
        """Functions that reload files if they have changed."""
        return [self._configured.reload] if self._configured is not None else []

    def follow(self, cacher: Cacher) -> None:
        """Index the objects of a cacher, now and when they change."""
        cacher.feed(self.index)
        cacher.feed(self._graph)

    def rights(self, user: User, backend: Backend) -> UserRights:
        """Return the permissions of a controller's user; the controller checks these permissions on its own thread."""

        def decide(user: User, attributes: Attributes) -> Verdict:
            verdict = self.authorizer.authorize(user, attributes)
            return verdict if verdict is not None else backend.wait_for(self.authorizer.ask(user, attributes))

        return UserRights(
            user,
            decide,
            generation=self._generation,
            refresh=lambda: backend.wait_for(backend.catch_up()),
        )

    def _generation(self) -> object | None:
        """Return a value that changes when the authorization rules change.

        The function returns None if a webhook decides requests, because a webhook's decisions may change at any time.
        """
        configured = self._configured.asked if self._configured is not None else self._named
        if any(each.webhook is not None for each in configured):
            return None
        return configured, self.index.generation

    def _made(self, configured: Sequence[ConfiguredAuthorizer]) -> Authorizer:
        """Return an authorizer that checks the fixed rules, and then calls the given authorizers.

        Raises `SettingsError` if an authorizer cannot be created.
        """
        return Union(
            [PrivilegedGroup(), PublicPaths(PAGE, but=PAGE_DATA), *(self._authorizer_of(each) for each in configured)]
        )

    def _authorizer_of(self, configured: ConfiguredAuthorizer) -> Authorizer:
        if configured.webhook is not None:
            return WebhookAuthorizer(configured.webhook, clock=self._clock)
        makers: Mapping[str, Callable[[], Authorizer]] = {
            "Node": lambda: NodeAuthorizer(self._graph, node_rules(is_on)),
            "RBAC": lambda: RbacAuthorizer(self.index),
            ABAC: lambda: AbacAuthorizer(read_policies(self._policy_file)),
            "AlwaysAllow": AlwaysAllow,
            "AlwaysDeny": AlwaysDeny,
        }
        return makers[configured.type]()


def _refuse_more(settings: AuthorizationSettings) -> None:
    """Raise `SettingsError` if other authorization settings are set in addition to a configuration file."""
    only = AuthorizationSettings(config=settings.config, end_watches=settings.end_watches)
    for each in fields(settings):
        if getattr(settings, each.name) != getattr(only, each.name):
            raise SettingsError(f"authorization.{each.name} cannot be set where authorization.config names a file")


def _named(settings: AuthorizationSettings) -> Sequence[ConfiguredAuthorizer]:
    webhook = Webhook(
        Path(settings.webhook_config_file).expanduser(),
        settings.webhook_version,
        settings.webhook_cache_authorized_ttl,
        settings.webhook_cache_unauthorized_ttl,
    )
    return [ConfiguredAuthorizer(mode, webhook if mode == WEBHOOK else None) for mode in settings.mode]
