"""Keeps the ConfigMap `kube-system/extension-apiserver-authentication` in every serving process.

Guarantees: the ConfigMap exists soon after the process starts to serve. The ConfigMap is corrected within a minute
after a client changes it or after a certificate authority's file changes.

Source: `pkg/controlplane/controller/clusterauthenticationtrust/cluster_authentication_trust_controller.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.client import Client, EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.cluster_authentication.decide import NAME, NAMESPACE, Current, desired_config_map
from ctrlmgr.errors import NotFound
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Change, Informers, Lister
from ctrlmgr.manager import Controller, Result, Watch

CONTROLLER_NAME: Final = "cluster-authentication-info"

_CONFIG_MAPS: Final = Resource("", "configmaps")
_KEY: Final = Key(NAMESPACE, NAME)
_EVERY: Final = 60.0
_SOON: Final = 1.0


class ClusterAuthenticationPublisher:
    """Reconciles the ConfigMap `extension-apiserver-authentication`."""

    def __init__(self, config_maps: Lister, own: Current, *, clock: Clock) -> None:
        """Create a reconciler that publishes the client authentication settings which the function `own` returns."""
        self._config_maps = config_maps
        self._own = own
        self._clock = clock

    def on_start(self) -> Iterable[Key]:
        """Return the key of the ConfigMap."""
        return [_KEY]

    def reconcile(self, key: Key, client: Client) -> Result:
        """Create or correct the ConfigMap; raises the errors of `client` if the write fails."""
        current = self._config_maps.get(key)
        desired = desired_config_map(self._own(), current, self._clock.now() / 1_000_000)
        if desired is None:
            return Result(_EVERY)
        try:
            if current is None:
                client.create(desired)
            else:
                client.update(desired)
        except NotFound:  # At the first start, the ConfigMap's namespace does not exist yet.
            return Result(_SOON)
        return Result(_EVERY)


def _is_it(change: Change) -> Iterable[Key]:
    return (_KEY,) if change.object.key == _KEY else ()


def new_cluster_authentication_publisher(
    informers: Informers, client: EngineClient, event_log: EventLog, *, own: Current, clock: Clock, random: Random
) -> Controller:
    """Build the controller; the caller must do this before `informers` sync."""
    config_maps = informers.informer(_CONFIG_MAPS)
    return Controller(
        CONTROLLER_NAME,
        ClusterAuthenticationPublisher(config_maps.lister, own, clock=clock),
        watches=[Watch(config_maps, _is_it)],
        client=client,
        log=event_log,
        clock=clock,
        random=random,
    )
