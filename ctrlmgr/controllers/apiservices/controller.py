"""Keeps an APIService for each served version of a group: a built-in group, or the group of a CustomResourceDefinition.

The controller runs in every process that serves the API, leader or not. Several processes can run the controller at
once, because each write is conditional on the revision that was read. APIServices of built-in groups are corrected once
after a process starts, APIServices of custom kinds after every change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from random import Random

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Key
from ctrlmgr.client import Client, EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.apiservices.decide import Step, next_step
from ctrlmgr.controllers.apiservices.desired_api_services import DesiredAPIService, builtin, custom, name_of
from ctrlmgr.engine.aggregated_groups import API_SERVICES
from ctrlmgr.engine.kind_registry import Group
from ctrlmgr.errors import AlreadyExists, Conflict, NotFound
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Change, Informers, Lister
from ctrlmgr.manager import Controller, Result, Watch
from ctrlmgr.manager.controller import own_key

CONTROLLER_NAME = "apiservice-registration-controller"

_SERVED = "served versions"


class _Version(msgspec.Struct):
    name: str
    served: bool = False


class _Spec(msgspec.Struct):
    group: str
    versions: list[_Version]


class _Definition(msgspec.Struct):
    """The fields of a CustomResourceDefinition that determine its APIServices."""

    spec: _Spec


_decode = msgspec.json.Decoder(_Definition).decode


class APIServiceReconciler:
    """Reconciles APIServices."""

    def __init__(self, services: Lister, definitions: Lister, desired: Mapping[str, DesiredAPIService]) -> None:
        """Create a reconciler that keeps the APIServices in `desired`, and those of the CRDs in `definitions`."""
        self._services = services
        self._definitions = definitions
        self._builtin = desired
        self._at_start: frozenset[str] | None = None
        self._done: set[str] = set()

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Create, update or delete one APIService so that it has the desired state."""
        if self._at_start is None:
            self._at_start = frozenset(each.name for each in self._services.list())
        desired, current = self._desired(key.name), self._services.get(key)
        fields = None if current is None else current.to_dict()
        step = next_step(fields, desired, done=key.name in self._done, at_start=key.name in self._at_start)
        # The APIService has changed or was deleted; the informer will report it.
        with suppress(AlreadyExists, Conflict, NotFound):
            self._do(step, key.name, current, desired, client)
        self._done.add(key.name)
        return None

    def _desired(self, name: str) -> DesiredAPIService | None:
        known = self._builtin.get(name)
        if known is None and self._definitions.by_index(_SERVED, name):
            return custom(name)
        return known

    def _do(
        self, step: Step, name: str, current: Object | None, desired: DesiredAPIService | None, client: Client
    ) -> None:
        if current is None:
            if step is Step.CREATE and desired is not None:
                client.create(Object.from_dict(desired.new(name)))
        elif step is Step.UPDATE and desired is not None:
            client.update(Object.from_dict({**current.to_dict(), "spec": dict(desired.spec)}).at(current.revision))
        elif step is Step.DELETE:
            client.delete(current)


def _served(definition: Object) -> Iterable[str]:
    """Return the names of the APIServices of a CustomResourceDefinition's served versions."""
    spec = _decode(definition.body).spec
    return [name_of(spec.group, version.name) for version in spec.versions if version.served]


def _concerned(change: Change) -> Iterable[Key]:
    """Return the keys of the APIServices that belong to a changed CustomResourceDefinition.

    The result contains the versions before and after the change.
    """
    names: dict[str, None] = {}
    for definition in (change.old, change.new):
        if definition is not None:
            spec = _decode(definition.body).spec
            names |= dict.fromkeys(name_of(spec.group, version.name) for version in spec.versions)
    return [Key("", name) for name in names]


def new_api_service_controller(
    informers: Informers, groups: Iterable[Group], client: EngineClient, log: EventLog, *, clock: Clock, random: Random
) -> Controller:
    """Build the controller; the caller must do this before the informers sync. `groups` are the built-in groups."""
    definitions, services = informers.informer(DEFINITIONS), informers.informer(API_SERVICES)
    definitions.add_index(_SERVED, _served)
    desired = builtin(groups)
    controller = Controller(
        CONTROLLER_NAME,
        APIServiceReconciler(services.lister, definitions.lister, desired),
        watches=[Watch(services, own_key), Watch(definitions, _concerned)],
        client=client,
        log=log,
        clock=clock,
        random=random,
    )
    for name in desired:
        controller.queue.add(Key("", name))
    return controller
