"""The scheduler: takes unscheduled pods one by one, decides with `ctrlmgr.scheduling`, and writes the decision.

Guarantees:
- The scheduler decides about one pod at a time; each decision takes all earlier decisions into account. The pod with
  the highest priority is scheduled first. Bindings are written concurrently with later decisions, which already count
  the bound pods on their nodes.
- If a node is found, the pod is bound through `pods/NAME/binding`. If no node is found, the condition PodScheduled and
  an Event contain the reason, with kube-scheduler's messages. Preemption deletes less important pods, after setting a
  condition on them.
- Pods of other schedulers, pods with scheduling gates, and pods whose resource claims do not exist yet are ignored.

The key `*` stands for the processing of pending changes. A key with a namespace and a name stands for a pod to
schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from threading import Lock
from typing import Any, Final, NamedTuple

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, NODES, PODS, Key, Revision
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.scheduler import DESCRIPTOR, Options
from ctrlmgr.controllers.scheduler.attached_volumes import CSI_NODES, VOLUME_ATTACHMENTS
from ctrlmgr.controllers.scheduler.decision_inputs import CLAIMS, CLASSES, VOLUMES, DecisionInputs
from ctrlmgr.controllers.scheduler.scheduled_claims import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from ctrlmgr.controllers.scheduler.scheduler_cache import SchedulerCache
from ctrlmgr.controllers.scheduler.scheduling_queue import ClusterEvent, Entry, Waiting
from ctrlmgr.controllers.workloads.status_conditions import condition_of, with_condition
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.errors import ApiError, CtrlmgrError, NotFound
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Change, Lister
from ctrlmgr.kinds.core.core_event import NOTE_LENGTH
from ctrlmgr.manager import Controller, Result, Watch
from ctrlmgr.scheduling.cluster_model import PodInfo
from ctrlmgr.scheduling.cycle import Decision, decide
from ctrlmgr.scheduling.preemption import Candidate
from ctrlmgr.scheduling.structured.pools import NodePlace
from ctrlmgr.scheduling.volume_binding import allotted

log = structlog.get_logger(__name__)

Wake = Callable[[Key, float, tuple[Revision, ...]], None]
"""The type of a function that adds a key to the controller's queue after a number of seconds; the revisions are
recorded as triggers of the reconcile.
"""

_CHANGES: Final = Key("", "*")
_WORKERS: Final = 8
"""The maximum number of concurrent bindings."""


_CUT: Final = " ..."
"""The ending of a message that was truncated."""


class _Chosen(NamedTuple):
    """A pod to bind and its node; the model of the cluster already counts the pod on that node."""

    entry: Entry
    pod: Object
    node: str


class Scheduler:
    """Reconciles the scheduler's keys; the module's docstring lists them."""

    def __init__(
        self,
        pods: Lister,
        watched: Sequence[Lister],
        surroundings: DecisionInputs,
        recorder: Recorder,
        options: Options,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        """Create a scheduler that reads from the caches; `random` chooses among equally good nodes.

        The argument `watched` contains the caches whose changes are passed to `keys`.
        """
        self._watched = watched
        self.world = SchedulerCache(options.scheduler_name)
        self.waiting = Waiting()
        self.wake: Wake = lambda key, seconds, revisions: None
        self._name = options.scheduler_name
        self._pods = pods
        self._surroundings = surroundings
        self._recorder = recorder
        self._clock = clock
        self._random = random
        self._start = 0
        # Held during a decision; guards the model of the cluster, the waiting pods and the random source.
        self._deciding = Lock()

    def on_start(self) -> Iterator[Key]:
        """Reset all state from the caches, because another process may have scheduled pods meanwhile."""
        self.waiting = Waiting()
        self.world.restart()
        self._surroundings.devices.follow()
        for lister in self._watched:
            for obj in lister.list():
                self.world.note(Change(EventType.ADDED, None, obj, obj.revision))
        yield _CHANGES

    def keys(self, change: Change) -> Iterator[Key]:
        """Queue a change and yield the key that processes it; only the informers' thread may call this method."""
        self.world.note(change)
        yield _CHANGES

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Process pending changes.

        After pending changes have been processed, schedule a pod, unless a more important pod is waiting.
        """
        with self._deciding:
            self._catch_up()
            if key == _CHANGES:
                return None
            now = self._clock.monotonic()
            seconds = self.waiting.seconds_until(key, now)
            if seconds is None or seconds > 0:
                return Result(requeue_after=seconds)
            if self.waiting.must_wait(key, now):
                return Result(requeue_after=0.0)
            decided = self._decide(self.waiting.take(key), client)
        if isinstance(decided, _Chosen):
            self._bind(decided, client)
            return None
        return Result(requeue_after=decided)

    def _catch_up(self) -> None:
        now = self._clock.monotonic()
        for seen in self.world.catch_up():
            if seen.gone is not None:
                self.waiting.forget(seen.gone)
            if seen.waiting is not None:
                self._offer(seen.waiting, seen.revision)
            if seen.claim is not None:
                self._surroundings.devices.note(seen.claim.object, is_deleted=seen.claim.new is None)
            if seen.happening is ClusterEvent.DEVICES:
                for pod in [*self.waiting.gated.values()]:
                    self._offer(pod, seen.revision)
            if seen.happening is not None:
                for key, seconds in self.waiting.happened(seen.happening, now):
                    self.wake(key, seconds, (seen.revision,))

    def _offer(self, pod: PodInfo, revision: Revision) -> None:
        """Queue a pod, unless it has scheduling gates or a missing resource claim."""
        lacks = self._surroundings.devices.missing(pod)
        if self.waiting.offer(pod, self._clock.monotonic(), lacks=lacks):
            self.wake(pod.key, 0.0, (revision,))
        elif lacks:
            log.debug("queueing pod failed", pod=str(pod.key), reason=lacks)

    def _decide(self, entry: Entry, client: EngineClient) -> _Chosen | float | None:
        """Find a node for a pod, and bind the pod to it.

        Return the pod's node, or the seconds until the retry; None means no retry.
        """
        pod = self._pods.get(entry.pod.key)
        if pod is None or pod.uid != entry.pod.uid:
            self.waiting.forget(entry.pod.key)
            return None
        decision = self.decision(entry.pod)
        self._start = decision.next_start
        if decision.best:
            node = self._random.choice(decision.best)
            if entry.pod.claims and self._claim_volumes(entry, node, client):
                return self.waiting.failed(entry, frozenset(["VolumeBinding"]), self._clock.monotonic())
            if entry.pod.view.spec.resource_claims:
                self._reserve_devices(entry, node, client)
            self.world.assume(entry.pod, node)
            self.waiting.forget(entry.pod.key)
            return _Chosen(entry, pod, node)
        try:
            self._refuse(pod, decision, client)
        except CtrlmgrError:
            self.waiting.retry(entry, self._clock.monotonic())
            raise
        return self.waiting.failed(entry, decision.plugins, self._clock.monotonic())

    def decision(self, pod: PodInfo) -> Decision:
        """Return the decision about a pod in the current state of the cluster."""
        around = self._surroundings
        nodes = len(self.world.cluster.nodes)
        return decide(
            pod,
            self.world.cluster,
            budgets=around.budgets(),
            volumes=around.volumes(pod),
            devices=around.devices.of(pod),
            default_selector=None if pod.spread else around.default_selector(pod),
            start=self._start,
            offset=self._random.randrange(nodes) if nodes else 0,
        )

    def _claim_volumes(self, entry: Entry, node: str, client: EngineClient) -> bool:
        """Bind the pod's delayed claims to volumes of its node, or request their provisioning.

        Return whether a claim is not bound yet.
        """
        delayed = self._surroundings.volumes(entry.pod).delayed
        if not delayed:
            return False
        desired = allotted(delayed, node, self.world.cluster.nodes[node].labels) or {}
        try:
            for key, volume in desired.items():
                self._surroundings.claim(key, volume, node, client)
        except CtrlmgrError:
            self.waiting.retry(entry, self._clock.monotonic())
            raise
        return True

    def _reserve_devices(self, entry: Entry, node: str, client: EngineClient) -> None:
        """Allocate the pod's resource claims for its node, and reserve them for the pod."""
        devices, place = self._surroundings.devices, self.world.cluster.nodes[node]
        now = format_time_seconds(self._clock.now())
        try:
            found = devices.of(entry.pod)
            devices.reserve(entry.pod, NodePlace(node, place.labels), found, client, now, lambda: new_uid(self._random))
        except CtrlmgrError:
            self.waiting.retry(entry, self._clock.monotonic())
            raise

    def _bind(self, chosen: _Chosen, client: EngineClient) -> None:
        entry, pod, node = chosen
        try:
            client.bind(pod, node)
        except NotFound:
            with self._deciding:
                self.world.withdraw(entry.pod.key)
            return
        except CtrlmgrError:
            with self._deciding:
                self.world.withdraw(entry.pod.key)
                self.waiting.retry(entry, self._clock.monotonic())
            raise
        message = f"Successfully assigned {pod.key} to {node}"
        self._recorder.event(pod, NORMAL, "Scheduled", message, action="Binding")

    # Methods that handle a pod for which no node is suitable.

    def _refuse(self, pod: Object, decision: Decision, client: EngineClient) -> None:
        candidate = decision.preemption.candidate if decision.preemption is not None else None
        if candidate is not None:
            self._make_room(candidate, pod, client)
            self.world.cluster.nominate(PodInfo.of(pod), candidate.node)
        elif decision.nominated == "":
            self.world.cluster.drop_nomination(pod.key)
        if decision.deallocation is not None:
            self._surroundings.devices.deallocate(decision.deallocation, client)
        self._recorder.event(pod, WARNING, "FailedScheduling", as_note(decision.message), action="Scheduling")
        self._tell_status(pod, decision, client)

    def _tell_status(self, pod: Object, decision: Decision, client: EngineClient) -> None:
        fields = pod.to_dict()
        status = fields.get("status") or {}
        generation = fields["metadata"].get("generation", 0)
        current = condition_of(status.get("conditions"), "PodScheduled")
        condition: dict[str, Any] = {
            "type": "PodScheduled",
            "observedGeneration": generation,
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": format_time_seconds(self._clock.now()),
            "reason": decision.reason,
            "message": decision.message,
        }
        if current is not None and current["status"] == "False":
            condition["lastTransitionTime"] = current.get("lastTransitionTime") or condition["lastTransitionTime"]
        patch: dict[str, Any] = {}
        if current is None or {**current, **condition} != current:
            patch["conditions"] = [condition]
        if decision.nominated is not None and decision.nominated != status.get("nominatedNodeName", ""):
            patch["nominatedNodeName"] = decision.nominated or None
        if patch:
            try:
                client.patch(pod, {"metadata": {"uid": pod.uid}, "status": patch}, "status")
            except NotFound:
                log.debug("pod already deleted", pod=str(pod.key))

    def _make_room(self, candidate: Candidate, preemptor: Object, client: EngineClient) -> None:
        for each in candidate.victims:
            victim = self._pods.get(each.key)
            if victim is None or victim.uid != each.uid or victim.is_terminating:
                continue
            try:
                self._preempt(victim, candidate.node, preemptor, client)
            except NotFound:
                log.debug("pod already deleted", pod=str(victim.key))
        for other in [*self.world.cluster.nominated.get(candidate.node, {}).values()]:
            if other.priority < PodInfo.of(preemptor).priority:
                self._clear_nomination(other, client)

    def _preempt(self, victim: Object, node: str, preemptor: Object, client: EngineClient) -> None:
        fields = victim.to_dict()
        status = fields.setdefault("status", {})
        condition = {
            "type": "DisruptionTarget",
            "observedGeneration": fields["metadata"].get("generation", 0),
            "status": "True",
            "lastTransitionTime": format_time_seconds(self._clock.now()),
            "reason": "PreemptionByScheduler",
            "message": f"{self._name}: preempting to accommodate a higher priority pod",
        }
        conditions = with_condition(status.get("conditions"), condition)
        if conditions != (status.get("conditions") or []):
            patch = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
            client.patch(victim, patch, "status")
        client.delete(victim)
        message = f"Preempted by pod {preemptor.uid} on node {node}"
        self._recorder.event(victim, NORMAL, "Preempted", message, action="Preempting", related=preemptor)

    def _clear_nomination(self, other: PodInfo, client: EngineClient) -> None:
        pod = self._pods.get(other.key)
        self.world.cluster.drop_nomination(other.key)
        if pod is None:
            return
        try:
            client.patch(pod, {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": None}}, "status")
        except ApiError as error:
            log.info("clearing nomination failed", pod=str(pod.key), error=str(error))


def as_note(message: str) -> str:
    """Return a message, truncated to the length limit of an Event (`truncateMessage`)."""
    text = message.encode()
    if len(text) <= NOTE_LENGTH:
        return message
    return text[: NOTE_LENGTH - len(_CUT)].decode(errors="ignore") + _CUT


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    informers = context.informers
    storage = (CLAIMS, VOLUMES, CLASSES, CSI_NODES, VOLUME_ATTACHMENTS)
    devices = (RESOURCE_CLAIMS, DEVICE_CLASSES, RESOURCE_SLICES)
    watched = [informers.informer(each) for each in (NAMESPACES, NODES, PODS, *storage, *devices)]
    scheduler = Scheduler(
        informers.informer(PODS).lister,
        [each.lister for each in watched],
        DecisionInputs(lambda resource: informers.informer(resource).lister),
        context.recorder(DESCRIPTOR),
        options,
        clock=context.clock,
        random=Random(options.simulated_seed) if options.simulated_seed else context.random,
    )
    watches = [Watch(each, scheduler.keys) for each in watched]
    controller = assemble(DESCRIPTOR, context, scheduler, watches, workers=_WORKERS)
    scheduler.wake = controller.queue.add_after
    return controller
