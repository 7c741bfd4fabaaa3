"""Functions about pods for the controllers of workloads: their state, and an index by controller.

Guarantees: "active", "ready" and "available" have Kubernetes' meanings (`pkg/controller/controller_utils.go`,
`pkg/api/v1/pod/util.go`). All times in this module are in microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object, OwnerReference
from ctrlmgr.clock import parse_time
from ctrlmgr.informer import Informer, Lister

CONTROLLER_INDEX: Final = "controller"
"""The name of an informer's index by controller uid; objects without a controller are indexed by namespace."""

_SECOND: Final = 1_000_000


def controller_of(obj: Object) -> OwnerReference | None:
    """Return the reference to the object that controls the given object; None if no object controls it."""
    return next((each for each in obj.metadata.owner_references or () if each.controller), None)


def is_controlled_by(obj: Object, owner: Object) -> bool:
    """Return whether `owner` controls an object; the uids of owners are compared."""
    reference = controller_of(obj)
    return reference is not None and reference.uid == owner.uid


def index_by_controller(informer: Informer) -> None:
    """Add the index that `owned_or_orphaned` reads; the caller must do this before the informer syncs.

    A further call of the function has no effect.
    """
    informer.add_index(CONTROLLER_INDEX, _controller)


def _controller(obj: Object) -> Iterator[str]:
    reference = controller_of(obj)
    yield reference.uid if reference is not None else _orphans(obj.namespace)


def _orphans(namespace: str) -> str:
    return f"orphans of {namespace}"  # A uid contains no blanks, so it differs from any namespace key.


def owned(lister: Lister, owner: Object) -> list[Object]:
    """Return the objects whose controller reference is `owner`, sorted by name."""
    return [each for each in lister.by_index(CONTROLLER_INDEX, owner.uid) if each.namespace == owner.namespace]


def orphaned(lister: Lister, namespace: str) -> list[Object]:
    """Return the objects of a namespace that have no controller, sorted by name."""
    return lister.by_index(CONTROLLER_INDEX, _orphans(namespace))


def owned_or_orphaned(lister: Lister, owner: Object) -> list[Object]:
    """Return the objects that `owner` controls or may adopt, sorted by name."""
    found = [*owned(lister, owner), *orphaned(lister, owner.namespace)]
    return sorted(found, key=lambda each: each.name)


def is_active(pod: Object) -> bool:
    """Return whether a pod counts as a replica, because it has not ended and is not being deleted (`IsPodActive`)."""
    return not pod.is_terminating and not pod.view(Pod).is_terminal


def active(pods: Iterable[Object]) -> list[Object]:
    """Return the pods that count as replicas."""
    return [pod for pod in pods if is_active(pod)]


def is_terminating(pod: Object) -> bool:
    """Return whether a pod is being deleted and has not ended (`IsPodTerminating`)."""
    return pod.is_terminating and not pod.view(Pod).is_terminal


def is_ready(pod: Object) -> bool:
    """Return whether a pod's condition Ready is True."""
    return pod.view(Pod).is_ready


def ready_since(pod: Object) -> int | None:
    """Return the time when a ready pod became ready; None if the pod is not ready or the time is unknown."""
    view = pod.view(Pod)
    return view.ready_changed_at if view.is_ready else None


def is_available(pod: Object, min_ready_seconds: int, now: int) -> bool:
    """Return whether a pod has been ready for at least the minimum time (`minReadySeconds`)."""
    if not is_ready(pod):
        return False
    if not min_ready_seconds:
        return True
    since = ready_since(pod)
    return since is not None and since + min_ready_seconds * _SECOND <= now


def next_availability(pods: Iterable[Object], min_ready_seconds: int, now: int) -> float | None:
    """Return the seconds until the next ready pod becomes available; None if no ready pod is unavailable."""
    if not min_ready_seconds:
        return None
    dues = [since + min_ready_seconds * _SECOND for pod in pods if (since := ready_since(pod)) is not None]
    left = [due - now for due in dues if due > now]
    return min(left) / _SECOND if left else None


def created_at(obj: Object) -> int:
    """Return the creation time of an object in microseconds since 1970; 0 if the time is unknown."""
    text = obj.metadata.creation_timestamp
    return parse_time(text) if text else 0
