"""Keeps the FlowSchemas and priority levels that every cluster has; the controller checks these objects once a minute.

Guarantees: all FlowSchemas and priority levels that every cluster has exist soon after a process starts to serve. The
module `ensurer` decides their specs. All missing objects of a kind are created in one write.

Source: Kubernetes `pkg/registry/flowcontrol/rest/storage_flowcontrol.go` (post-start hook
`priority-and-fairness-config-producer`).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Final

from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.flow_control.ensurer import FLOW_SCHEMA, LEVEL, ensured_objects
from ctrlmgr.errors import Conflict, NotFound
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Informers
from ctrlmgr.kinds.flowcontrol.flow_resources import FLOW_SCHEMAS, LEVELS
from ctrlmgr.manager import Controller, Result

HOOK: Final = "priority-and-fairness-config-producer"
MANAGER: Final = f"api-{HOOK}-v1"
"""The field manager of the controller's writes."""

_KEY: Final = Key("", "bootstrap configuration")
_EVERY: Final = 60.0


class ConfigurationProducer:
    """Reconciles the FlowSchemas and priority levels that every cluster has; one key stands for all of them."""

    def __init__(self, informers: Informers) -> None:
        """Create a reconciler that reads from the caches of `informers`, which have not synced yet."""
        self._caches = {LEVEL: informers.informer(LEVELS), FLOW_SCHEMA: informers.informer(FLOW_SCHEMAS)}
        self._is_done = False

    def has_synced(self) -> bool:
        """Return whether all these objects have been correct."""
        return self._is_done

    def on_start(self) -> Iterable[Key]:
        """Return the only key, which stands for all objects."""
        return [_KEY]

    def reconcile(self, key: Key, client: EngineClient) -> Result:
        """Create, correct and delete objects; raises the errors of `client`, after which the reconcile is retried."""
        for kind, cache in self._caches.items():
            upkeep = ensured_objects(kind, {obj.name: obj for obj in cache.lister.list()})
            if upkeep.create:
                client.create_all(upkeep.create)
            for obj in upkeep.update:
                with suppress(Conflict):  # The object has just changed; the next round checks it again.
                    client.update(obj)
            for obj in upkeep.delete:
                with suppress(NotFound):
                    client.delete(obj)
        self._is_done = True
        return Result(_EVERY)


def new_configuration_producer(
    producer: ConfigurationProducer, client: EngineClient, event_log: EventLog, *, clock: Clock, random: Random
) -> Controller:
    """Build the controller; the caller must do this before the informers sync."""
    return Controller(HOOK, producer, watches=[], client=client, log=event_log, clock=clock, random=random)
