"""The Services of the cluster from the point of view of pods on simulated nodes, with the history of each Service.

Guarantees: a change of a Service never alters what a pod has read earlier. Pods see a change of a Service from the
second in which the change was recorded. If a pod has already read the Service at a later simulated time, pods see the
change only after that later time. Services that exist when the process starts count as having existed forever. If a
Service changes, the pods that used the Service are reconciled.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, SERVICES, Key, Resource
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.simulated_nodes.simulated_time import PodTime
from ctrlmgr.informer import Change
from ctrlmgr.simulation.simulated_network import (
    ELSEWHERE,
    LOCALHOST,
    UNKNOWN_HOST,
    Answer,
    ServiceState,
    Slice,
    candidates,
    is_address,
    is_local,
    is_of_cluster,
)

_LABEL: Final = "kubernetes.io/service-name"
_SECOND: Final = 1_000_000
_MOST: Final = 64
"""The maximum number of states that are kept of one Service."""


class _Version(NamedTuple):
    since: int
    """The time from which this state of a Service applies, in microseconds since 1970; 0 stands for always."""
    state: ServiceState | None
    """The state of the Service; None if the Service does not exist."""


class Services:
    """All Services.

    An instance is an index that a cacher fills (`engine.watch_cache.cacher.Index`), and the handler of the informers'
    changes.
    """

    resources: Sequence[Resource] = (SERVICES, ENDPOINT_SLICES)

    def __init__(self, clock: Clock) -> None:
        """Create an instance without any Services."""
        self._clock = clock
        self._lock = Lock()
        self._objects: dict[Key, Object] = {}
        self._slices: dict[Key, dict[Key, Slice]] = {}
        # The key of the Service of each EndpointSlice, keyed by the EndpointSlice's key.
        self._owners: dict[Key, Key] = {}
        self._versions: dict[Key, list[_Version]] = {}
        # The latest simulated time at which a pod has read the state of each Service.
        self._answered: dict[Key, int] = {}
        # The pods that used each Service, and the Services that each pod used.
        self._askers: dict[Key, set[Key]] = {}
        self._asked: dict[Key, set[Key]] = {}
        # The number of changes of the Services that each pod used.
        self._changes: dict[Key, int] = {}

    # The following methods record changes.

    def reset(self, resource: Resource, objects: Iterable[Object]) -> None:
        """Replace the objects of a resource by `objects`, as if these objects had always existed."""
        with self._lock:
            known = self._objects if resource == SERVICES else self._owners
            for key in [*known]:
                self._put(resource, key, None, is_listed=True)
            for obj in objects:
                self._put(resource, obj.key, obj, is_listed=True)

    def apply(self, resource: Resource, key: Key, obj: Object | None) -> None:
        """Record that a Service or an EndpointSlice now has the state `obj`; if `obj` is None, it was deleted."""
        with self._lock:
            self._put(resource, key, obj, is_listed=False)

    def note_service(self, change: Change) -> None:
        """Record an informer's change of a Service."""
        with self._lock:
            self._put(SERVICES, change.object.key, change.new, is_listed=change.is_listed)

    def note_slice(self, change: Change) -> None:
        """Record an informer's change of an EndpointSlice."""
        with self._lock:
            self._put(ENDPOINT_SLICES, change.object.key, change.new, is_listed=change.is_listed)

    def _put(self, resource: Resource, key: Key, obj: Object | None, *, is_listed: bool) -> None:
        if resource == SERVICES:
            if obj is None:
                self._objects.pop(key, None)
            else:
                self._objects[key] = obj
            self._renew(key, is_listed=is_listed)
            return
        owner = self._owners.pop(key, None)
        if owner is not None:
            self._slices[owner].pop(key, None)
        if obj is not None:
            owner = self._owners[key] = Key(key.namespace, obj.labels.get(_LABEL, ""))
            self._slices.setdefault(owner, {})[key] = Slice.of(obj.to_dict())
        if owner is not None:
            self._renew(owner, is_listed=is_listed)

    def _renew(self, key: Key, *, is_listed: bool) -> None:
        """Record the state of a Service if it differs from the last recorded state."""
        obj, versions = self._objects.get(key), self._versions.setdefault(key, [])
        slices = self._slices.get(key, {})
        state = None if obj is None else ServiceState.of(obj.to_dict(), [slices[each] for each in sorted(slices)])
        if state == (versions[-1].state if versions else None):
            return
        if is_listed:
            versions[:] = [_Version(0, state)]
        else:
            second = self._clock.now() // _SECOND * _SECOND
            versions.append(_Version(max(second, self._answered.get(key, 0) + 1), state))
            del versions[:-_MOST]
        for pod in self._askers.get(key, ()):
            self._changes[pod] = self._changes.get(pod, 0) + 1

    # The following methods find the pods that depend on a Service.

    def askers(self, change: Change) -> list[Key]:
        """Return the keys of the pods that used a changed Service."""
        return self._askers_of(change.object.key)

    def askers_of_slice(self, change: Change) -> list[Key]:
        """Return the keys of the pods that used the Service of a changed EndpointSlice."""
        key = change.object.key
        return self._askers_of(Key(key.namespace, change.object.labels.get(_LABEL, "")))

    def _askers_of(self, service: Key) -> list[Key]:
        with self._lock:
            return sorted(self._askers.get(service, ()))

    def changes(self, pod: Key) -> int:
        """Return the number of changes of the Services that a pod used."""
        with self._lock:
            return self._changes.get(pod, 0)

    def forget(self, pod: Key) -> None:
        """Remove the state of a pod that was deleted or has ended."""
        with self._lock:
            self._changes.pop(pod, None)
            for service in self._asked.pop(pod, ()):
                self._askers[service].discard(pod)

    # The following methods return the endpoints that pods see.

    def seen_by(self, pod: Key, time: PodTime, own: Iterable[str] = (), *, is_told: bool = True) -> SeenServices:
        """Return the simulated network from the point of view of a pod with the addresses `own`.

        If `is_told` is set, the pod is reconciled when a Service that the pod uses changes later.
        """
        with self._lock:
            asked = set(self._asked.get(pod, ()))
        return SeenServices(self, pod, time, own, asked, is_told=is_told)

    def state(self, service: Key, moment: int, asker: Key | None) -> ServiceState | None:
        """Return the state of a Service at a time (µs since 1970), and record that the pod `asker` used the Service."""
        with self._lock:
            if asker is not None:
                self._askers.setdefault(service, set()).add(asker)
                self._asked.setdefault(asker, set()).add(service)
            answered = min(moment, self._clock.now())
            self._answered[service] = max(answered, self._answered.get(service, 0))
            versions = self._versions.get(service, [])
            found = bisect_right(versions, moment, key=lambda each: each.since)
            return versions[found - 1].state if found else None

    def named(self, address: str) -> Key | None:
        """Return the key of the Service with the cluster IP `address`; None if there is no such Service."""
        with self._lock:
            return next((key for key, each in self._versions.items() if _has(each, address)), None)

    def namespaces(self) -> set[str]:
        """Return the namespaces that have Services."""
        with self._lock:
            return {key.namespace for key in self._objects}

    def moments(self, services: Iterable[Key]) -> Iterator[int]:
        """Yield the times at which the given Services changed."""
        with self._lock:
            yield from [each.since for key in services for each in self._versions.get(key, ())]


def _has(versions: Sequence[_Version], address: str) -> bool:
    return bool(versions) and versions[-1].state is not None and versions[-1].state.address == address


class SeenServices:
    """The network of one pod, as a `simulation.simulated_network.Network`."""

    def __init__(
        self, services: Services, pod: Key, time: PodTime, own: Iterable[str], asked: set[Key], *, is_told: bool
    ) -> None:
        """Create a network that reads `services`, for a pod that has used the Services in `asked` before."""
        self._services = services
        self._pod = pod
        self._time = time
        self._own = frozenset(own)
        self._asked = asked
        self._asker = pod if is_told else None

    def connect(self, host: str, port: int | None, at: float) -> Answer:
        """Simulate a connection to the pod itself, to a Service, or to a host outside the cluster."""
        if is_local(host) or host in self._own:
            return Answer(LOCALHOST)
        if is_address(host):
            key = self._services.named(host)
            state = None if key is None else self._state(key, at)
            return Answer(host) if state is None else state.connect(port)
        for each in candidates(host, self._pod.namespace):
            state = self._state(Key(each.namespace, each.name), at)
            if state is not None:
                return state.connect_host(each.host) if each.host else state.connect(port)
        is_unknown = is_of_cluster(host, self._services.namespaces())
        return Answer("", UNKNOWN_HOST) if is_unknown else Answer(ELSEWHERE)

    def next_change(self, after: float) -> float | None:
        """Return the first time after `after` at which a Service that the pod used changes; None if none changes."""
        changes = (self._time.seconds(each) for each in self._services.moments(self._asked))
        return min((each for each in changes if each > after), default=None)

    def _state(self, service: Key, at: float) -> ServiceState | None:
        self._asked.add(service)
        return self._services.state(service, self._time.moment(at), self._asker)
