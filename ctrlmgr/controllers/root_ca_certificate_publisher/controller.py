"""The root CA certificate publisher: keeps a ConfigMap with this server's CA certificate in each active namespace.

Guarantees, all as in Kubernetes (`pkg/controller/certificates/rootcacertpublisher`): a deleted ConfigMap is created
again, and changed data is corrected. A missing annotation that describes the ConfigMap is added. In a namespace that is
being deleted, no ConfigMap `kube-root-ca.crt` is created.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Resource
from ctrlmgr.client import Client
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.root_ca_certificate_publisher import DESCRIPTOR
from ctrlmgr.controllers.serviceaccount.controller import active_namespace, namespace_is_active
from ctrlmgr.errors import NamespaceTerminating, NotFound
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Watch

log = structlog.get_logger(__name__)

CONFIG_MAPS: Final = Resource("", "configmaps")
NAME: Final = "kube-root-ca.crt"
DESCRIPTION: Final = "kubernetes.io/description"

_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class _ConfigMap(msgspec.Struct, frozen=True, gc=False):
    data: dict[str, str] | None = None


def desired_config_map(namespace: str, authority: str, current: Object | None) -> Object | None:
    """Return the ConfigMap to write, with the certificate `authority` (PEM); None if `current` is correct."""
    data = {"ca.crt": authority}
    if current is None:
        metadata = {"name": NAME, "namespace": namespace, "annotations": {DESCRIPTION: _DESCRIPTION}}
        return Object.from_dict({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data})
    if current.view(_ConfigMap).data == data and current.annotations.get(DESCRIPTION):
        return None
    described = current.with_metadata(annotations={**current.annotations, DESCRIPTION: _DESCRIPTION})
    return Object.from_dict({**described.to_dict(), "data": data})


class RootCAPublisher:
    """Reconciles the ConfigMap `kube-root-ca.crt` of a namespace, whose name is the key."""

    def __init__(self, namespaces: Lister, config_maps: Lister, authority: str) -> None:
        """Create a reconciler that publishes the CA certificate `authority` (PEM)."""
        self._namespaces = namespaces
        self._config_maps = config_maps
        self._authority = authority

    def reconcile(self, key: Key, client: Client) -> None:
        """Create or correct the ConfigMap; raises the errors of `client` if the write fails."""
        if not namespace_is_active(self._namespaces.get(key)):
            return
        current = self._config_maps.get(Key(key.name, NAME))
        desired = desired_config_map(key.name, self._authority, current)
        if desired is None:
            return
        try:
            if current is None:
                client.create(desired)
            else:
                client.update(desired)
        except (NamespaceTerminating, NotFound) as error:  # The namespace or the ConfigMap was deleted meanwhile.
            log.debug("publishing root CA failed", namespace=key.name, error=str(error))


def _namespace_of_changed(change: Change) -> Iterable[Key]:
    """Return the key of the namespace whose ConfigMap was changed or deleted.

    Creations are ignored, because only this controller creates the ConfigMap.
    """
    old = change.old
    return (
        (Key("", old.namespace),) if change.type is not EventType.ADDED and old is not None and old.name == NAME else ()
    )


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    namespaces, config_maps = context.informers.informer(NAMESPACES), context.informers.informer(CONFIG_MAPS)
    publisher = RootCAPublisher(namespaces.lister, config_maps.lister, context.root_ca)
    watches = [Watch(namespaces, active_namespace, after_sync=True), Watch(config_maps, _namespace_of_changed)]
    return assemble(DESCRIPTOR, context, publisher, watches)
