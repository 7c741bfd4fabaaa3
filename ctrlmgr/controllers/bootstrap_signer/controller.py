"""The bootstrap signer: keeps the signatures of `kube-public/cluster-info`.

Guarantees: when the ConfigMap or a bootstrap token changes, the signatures are updated to the result of `decide`. The
signature of a token is removed when the token expires.

Source: `pkg/controller/bootstrap/bootstrapsigner.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.authentication.bootstrap_tokens import NAMESPACE as TOKENS
from ctrlmgr.authentication.bootstrap_tokens import expires_at, is_token, texts
from ctrlmgr.authentication.service_account_claims import SECRETS
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.bootstrap_signer import DESCRIPTOR
from ctrlmgr.controllers.bootstrap_signer.decide import NAME, NAMESPACE, desired_cluster_info, signing_tokens
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.errors import NotFound
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch

_CONFIG_MAPS: Final = Resource("", "configmaps")
_INFO: Final = Key(NAMESPACE, NAME)


class BootstrapSigner:
    """Reconciles the ConfigMap `cluster-info`."""

    def __init__(self, config_maps: Lister, secrets: Lister, *, clock: Clock) -> None:
        """Create a reconciler that reads the ConfigMap and the tokens from these caches."""
        self._config_maps = config_maps
        self._secrets = secrets
        self._clock = clock

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Update the signatures of `cluster-info` if they are not correct.

        Raises the errors of `client` if the write fails.
        """
        info = self._config_maps.get(key)
        if info is None:
            return None
        now = self._clock.now()
        secrets = [each for each in self._secrets.list(TOKENS) if is_token(each)]
        desired = desired_cluster_info(info, signing_tokens(secrets, now))
        if desired is not None:
            try:
                client.update(desired)
            except NotFound:
                return None  # The ConfigMap was deleted meanwhile.
        return _until_next_expiry(secrets, now)


def _until_next_expiry(secrets: Iterable[Object], now: int) -> Result | None:
    moments = [moment for each in secrets if (moment := expires_at(texts(each))) is not None and moment > now]
    return Result((min(moments) - now) / 1_000_000 + 1) if moments else None


def _info_key(change: Change) -> Iterable[Key]:
    return (_INFO,) if change.object.key == _INFO else ()


def _token_key(change: Change) -> Iterable[Key]:
    is_about_token = any(each is not None and is_token(each) for each in (change.old, change.new))
    return (_INFO,) if is_about_token else ()


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    config_maps, secrets = context.informers.informer(_CONFIG_MAPS), context.informers.informer(SECRETS)
    signer = BootstrapSigner(config_maps.lister, secrets.lister, clock=context.clock)
    watches = [Watch(config_maps, _info_key, after_sync=True), Watch(secrets, _token_key)]
    return assemble(DESCRIPTOR, context, signer, watches)
