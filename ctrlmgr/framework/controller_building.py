"""Builds the controllers of an app from their declarations, as for the built-in controllers.

Guarantees: an object is reconciled after a change of the object itself, of an object that it owns, or of an object that
a watch maps to it. If a mapping function of a watch raises an error, the error is logged and counted, and all other
mappings continue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, group_of
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, ControllerDescriptor, NoOptions
from ctrlmgr.controllers.workloads.controlled_pods import controller_of
from ctrlmgr.errors import SettingsError
from ctrlmgr.framework.app import App, AppController, Watch
from ctrlmgr.framework.cached_objects import Cache, read
from ctrlmgr.framework.class_declaration import Declaration
from ctrlmgr.framework.reconciler import AppReconciler
from ctrlmgr.informer import Change
from ctrlmgr.manager import Controller, own_key
from ctrlmgr.manager import Watch as KeyWatch

log = structlog.get_logger(__name__)

_EVERYTHING = (PolicyRule(("*",), ("*",), ("*",)),)
"""The RBAC rules that controllers of apps have in `serve`, unless the cluster's administrator restricts the apps'
roles.
"""


@dataclass(frozen=True, kw_only=True)
class AppDescriptor(ControllerDescriptor[NoOptions]):
    """The declaration of a controller of an app, from which `serve` and `run` build the controller."""

    controller: AppController[Any] = field(compare=False)

    def build(self, context: ControllerContext, options: NoOptions) -> Controller:
        """Build the controller; the caller must do this before the informers sync."""
        return build(self, context)


def descriptors(app: App) -> Iterator[AppDescriptor]:
    """Yield the declarations of an app's controllers."""
    for each in app.controllers:
        yield AppDescriptor(
            name=each.name,
            does=each.does,
            builder=each.where,
            options=NoOptions,
            watches=tuple(kind.resource for kind in each.kinds),
            owns=tuple(kind.resource for kind in each.owns),
            controller=each,
            rules=_EVERYTHING,
        )


def check_names(apps: Iterable[App], others: Iterable[ControllerDescriptor[Any]]) -> None:
    """Raise `SettingsError` if two controllers have the same name."""
    known = {each.name: each.builder for each in others}
    for app in apps:
        for each in app.controllers:
            if each.name in known:
                raise SettingsError(
                    f"two controllers are called {each.name}: {known[each.name]} and {each.where};"
                    " give one of them another name with name="
                )
            known[each.name] = each.where


Failed: TypeAlias = Callable[[str, Object, Exception], None]
"""A function that is called after a failed reconcile with the controller's name, the object and the exception."""


def build(descriptor: AppDescriptor, context: ControllerContext, *, failed: Failed | None = None) -> Controller:
    """Build a controller from its declaration.

    `failed` is called for each exception that the reconcile function raises.
    """
    controller = descriptor.controller
    informers = {kind.resource: context.informers.informer(kind.resource) for kind in controller.kinds}
    cache = Cache({resource: informer.lister for resource, informer in informers.items()}, controller.name)
    primary = controller.declaration
    mappings: list[tuple[Declaration, Callable[[Change], Iterable[Key]]]] = [(primary, own_key)]
    mappings += [(owned, _owner_of(primary)) for owned in controller.owns]
    mappings += [(watch.declaration, _contained(controller.name, watch, cache)) for watch in controller.watches]
    recorder = context.recorder(descriptor)
    return assemble(
        descriptor,
        context,
        AppReconciler(controller, cache, recorder, clock=context.clock, random=context.random, failed=failed),
        [KeyWatch(informers[kind.resource], to_keys) for kind, to_keys in mappings],
        workers=controller.workers,
        max_retries=controller.max_retries,
        kind=primary.kind,
    )


def _states(change: Change) -> Iterator[Object]:
    """Yield the previous and the new state of an object, except a state in which the object does not exist."""
    yield from (each for each in (change.old, change.new) if each is not None)


def _owner_of(primary: Declaration) -> Callable[[Change], Iterable[Key]]:
    def keys(change: Change) -> Iterator[Key]:
        found = set()
        for obj in _states(change):
            owner = controller_of(obj)
            if owner is not None and (group_of(owner.api_version), owner.kind) == (primary.group, primary.kind):
                found.add(Key(obj.namespace if primary.namespaced else "", owner.name))
        yield from sorted(found)

    return keys


def _contained(name: str, watch: Watch, cache: Cache) -> Callable[[Change], Iterable[Key]]:
    declaration = watch.declaration

    def keys(change: Change) -> list[Key]:
        try:
            found = {_key(target, obj) for obj in _states(change) for target in watch.to(read(declaration, obj), cache)}
        except Exception as error:  # This calls the user's code on the thread that notifies all controllers.
            log.error(
                "mapping failed", controller=name, kind=declaration.kind, object=str(change.object.key), exc_info=error
            )
            return []
        return sorted(found)

    return keys


def _key(target: Any, changed: Object) -> Key:
    if isinstance(target, str):
        return Key(changed.namespace, target)
    return target if isinstance(target, Key) else Key(target.namespace, target.name)
