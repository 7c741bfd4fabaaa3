"""A controller of one's own, on a screen: every namespace that is not terminating has a ConfigMap `limits`.

Run it: `python examples/limits_controller.py`. It works on a log in memory, in one thread; with `open_log` on a
database and a `Manager` the same controller runs for good.
"""

from __future__ import annotations

import random
from uuid import UUID

from ctrlmgr import logging
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Resource
from ctrlmgr.client import Client, LogClient
from ctrlmgr.clock import Clock, SystemClock
from ctrlmgr.eventlog import Author, EventLog, open_log
from ctrlmgr.informer import Change, Informers, Lister, WatchCache
from ctrlmgr.manager import Controller, Result, Watch

CONFIG_MAPS = Resource("", "configmaps")


def desired_limits(namespace: Object) -> Object:
    """Decide, purely: the limits follow from the namespace's label `size`."""
    pods = {"small": "10", "large": "100"}.get(namespace.labels.get("size", "small"), "10")
    metadata = {"name": "limits", "namespace": namespace.name}
    return Object.from_dict({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"pods": pods}})


class LimitsReconciler:
    """Act, thinly: read the caches, write the difference."""

    def __init__(self, namespaces: Lister, config_maps: Lister) -> None:
        """Read from these listers."""
        self._namespaces = namespaces
        self._config_maps = config_maps

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Make the ConfigMap of one namespace what it should be."""
        namespace = self._namespaces.get(Key("", key.namespace))
        if namespace is None or namespace.is_terminating:
            return None
        desired, current = desired_limits(namespace), self._config_maps.get(key)
        if current is None:
            client.create(desired)
        elif current.to_dict()["data"] != desired.to_dict()["data"]:
            identity = {"uid": current.uid, "creation_timestamp": current.metadata.creation_timestamp}
            client.update(desired.with_metadata(**identity).at(current.revision))
        return None


def limits_key(change: Change) -> list[Key]:
    """Say which key a changed namespace or ConfigMap concerns."""
    obj = change.new or change.old
    assert obj is not None
    return [Key(obj.namespace or obj.name, "limits")]


def new_controller(informers: Informers, client: LogClient, log: EventLog, clock: Clock) -> Controller:
    """Wire it: what is watched, which keys a change concerns, who reconciles them."""
    namespaces, config_maps = informers.informer(NAMESPACES), informers.informer(CONFIG_MAPS)
    reconciler = LimitsReconciler(namespaces.lister, config_maps.lister)
    watches = [Watch(namespaces, limits_key), Watch(config_maps, limits_key)]
    return Controller(
        "limits", reconciler, watches=watches, client=client, log=log, clock=clock, random=random.Random(1)
    )


def main() -> None:
    """Create a namespace, change its size, and show what the controller wrote and why."""
    logging.configure(level="warning", format="console")
    clock, dice = SystemClock(), random.Random(1)
    log = open_log("memory:", clock=clock, random=dice)
    informers = Informers(log, WatchCache(log, clock=clock), clock=clock)

    def new_uid() -> str:
        return str(UUID(int=dice.getrandbits(128), version=4))

    def client(actor: str) -> LogClient:
        return LogClient(log, author=Author(actor), clock=clock, new_uid=new_uid)

    controller = new_controller(informers, client("system:controller:limits"), log, clock)
    informers.sync()
    alice = client("alice")
    shop = alice.create(Object.from_dict({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "shop"}}))
    alice.update(shop.with_metadata(labels={"size": "large"}))
    while informers.step() or controller.process_next(timeout=0):
        pass
    for event in log.events_after(0):
        cause = log.reconcile(event.reconcile)
        why = f" because of revisions {list(cause.cause.triggers)}" if cause else ""
        print(f"{event.revision} {event.type.name:<8} {event.resource} {event.key} by {event.actor}{why}")


if __name__ == "__main__":
    main()
