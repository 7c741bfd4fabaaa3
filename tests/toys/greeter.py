"""A toy controller: each namespace gets a ConfigMap with a greeting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Resource
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.descriptor import ControllerContext, ControllerDescriptor
from ctrlmgr.informer import Lister
from ctrlmgr.manager import Controller, Watch
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import TEXT

CONFIG_MAPS = Resource("", "configmaps")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The command-line options of the greeter controller."""

    greeting: Annotated[str, TEXT, Setting("The text of the greeting.", flag="--greeting", metavar="TEXT")] = "hello"


DESCRIPTOR = ControllerDescriptor(
    name="greeter-controller",
    aliases=("greeter",),
    does="a greeting in every namespace",
    watches=(NAMESPACES, CONFIG_MAPS),
    owns=(CONFIG_MAPS,),
    builder="tests.toys.greeter:build",
    options=Options,
    replays=True,
    rules=(PolicyRule(("create",), ("",), ("configmaps",)),),
)


class Greeter:
    """A reconciler whose keys are the names of namespaces."""

    def __init__(self, namespaces: Lister, config_maps: Lister, greeting: str) -> None:
        self._namespaces, self._config_maps, self._greeting = namespaces, config_maps, greeting

    def reconcile(self, key: Key, client: EngineClient) -> None:
        namespace = self._namespaces.get(key)
        if namespace is None or namespace.is_terminating or self._config_maps.get(Key(key.name, "greeting")):
            return
        metadata = {"name": "greeting", "namespace": key.name}
        fields = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"text": self._greeting}}
        client.create(Object.from_dict(fields))


def build(context: ControllerContext, options: Options) -> Controller:
    namespaces, config_maps = context.informers.informer(NAMESPACES), context.informers.informer(CONFIG_MAPS)
    return Controller(
        DESCRIPTOR.name,
        Greeter(namespaces.lister, config_maps.lister, options.greeting),
        watches=[Watch(namespaces, lambda change: [change.object.key])],
        client=context.client(DESCRIPTOR),
        log=context.event_log,
        clock=context.clock,
        random=context.random,
    )
