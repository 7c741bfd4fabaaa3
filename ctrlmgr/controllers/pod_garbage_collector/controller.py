"""The pod garbage collector: deletes pods that no other component deletes.

Guarantees, all as in Kubernetes (`pkg/controller/podgc/gc_controller.go`). Every twenty seconds, the controller deletes
these pods:
- terminated pods that exceed a threshold, first evicted pods, then the oldest pods;
- terminating pods on a node that is not ready and has the out-of-service taint;
- pods whose node has not existed for forty seconds; the controller first sets a condition with this reason;
- terminating pods that were never bound to a node.

A pod that has not ended is marked as failed before the controller deletes it. The grace period of the deletions is 0. A
pod with finalizers still exists until its finalizers are removed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from ctrlmgr.api.core import Node
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, PODS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.pod_garbage_collector import DESCRIPTOR, Options
from ctrlmgr.errors import ApiError, NotFound
from ctrlmgr.informer import Lister
from ctrlmgr.manager import Controller, Result
from ctrlmgr.metrics import POD_DELETIONS

log = structlog.get_logger(__name__)

PERIOD: Final = 20.0
"""The number of seconds between two rounds over all pods (`gcCheckPeriod`)."""
QUARANTINE: Final = 40.0
"""The number of seconds for which a node must not exist before its pods are deleted (`quarantineTime`)."""

TERMINATED: Final = "terminated"
OUT_OF_SERVICE: Final = "out-of-service"
ORPHANED: Final = "orphaned"
UNSCHEDULED: Final = "unscheduled"

_AT_ONCE: Final = 100
"""The maximum number of pods that one reconcile deletes, so that a stopping server does not wait long. If there are
more pods to delete, the next reconcile continues immediately.
"""

_ALL: Final = Key("", "pods")
_OUT_OF_SERVICE_TAINT: Final = "node.kubernetes.io/out-of-service"
_ENDED: Final = ("Succeeded", "Failed")
_NOT_ENDED: Final = ("Pending", "Running", "Unknown")
_NODE_IS_GONE: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


class _Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""
    reason: str = ""


class _Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _Taint(msgspec.Struct, frozen=True, gc=False):
    key: str = ""


class _NodeSpec(msgspec.Struct, frozen=True, gc=False):
    taints: list[_Taint] | None = None


class _Tainted(msgspec.Struct, frozen=True, gc=False):
    spec: _NodeSpec = _NodeSpec()


_decode = msgspec.json.Decoder(_Pod).decode


class DecodedPod(NamedTuple):
    """A pod and its decoded fields, which are not cached because all pods are read only once per round."""

    pod: Object
    view: _Pod

    @classmethod
    def at(cls, pod: Object) -> DecodedPod:
        """Decode the fields of a pod that the garbage collector reads."""
        return cls(pod, _decode(pod.body))


class Removal(NamedTuple):
    """A pod to delete, and the reason for its deletion."""

    pod: Object
    reason: str


def desired_removals(
    pods: Sequence[DecodedPod], nodes: Mapping[str, Object], gone: Iterable[str], threshold: int
) -> list[Removal]:
    """Return the pods to delete, without duplicates; `gone` contains the names of nodes that no longer exist.

    The argument `threshold` is the number of terminated pods that may stay. If the threshold is 0, all terminated pods
    may stay.
    """
    missing = frozenset(gone)
    found = {pod.key: Removal(pod, TERMINATED) for pod in _beyond(threshold, pods)}
    for pod, view in pods:
        reason = _reason(view, nodes, missing)
        if reason:
            found.setdefault(pod.key, Removal(pod, reason))
    return list(found.values())


def _beyond(threshold: int, pods: Iterable[DecodedPod]) -> list[Object]:
    """Return the terminated pods that exceed the threshold: evicted pods first, then the oldest pods."""
    if threshold <= 0:
        return []
    ended = [each for each in pods if each.view.status.phase not in _NOT_ENDED]
    ended.sort(key=lambda each: _order(each.view))
    return [each.pod for each in ended[: max(len(ended) - threshold, 0)]]


def _order(pod: _Pod) -> tuple[bool, str, str]:
    is_evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return not is_evicted, pod.metadata.creation_timestamp or "", pod.metadata.name


def _reason(pod: _Pod, nodes: Mapping[str, Object], gone: frozenset[str]) -> str:
    """Return the reason why a pod must be deleted; empty if there is no reason.

    This function does not check the threshold of terminated pods.
    """
    place = pod.spec.node_name
    if place in gone:
        return ORPHANED
    if pod.metadata.deletion_timestamp is None:
        return ""
    if not place:
        return UNSCHEDULED
    node = nodes.get(place)
    return OUT_OF_SERVICE if node is not None and _is_out_of_service(node) else ""


def _is_out_of_service(node: Object) -> bool:
    taints = node.view(_Tainted).spec.taints or ()
    return any(each.key == _OUT_OF_SERVICE_TAINT for each in taints) and not node.view(Node).is_ready


class Quarantine:
    """The nodes of pods that do not exist, and the time when each of these nodes was first missing."""

    def __init__(self, exists: Callable[[str], bool], *, clock: Clock) -> None:
        """Create an instance that calls `exists` before a node counts as deleted.

        The node is read from the API because the cache of nodes may be outdated.
        """
        self._exists = exists
        self._clock = clock
        # The time in monotonic seconds when each node was first missing.
        self._missed: dict[str, float] = {}

    def clear(self) -> None:
        """Remove all missing nodes, because their times are outdated after a pause."""
        self._missed.clear()

    def gone(self, missing: Iterable[str]) -> list[str]:
        """Return those nodes in `missing` that have been missing for at least the quarantine time."""
        now = self._clock.monotonic()
        self._missed = {name: self._missed.get(name, now) for name in missing}
        over = [name for name, since in self._missed.items() if now - since >= QUARANTINE]
        return [name for name in over if not self._exists(name)]


class PodGarbageCollector:
    """Reconciles a single key, which stands for all pods."""

    def __init__(self, pods: Lister, nodes: Lister, quarantine: Quarantine, threshold: int, *, clock: Clock) -> None:
        """Create a reconciler that reads objects from these caches, and keeps `threshold` terminated pods.

        If `threshold` is 0, all terminated pods are kept.
        """
        self._pods = pods
        self._nodes = nodes
        self._quarantine = quarantine
        self._threshold = threshold
        self._clock = clock
        self._left: deque[Removal] = deque()  # The pods that are still to be deleted in this round.

    def on_start(self) -> Iterator[Key]:
        """Yield the key for the first round; `reconcile` then requeues this key."""
        self._quarantine.clear()
        self._left.clear()
        yield _ALL

    def reconcile(self, key: Key, client: EngineClient) -> Result:
        """Start or continue a round over all pods; if a pod cannot be deleted now, the next round retries it."""
        if not self._left:
            self._left.extend(self._removals())
        for _ in range(min(len(self._left), _AT_ONCE)):
            self._remove(self._left.popleft(), client)
        return Result(requeue_after=0.0 if self._left else PERIOD)

    def _removals(self) -> list[Removal]:
        pods = [DecodedPod.at(pod) for pod in self._pods.list()]
        nodes = {node.name: node for node in self._nodes.list()}
        places = dict.fromkeys(pod.view.spec.node_name for pod in pods)
        gone = self._quarantine.gone(name for name in places if name and name not in nodes)
        return desired_removals(pods, nodes, gone, self._threshold)

    def _remove(self, removal: Removal, client: EngineClient) -> None:
        pod, reason = removal
        log.info("removing pod", pod=str(pod.key), reason=reason)
        try:
            if _decode(pod.body).status.phase not in _ENDED:
                pod = client.patch(pod, failure(pod, reason, format_time_seconds(self._clock.now())), "status")
            client.delete(pod, grace=0)
        except NotFound:
            log.debug("pod already deleted", pod=str(pod.key))
        except ApiError as error:
            POD_DELETIONS.failed.labels(pod.namespace, reason).inc()
            log.info("pod deletion failed", pod=str(pod.key), error=str(error))
        POD_DELETIONS.deleted.labels(pod.namespace, reason).inc()


def failure(pod: Object, reason: str, now: str) -> dict[str, Any]:
    """Return the patch that sets the phase of `pod` to Failed.

    If the node of the pod does not exist, the patch also sets a condition. The time `now` is in RFC 3339.
    """
    generation = pod.to_dict()["metadata"].get("generation", 0)
    status: dict[str, Any] = {"phase": "Failed", "observedGeneration": generation}
    if reason == ORPHANED:
        status["conditions"] = [{**_NODE_IS_GONE, "observedGeneration": generation, "lastTransitionTime": now}]
    return {"metadata": {"uid": pod.uid, "resourceVersion": str(pod.revision)}, "status": status}


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    pods, nodes = context.informers.informer(PODS), context.informers.informer(NODES)
    event_log, threshold = context.event_log, options.terminated_pod_gc_threshold
    quarantine = Quarantine(lambda name: event_log.get(NODES, Key("", name)) is not None, clock=context.clock)
    collector = PodGarbageCollector(pods.lister, nodes.lister, quarantine, threshold, clock=context.clock)
    return assemble(DESCRIPTOR, context, collector)
