"""The pod garbage collector: removes pods that nothing else will ever remove.

Guarantees, all of them Kubernetes' (`pkg/controller/podgc/gc_controller.go`); every twenty seconds
- of the pods that have ended all beyond a threshold go: evicted ones first, then the oldest;
- a pod goes that is terminating on a node which is not ready and tainted as out of service;
- a pod goes whose node has not been there for forty seconds, having been told so in a condition;
- a pod goes that is terminating and was never placed on a node.

A pod that has not ended is marked as failed before it goes, and goes at once, whatever its grace period. What holds it
by a finalizer still does.
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
"""Seconds between rounds (`gcCheckPeriod`)."""
QUARANTINE: Final = 40.0
"""Seconds for which a node must have been missing before its pods go (`quarantineTime`)."""

TERMINATED: Final = "terminated"
OUT_OF_SERVICE: Final = "out-of-service"
ORPHANED: Final = "orphaned"
UNSCHEDULED: Final = "unscheduled"

_AT_ONCE: Final = 100
"""Pods that a reconcile removes at most; the next goes on at once. A server that stops waits for no more than that."""

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


class Looked(NamedTuple):
    """A pod and what is read of it; it is not kept, as all the pods there are are looked at only now and then."""

    pod: Object
    view: _Pod

    @classmethod
    def at(cls, pod: Object) -> Looked:
        """Look at a pod."""
        return cls(pod, _decode(pod.body))


class Removal(NamedTuple):
    """A pod that is to go, and why."""

    pod: Object
    reason: str


def desired_removals(
    pods: Sequence[Looked], nodes: Mapping[str, Object], gone: Iterable[str], threshold: int
) -> list[Removal]:
    """Return which of `pods` are to go, each once; `gone` are the names of nodes that are known not to exist.

    `threshold` is how many that have ended may stay; 0: all.
    """
    missing = frozenset(gone)
    found = {pod.key: Removal(pod, TERMINATED) for pod in _beyond(threshold, pods)}
    for pod, view in pods:
        reason = _reason(view, nodes, missing)
        if reason:
            found.setdefault(pod.key, Removal(pod, reason))
    return list(found.values())


def _beyond(threshold: int, pods: Iterable[Looked]) -> list[Object]:
    """Return the pods that have ended, but for the `threshold` newest."""
    if threshold <= 0:
        return []
    ended = [each for each in pods if each.view.status.phase not in _NOT_ENDED]
    ended.sort(key=lambda each: _order(each.view))
    return [each.pod for each in ended[: max(len(ended) - threshold, 0)]]


def _order(pod: _Pod) -> tuple[bool, str, str]:
    is_evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return not is_evicted, pod.metadata.creation_timestamp or "", pod.metadata.name


def _reason(pod: _Pod, nodes: Mapping[str, Object], gone: frozenset[str]) -> str:
    """Return why a pod is to go, "" if it is not, the number of pods that have ended aside."""
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
    """Since when nodes that pods are on have been missing."""

    def __init__(self, exists: Callable[[str], bool], *, clock: Clock) -> None:
        """Ask `exists` before a node is held to be gone: a cache may be behind."""
        self._exists = exists
        self._clock = clock
        # When each of them was first missed, in monotonic seconds.
        self._missed: dict[str, float] = {}

    def clear(self) -> None:
        """Forget what was seen before: it has not looked for a while."""
        self._missed.clear()

    def gone(self, missing: Iterable[str]) -> list[str]:
        """Return which of those that are `missing` now have been so for long enough."""
        now = self._clock.monotonic()
        self._missed = {name: self._missed.get(name, now) for name in missing}
        over = [name for name, since in self._missed.items() if now - since >= QUARANTINE]
        return [name for name in over if not self._exists(name)]


class PodGarbageCollector:
    """A reconciler with a single key: all pods."""

    def __init__(self, pods: Lister, nodes: Lister, quarantine: Quarantine, threshold: int, *, clock: Clock) -> None:
        """Read from these caches; leave `threshold` pods that have ended (0: all)."""
        self._pods = pods
        self._nodes = nodes
        self._quarantine = quarantine
        self._threshold = threshold
        self._clock = clock
        self._left: deque[Removal] = deque()  # of this round

    def on_start(self) -> Iterator[Key]:
        """Begin with the first round, after which `reconcile` comes back by itself."""
        self._quarantine.clear()
        self._left.clear()
        yield _ALL

    def reconcile(self, key: Key, client: EngineClient) -> Result:
        """Go a round, or on with one; a pod that cannot be removed now is left for the next one."""
        if not self._left:
            self._left.extend(self._removals())
        for _ in range(min(len(self._left), _AT_ONCE)):
            self._remove(self._left.popleft(), client)
        return Result(requeue_after=0.0 if self._left else PERIOD)

    def _removals(self) -> list[Removal]:
        pods = [Looked.at(pod) for pod in self._pods.list()]
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
            log.debug("pod already gone", pod=str(pod.key))
        except ApiError as error:
            POD_DELETIONS.failed.labels(pod.namespace, reason).inc()
            log.info("pod not removed", pod=str(pod.key), error=str(error))
        POD_DELETIONS.deleted.labels(pod.namespace, reason).inc()


def failure(pod: Object, reason: str, now: str) -> dict[str, Any]:
    """Return the patch that puts `pod` in the phase Failed; one whose node is gone has a condition that says so.

    `now` is RFC 3339.
    """
    generation = pod.to_dict()["metadata"].get("generation", 0)
    status: dict[str, Any] = {"phase": "Failed", "observedGeneration": generation}
    if reason == ORPHANED:
        status["conditions"] = [{**_NODE_IS_GONE, "observedGeneration": generation, "lastTransitionTime": now}]
    return {"metadata": {"uid": pod.uid, "resourceVersion": str(pod.revision)}, "status": status}


def build(context: ControllerContext, options: Options) -> Controller:
    """Build it from what its descriptor declares."""
    pods, nodes = context.informers.informer(PODS), context.informers.informer(NODES)
    event_log, threshold = context.event_log, options.terminated_pod_gc_threshold
    quarantine = Quarantine(lambda name: event_log.get(NODES, Key("", name)) is not None, clock=context.clock)
    collector = PodGarbageCollector(pods.lister, nodes.lister, quarantine, threshold, clock=context.clock)
    return assemble(DESCRIPTOR, context, collector)
