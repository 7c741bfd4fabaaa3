"""Informers of a cluster; one list and watch fills each informer.

Guarantees:

- Event handlers run on one thread, as in `ctrlmgr serve`. Each store contains the server's last known state of its
  resource.
- Resources are followed independently of each other. Therefore two stores may contain states of different points in
  time, as in client-go.
- The property `revision` reaches the revision of a write of this process only when the cache contains the write.
  Therefore a controller that has waited for its own writes (`Controller.seen`) finds these writes in the cache.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from random import Random
from typing import Final

from ctrlmgr import threads
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.eventlog.event import EventType, Snapshot
from ctrlmgr.framework.remote.api_server_log import NoFeed, RemoteLog
from ctrlmgr.framework.remote.reflector import Changed, Listed, Message, Progress, Stream
from ctrlmgr.framework.remote.remote_api import Api
from ctrlmgr.informer import Change, Informer, Informers, Quarantine

_LOOK_UP: Final = 0.5
"""Seconds after which `run` checks again whether it must stop."""


class RemoteInformers(Informers):
    """The informers of one process for an API server; a Runnable."""

    def __init__(self, api: Api, log: RemoteLog, *, clock: Clock, random: Random, namespace: str = "") -> None:
        """Follow the resources of `api` in one namespace; an empty namespace means all namespaces.

        The object `log` tracks the writes of this process. Cluster-scoped objects are always followed.
        """
        super().__init__(log, NoFeed(), clock=clock, quarantine=Quarantine())
        self._api = api
        self._remote = log
        self._random = random
        self._namespace = namespace
        self._queue: SimpleQueue[Message] = SimpleQueue()
        self._only: dict[Resource, Key] = {}
        self._followed: set[Resource] = set()

    def informer(self, resource: Resource) -> Informer:
        """Return the informer of all objects of a resource; see `Informers`."""
        self._only.pop(resource, None)
        return super().informer(resource)

    def informer_of(self, resource: Resource, key: Key) -> Informer:
        """Return an informer that contains at least this object.

        The informer contains all objects of the resource if another caller needs them, or needs another object.
        """
        is_new = resource not in self._informers
        informer = super().informer(resource)
        if is_new:
            self._only[resource] = key
        elif self._only.get(resource, key) != key:
            del self._only[resource]
        return informer

    @property
    def revision(self) -> Revision:
        """Return the revision up to which the stores contain this process's writes; thread-safe."""
        return self._remote.consistency.shown()

    def run(self, stop: threading.Event) -> None:
        """Follow all resources until `stop` is set."""
        self._synced = not self._informers  # An app that only has admission rules follows no resources.
        while not stop.is_set():
            self._start_streams(stop)
            try:
                self._accept(self._queue.get(timeout=_LOOK_UP))
            except Empty:
                continue

    def _start_streams(self, stop: threading.Event) -> None:
        if len(self._followed) == len(self._informers):
            return
        for resource in self._informers.keys() - self._followed:
            self._followed.add(resource)
            only = self._only.get(resource)
            self._remote.consistency.follow(resource, self._informers[resource].lister.get, self._shows(only))
            stream = Stream(
                self._api,
                resource,
                self._queue,
                clock=self._clock,
                random=self._random,
                only=only,
                namespace=self._namespace,
            )
            threads.start(f"watch {resource}", lambda stream=stream: stream.run(stop))  # type: ignore[misc]  # binds it

    def _shows(self, only: Key | None) -> Callable[[Key], bool]:
        """Return a function that returns whether an object is followed: `only` that object, or all of the namespace."""
        if only is not None:
            return only.__eq__
        return lambda key: not self._namespace or key.namespace in ("", self._namespace)

    def _accept(self, message: Message) -> None:
        informer = self._informers[message.resource]
        self._telling = True
        consistency = self._remote.consistency
        match message:
            case Listed(resource, revision, objects):
                self._epoch += 1
                informer._tell_synced(informer._replace(Snapshot(revision, objects)))
                self._epoch += 1
                consistency.listed(resource, revision)
            case Changed(resource, type_, obj):
                change = self._changed(informer, type_, message)
                consistency.changed(resource, obj.key, obj.revision)
                if change is not None:
                    informer._tell(change)
            case Progress(resource, revision):
                consistency.progressed(resource, revision)
        self._telling = False
        self._added.clear()  # The informers that handlers have added get streams of their own.
        self._synced = self._synced or all(each.has_synced for each in self._informers.values())

    def _changed(self, informer: Informer, type_: EventType, message: Changed) -> Change | None:
        obj = message.object
        current = informer.lister.get(obj.key)
        if current is not None and current.revision >= obj.revision:
            return None
        new = None if type_ is EventType.DELETED else obj
        return informer._put(obj.key, new, obj.revision)
