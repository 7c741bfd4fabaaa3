"""The taint eviction controller: stores the planned evictions that `decide` returns, and performs them.

Guarantees: before a pod is deleted, an Event is recorded, and then the condition DisruptionTarget is set. Only one
worker uses a key at a time, so the planned evictions need no lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ctrlmgr.api.core import ObjectReference, Pod
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, PODS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.disrupted_pods import delete_disrupted
from ctrlmgr.controllers.events.recorder import NORMAL, Recorder
from ctrlmgr.controllers.pods_of_nodes import index_by_node, pods_of_node
from ctrlmgr.controllers.taint_eviction import DESCRIPTOR, Options
from ctrlmgr.controllers.taint_eviction.decide import Plan, decide
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch
from ctrlmgr.scheduling.taints import NO_EXECUTE, Taint, Toleration

_SECOND: Final = 1_000_000
_NO_EXECUTE: Final = f'"{NO_EXECUTE}"'.encode()
_REASON: Final = "TaintManagerEviction"
_DISRUPTED: Final = "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
"""The reason and the message of the condition DisruptionTarget of evicted pods."""


class _NodeSpec(msgspec.Struct, frozen=True, gc=False):
    taints: list[Taint] | None = None


class _Node(msgspec.Struct, frozen=True, gc=False):
    spec: _NodeSpec = _NodeSpec()


class _PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""
    tolerations: list[Toleration] | None = None


class _Pod(msgspec.Struct, frozen=True, gc=False):
    spec: _PodSpec = _PodSpec()


# The decoded view is not cached, because other controllers decode other fields.
_decode_pod = msgspec.json.Decoder(_Pod).decode
_decode_node = msgspec.json.Decoder(_Node).decode


class TaintEviction:
    """Reconciles a pod on a tainted node."""

    def __init__(self, nodes: Lister, pods: Lister, recorder: Recorder, *, clock: Clock) -> None:
        """Create a reconciler that reads objects from these caches."""
        self._nodes = nodes
        self._pods = pods
        self._recorder = recorder
        self._clock = clock
        self._plans: dict[Key, Plan] = {}

    def on_start(self) -> Iterator[Key]:
        """Remove all planned evictions, and yield the key of every pod on a tainted node."""
        self._plans.clear()
        for node in self._nodes.list():
            if _no_execute(node):
                yield from (pod.key for pod in pods_of_node(self._pods, node.name))

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Delete the pod if its eviction is due; otherwise requeue the pod."""
        pod = self._pods.get(key)
        plan = self._plans.get(key)
        if pod is None:
            if self._plans.pop(key, None) is not None and plan is not None and not plan.done:
                self._tell(key, "", f"Cancelling deletion of Pod {key}")
            return None
        if plan is not None and plan.uid != pod.uid:
            plan = None
        spec = _decode_pod(pod.body).spec
        node = self._nodes.get(Key("", spec.node_name)) if spec.node_name else None
        if node is None:
            return None
        now = self._clock.now()
        decision = decide(pod.uid, _no_execute(node), spec.tolerations or (), plan, now)
        if decision.called_off:
            self._tell(key, pod.uid, f"Cancelling deletion of Pod {key}")
        if decision.keep:
            self._tell(key, pod.uid, f"Marking for deletion Pod {key}")
            delete_disrupted(pod, *_DISRUPTED, now, client)
        self._keep(key, decision.plan)
        if decision.plan is None or decision.plan.done:
            return None
        return Result(requeue_after=(decision.plan.due - now) / _SECOND)

    def _keep(self, key: Key, plan: Plan | None) -> None:
        if plan is None:
            self._plans.pop(key, None)
        else:
            self._plans[key] = plan

    def _tell(self, key: Key, uid: str, message: str) -> None:
        subject = ObjectReference("Pod", key.namespace, key.name, uid, "v1")
        self._recorder.event(subject, NORMAL, _REASON, message)

    # The following methods map changes to pods.

    def node_keys(self, change: Change) -> Iterator[Key]:
        """Yield the keys of the pods of a node whose NoExecute taints have changed."""
        after = _no_execute(change.new) if change.new is not None else []
        before = _no_execute(change.old) if change.old is not None else []
        if after != before:
            yield from (pod.key for pod in pods_of_node(self._pods, change.object.name))

    def pod_keys(self, change: Change) -> Iterator[Key]:
        """Yield the key of a pod that was bound to a node or deleted, or whose tolerations changed.

        Most pods are on nodes without NoExecute taints, and are skipped. If a node gets a NoExecute taint later,
        `node_keys` yields all cached pods on the node at that time.
        """
        node = change.object.view(Pod).spec.node_name  # The pod was decoded already, for the index by node.
        if not node or not (change.object.key in self._plans or self._is_tainted(node)):
            return
        old, new = change.old, change.new
        if old is None or new is None or _decode_pod(old.body).spec != _decode_pod(new.body).spec:
            yield change.object.key

    def _is_tainted(self, name: str) -> bool:
        node = self._nodes.get(Key("", name))
        return node is not None and bool(_no_execute(node))


def _no_execute(node: Object) -> list[Taint]:
    """Return a node's NoExecute taints; if a node has none, it is not decoded."""
    if not node.mentions(_NO_EXECUTE):
        return []
    return [each for each in _decode_node(node.body).spec.taints or () if each.effect == NO_EXECUTE]


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    nodes, pods = context.informers.informer(NODES), context.informers.informer(PODS)
    index_by_node(pods)
    reconciler = TaintEviction(nodes.lister, pods.lister, context.recorder(DESCRIPTOR), clock=context.clock)
    watches = [Watch(nodes, reconciler.node_keys), Watch(pods, reconciler.pod_keys)]
    workers = options.concurrent_taint_evictions
    return assemble(DESCRIPTOR, context, reconciler, watches, workers=workers, max_retries=5)
