"""Creates and corrects the default roles and bindings of every cluster, each time that a process starts to serve.

Guarantees:
- When the method `has_synced` returns True, all default roles and bindings exist with at least the permissions and
  subjects that Kubernetes gives them. Additions by users are kept; `authorization.bootstrap.reconciling` defines how
  differing roles and bindings are handled.
- All missing roles and bindings are created in one write, so that a new cluster has all of them immediately.
- The runnable retries until it succeeds, and the process is not ready before that.

Source: Kubernetes' `pkg/registry/rbac/rest/storage_rbac.go` (post-start hook `rbac/bootstrap-roles`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authorization.bootstrap import default_bindings as declared
from ctrlmgr.authorization.bootstrap.declaring import Binding, Role, service_account
from ctrlmgr.authorization.bootstrap.gated_roles import cluster_role_bindings, cluster_roles
from ctrlmgr.authorization.bootstrap.reconciling import Operation, Step, reconcile_binding, reconcile_role
from ctrlmgr.authorization.rbac.rule_resolver import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.errors import CtrlmgrError

log = structlog.get_logger(__name__)

_AGAIN: Final = 0.2
"""The number of seconds between retries; a retry is needed if the roles' namespaces do not exist yet."""
_PATIENT: Final = 25
"""The number of consecutive failures after which a warning is logged."""


class _DesiredRole(NamedTuple):
    """A default role or binding that must exist."""

    resource: Resource
    key: Key
    reconcile: Callable[[Unstructured | None], Step]


class BootstrapRoles:
    """A Runnable that creates and corrects the default roles and bindings, and ends after that."""

    name = "rbac/bootstrap-roles"

    def __init__(
        self, client: EngineClient, clock: Clock, controllers: Iterable[ControllerDescriptor[Any]] = ()
    ) -> None:
        """Create a runnable that writes through `client`, which must be allowed to grant any permission.

        Each descriptor in `controllers` that has `rules` adds a role to Kubernetes' roles.
        """
        own = [each for each in controllers if each.rules]
        self._roles = (*cluster_roles(is_on), *map(_role_of, own))
        self._bindings = (*cluster_role_bindings(is_on), *map(_binding_of, own))
        self._client = client
        self._clock = clock
        self._changed = threading.Condition()
        self._is_done = False

    def has_synced(self) -> bool:
        """Return whether the default roles and bindings are correct."""
        return self._is_done

    def run(self, stop: threading.Event) -> None:
        """Correct the default roles and bindings, with retries until `stop` is set."""
        failures = 0
        while not stop.is_set():
            try:
                self.reconcile()
            except CtrlmgrError as error:
                failures += 1
                if failures % _PATIENT == 0:
                    log.warning("reconciling default roles failed", error=str(error))
                stop.wait(_AGAIN)
            else:
                self._is_done = True
                return

    def reconcile(self) -> None:
        """Correct the default roles and bindings; raises an error if a read or write fails."""
        missing: list[Object] = []
        for resource, desired in self._by_resource():
            existing = {obj.key: obj for obj in self._client.list_all(resource)}
            for each in desired:
                found = existing.get(each.key)
                step = each.reconcile(found.to_dict() if found is not None else None)
                if step.operation is Operation.CREATE:
                    missing.append(Object.from_dict(step.object))
                elif found is not None:
                    self._put_right(found, step)
        if missing:
            self._client.create_all(missing)

    def _put_right(self, found: Object, step: Step) -> None:
        desired = Object.from_dict(step.object)
        if step.operation is Operation.UPDATE:
            self._client.update(desired.at(found.revision))
        elif step.operation is Operation.RECREATE:
            self._client.delete(found)
            self._client.create(desired)
        else:
            return
        log.info("reconciled a default role", object=f"{desired.resource} {desired.name}")

    def _by_resource(self) -> Iterator[tuple[Resource, Sequence[_DesiredRole]]]:
        """Yield the desired objects: roles before bindings."""
        for resource, roles in ((CLUSTER_ROLES, self._roles), (ROLES, declared.ROLES)):
            yield resource, [_role(resource, role) for role in roles]
        for resource, bindings in ((CLUSTER_ROLE_BINDINGS, self._bindings), (ROLE_BINDINGS, declared.ROLE_BINDINGS)):
            yield resource, [_binding(resource, binding) for binding in bindings]


def _role_of(controller: ControllerDescriptor[Any]) -> Role:
    return Role(declared.controller_role(controller.service_account), *controller.rules)


def _binding_of(controller: ControllerDescriptor[Any]) -> Binding:
    account = service_account(controller.service_account)
    return Binding(declared.controller_role(controller.service_account), account)


def _role(resource: Resource, role: Role) -> _DesiredRole:
    return _DesiredRole(resource, Key(role.namespace, role.name), lambda existing: reconcile_role(existing, role))


def _binding(resource: Resource, binding: Binding) -> _DesiredRole:
    key = Key(binding.namespace, binding.name)
    return _DesiredRole(resource, key, lambda existing: reconcile_binding(existing, binding))
