"""The legacy ServiceAccount token cleaner: invalidates and deletes unused auto-generated tokens, once a day.

Guarantees: no token is invalidated until the use of tokens has been tracked for a whole period. The ConfigMap
`kube-system/kube-apiserver-legacy-service-account-token-tracking` contains the day when tracking started; the
controller creates the ConfigMap if it is missing.

Source: `pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go`,
`pkg/controlplane/controller/legacytokentracking/controller.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.authentication.legacy_claims import ACCOUNT_NAME
from ctrlmgr.authentication.service_account_claims import SECRETS, SERVICE_ACCOUNTS
from ctrlmgr.client import Client, EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.legacy_serviceaccount_token_cleaner import DESCRIPTOR, Options
from ctrlmgr.controllers.legacy_serviceaccount_token_cleaner.decide import (
    TokenAction,
    day,
    fate,
    invalidation,
    is_day,
    mounted_secrets,
)
from ctrlmgr.controllers.serviceaccount_token.controller import is_token_secret
from ctrlmgr.errors import Conflict, NotFound
from ctrlmgr.informer import Lister
from ctrlmgr.manager import Controller, Result

_CONFIG_MAPS: Final = Resource("", "configmaps")
_TRACKING: Final = Key("kube-system", "kube-apiserver-legacy-service-account-token-tracking")
_SINCE: Final = "since"
_EVERY: Final = 24 * 3600.0

log = structlog.get_logger(__name__)


class _ConfigMap(msgspec.Struct, frozen=True, gc=False):
    data: dict[str, str] | None = None


def desired_tracking(current: Object | None, now: int) -> Object | None:
    """Return the ConfigMap with the time when tracking started; None if the ConfigMap `current` is valid."""
    since = ((current.view(_ConfigMap).data or {}) if current is not None else {}).get(_SINCE, "")
    if is_day(since) and since <= day(now):
        return None
    head = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": _TRACKING.name, "namespace": "kube-system"}}
    return Object.from_dict({**(head if current is None else current.to_dict()), "data": {_SINCE: day(now)}})


class LegacyTokenCleaner:
    """Checks all legacy tokens once a day."""

    def __init__(
        self,
        config_maps: Lister,
        secrets: Lister,
        accounts: Lister,
        pods: Lister,
        period: float,
        *,
        apiserver: Client,
        clock: Clock,
    ) -> None:
        """Create a reconciler that invalidates and deletes tokens that were not used for `period` seconds.

        The reconciler writes the ConfigMap with the client `apiserver`, because the API server tracks the use of
        tokens.
        """
        self._apiserver = apiserver
        self._config_maps = config_maps
        self._secrets = secrets
        self._accounts = accounts
        self._pods = pods
        self._period = period
        self._clock = clock

    def on_start(self) -> Iterable[Key]:
        """Yield the only key of this controller, which stands for all tokens."""
        return [_TRACKING]

    def reconcile(self, key: Key, client: EngineClient) -> Result:
        """Invalidate or delete unused tokens; raises the errors of `client` if a write fails."""
        now, current = self._clock.now(), self._config_maps.get(key)
        if (desired := desired_tracking(current, now)) is not None:
            if current is None:
                self._apiserver.create(desired)
            else:
                self._apiserver.update(desired)
        elif self._has_been_tracked(current, now):
            self._clean(client, now)
        return Result(_EVERY)

    def _has_been_tracked(self, current: Object | None, now: int) -> bool:
        """Return whether the use of tokens has been tracked for a whole period."""
        since = (current.view(_ConfigMap).data or {})[_SINCE] if current is not None else day(now)
        return since <= day(now - round(self._period * 1_000_000))

    def _clean(self, client: EngineClient, now: int) -> None:
        mounted = mounted_secrets(self._pods.list())
        for secret in filter(is_token_secret, self._secrets.list()):
            account = self._accounts.get(Key(secret.namespace, secret.annotations[ACCOUNT_NAME]))
            decided = fate(secret, account, mounted, now=now, period=self._period)
            if decided is TokenAction.KEPT:
                continue
            try:
                if decided is TokenAction.INVALIDATED:
                    client.patch(secret, invalidation(secret, now))
                else:
                    client.delete(secret)
            except (Conflict, NotFound):
                continue  # The token has changed; the next round checks it again.
            log.info("unused token invalidated", secret=str(secret.key), fate=decided.value)


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    resources = (_CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, PODS)
    config_maps, secrets, accounts, pods = (context.informers.informer(each).lister for each in resources)
    period, apiserver = options.legacy_service_account_token_clean_up_period, context.apiserver_client()
    cleaner = LegacyTokenCleaner(config_maps, secrets, accounts, pods, period, apiserver=apiserver, clock=context.clock)
    return assemble(DESCRIPTOR, context, cleaner)
