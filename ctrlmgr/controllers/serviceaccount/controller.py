"""The ServiceAccount controller: keeps the ServiceAccount `default` in every active namespace.

Guarantees, all as in Kubernetes (`pkg/controller/serviceaccount/serviceaccounts_controller.go`): a deleted
ServiceAccount is created again, and an existing ServiceAccount is not changed. In a namespace that is being deleted, no
ServiceAccount is created.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import structlog

from ctrlmgr.api.core import Namespace
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Resource
from ctrlmgr.client import Client
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.serviceaccount import DESCRIPTOR
from ctrlmgr.errors import AlreadyExists, NamespaceTerminating, NotFound
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Watch

log = structlog.get_logger(__name__)

SERVICE_ACCOUNTS: Final = Resource("", "serviceaccounts")
NAME: Final = "default"

_NOT_NOW: Final = (AlreadyExists, NamespaceTerminating, NotFound)
"""Errors that the controller ignores: the ServiceAccount already exists, or the namespace is terminating or deleted."""


def namespace_is_active(namespace: Object | None) -> bool:
    """Return whether a namespace exists and is not being deleted."""
    return namespace is not None and not namespace.is_terminating and namespace.view(Namespace).status.phase == "Active"


def active_namespace(change: Change) -> Iterable[Key]:
    """Return the key of a namespace that was created or has changed, and is active."""
    return (change.new.key,) if change.new is not None and namespace_is_active(change.new) else ()


def desired_service_account(namespace: str) -> Object:
    """Return the ServiceAccount `default` for `namespace`."""
    head = {"kind": "ServiceAccount", "apiVersion": "v1"}
    return Object.from_dict({**head, "metadata": {"name": NAME, "namespace": namespace}})


class ServiceAccountReconciler:
    """Reconciles the ServiceAccount of a namespace, whose name is the key."""

    def __init__(self, namespaces: Lister, service_accounts: Lister) -> None:
        """Create a reconciler that reads objects from these caches."""
        self._namespaces = namespaces
        self._service_accounts = service_accounts

    def reconcile(self, key: Key, client: Client) -> None:
        """Create the ServiceAccount `default` if it is missing; raises the errors of `client` if the creation fails."""
        if not namespace_is_active(self._namespaces.get(key)):
            return
        if self._service_accounts.get(Key(key.name, NAME)) is not None:
            return
        try:
            client.create(desired_service_account(key.name))
        except _NOT_NOW as error:
            log.debug("creating service account failed", namespace=key.name, error=str(error))


def _namespace_of_deleted(change: Change) -> Iterable[Key]:
    is_ours = change.type is EventType.DELETED and change.old is not None and change.old.name == NAME
    return (Key("", change.old.namespace),) if is_ours and change.old is not None else ()


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    namespaces, accounts = context.informers.informer(NAMESPACES), context.informers.informer(SERVICE_ACCOUNTS)
    reconciler = ServiceAccountReconciler(namespaces.lister, accounts.lister)
    watches = [Watch(namespaces, active_namespace, after_sync=True), Watch(accounts, _namespace_of_deleted)]
    return assemble(DESCRIPTOR, context, reconciler, watches)
