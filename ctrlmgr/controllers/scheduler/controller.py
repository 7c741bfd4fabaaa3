"""The scheduler: takes unscheduled pods one by one, decides with `ctrlmgr.scheduling`, and writes the decision.

Guarantees:
- The scheduler decides about one pod at a time; each decision takes all earlier decisions into account. The pod with
  the highest priority is scheduled first. Bindings are written concurrently with later decisions, which already count
  the bound pods on their nodes. The claims of a pod are also written concurrently with decisions, before the pod's
  binding. Decisions count the pod's volumes and devices as soon as its node is chosen.
- If a node is found, the pod is bound through `pods/NAME/binding`. If no node is found, the condition PodScheduled and
  an Event contain the reason, with kube-scheduler's messages. Preemption sets a condition on less important pods, and
  then deletes them.
- Pods of other schedulers, pods with scheduling gates, and pods whose resource claims do not exist yet are ignored.

The key `*` stands for the processing of pending changes. A key with a namespace and a name stands for a pod to
schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from threading import Lock
from time import perf_counter
from typing import Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, NODES, PODS, Key, Revision
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import NORMAL, Recorder
from ctrlmgr.controllers.persistentvolume_binder.volume_index import claim_reference, index_by_possible_claims
from ctrlmgr.controllers.scheduler import DESCRIPTOR, Options, scheduler_metrics
from ctrlmgr.controllers.scheduler.attached_volumes import CSI_NODES, VOLUME_ATTACHMENTS
from ctrlmgr.controllers.scheduler.awaiting_pods import AwaitingPod, AwaitingPods
from ctrlmgr.controllers.scheduler.binding_writes import Binding, BindingWrites
from ctrlmgr.controllers.scheduler.configuration import Configuration, configured
from ctrlmgr.controllers.scheduler.decision_inputs import CLAIMS, CLASSES, VOLUMES, DecisionInputs
from ctrlmgr.controllers.scheduler.extender_calls import Extenders
from ctrlmgr.controllers.scheduler.group_algorithm import WHOLE, Choice, GroupAlgorithm, Scope
from ctrlmgr.controllers.scheduler.group_cycle import GroupCycle
from ctrlmgr.controllers.scheduler.pod_groups import WORKLOADS, PodGroups, current_gates
from ctrlmgr.controllers.scheduler.preemption_writes import scheduler_of
from ctrlmgr.controllers.scheduler.queueing_hints import ClusterEvent, Happening
from ctrlmgr.controllers.scheduler.refusal_writes import RefusalWrites
from ctrlmgr.controllers.scheduler.scheduled_claims import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from ctrlmgr.controllers.scheduler.scheduler_cache import POD_GROUPS, SchedulerCache
from ctrlmgr.controllers.scheduler.scheduling_queue import Entry, Waiting
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.errors import CtrlmgrError, NotFound
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch
from ctrlmgr.scheduling.awaited_volumes import AwaitedVolumes, progress
from ctrlmgr.scheduling.cluster_model import PodInfo
from ctrlmgr.scheduling.cycle import FAILED, Decision, decide
from ctrlmgr.scheduling.extenders import Extender, ExtenderError
from ctrlmgr.scheduling.structured.tainting_rules import DEVICE_TAINT_RULES
from ctrlmgr.scheduling.structured.tainting_rules import GATE as RULES_GATE

log = structlog.get_logger(__name__)

Wake = Callable[[Key, float, tuple[Revision, ...]], None]
"""The type of a function that adds a key to the controller's queue after a number of seconds; the revisions are
recorded as triggers of the reconcile.
"""

_CHANGES: Final = Key("", "*")
_WORKERS: Final = 8
"""The maximum number of concurrent bindings."""


class Scheduler:
    """Reconciles the scheduler's keys; the module's docstring lists them."""

    def __init__(
        self,
        pods: Lister,
        nodes: Lister,
        groups: Lister | None,
        watched: Sequence[Lister],
        surroundings: DecisionInputs,
        recorder: Callable[[str], Recorder],
        configuration: Configuration,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        """Create a scheduler that reads from the caches; `random` chooses among equally good nodes.

        The argument `watched` contains the caches whose changes are passed to `keys`. `recorder` returns the recorder
        of a profile's Events, by the profile's `schedulerName`.
        """
        self._watched = watched
        self._configuration = configuration
        self._profiles = {each.scheduler_name: each for each in configuration.profiles}
        self._recorders = {name: recorder(name) for name in self._profiles}
        self.world = SchedulerCache(self._profiles)
        self.waiting = self._queue()
        self.wake: Wake = lambda key, seconds, revisions: None
        self._pods = pods
        self._extenders = Extenders(configuration.extenders, nodes, pods)
        self._refusals = RefusalWrites(pods, surroundings.devices, self._recorders, clock)
        self._surroundings = surroundings
        self._clock = clock
        self._random = random
        self._start = 0
        self._bindings = BindingWrites(surroundings, clock, random)
        self._groups = PodGroups(groups, self.world, clock, current_gates())
        choice = Choice(lambda pod, nodes: random.choice(nodes), random.choice)
        algorithm = GroupAlgorithm(self._groups, self.world, self._bindings, choice, surroundings.budgets)
        self._group_cycle = GroupCycle(algorithm, self._groups, self._refusals, self._decision_of)
        # Pods of groups that may be bound. The reconcile of a pod's key binds the pod.
        self._permitted: dict[Key, Binding] = {}
        self._awaited = AwaitingPods()
        # This lock is held during a decision. The lock guards the model of the cluster, the waiting pods and the random
        # source.
        self._deciding = Lock()

    def on_start(self) -> Iterator[Key]:
        """Read all state from the caches again, because another process may have scheduled pods in the meantime."""
        self.waiting = self._queue()
        self._awaited.clear()
        self._permitted.clear()
        self._surroundings.assumed.clear()
        self.world.restart()
        self._surroundings.devices.follow()
        for lister in self._watched:
            for obj in lister.list():
                self.world.note(Change(EventType.ADDED, None, obj, obj.revision))
        yield _CHANGES

    def pending(self) -> Mapping[tuple[str, ...], int]:
        """Return the number of pods of each queue."""
        return self.waiting.counts(self._clock.monotonic())

    def refusing(self) -> Mapping[tuple[str, ...], int]:
        """Return the number of pods that each plugin refused."""
        return self.waiting.refusing()

    def _queue(self) -> Waiting:
        return Waiting(float(self._configuration.first_backoff), float(self._configuration.longest_backoff))

    def keys(self, change: Change) -> Iterator[Key]:
        """Queue a change and yield the key that processes it; only the informers' thread may call this method."""
        self.world.note(change)
        yield _CHANGES

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Apply the pending changes of objects to the scheduler's model.

        After pending changes have been processed, schedule a pod, unless a more important pod is waiting.
        """
        with self._deciding:
            self._catch_up()
            if key == _CHANGES:
                return None
            decided: Binding | float | None = self._permitted.pop(key, None)
            if decided is None:
                now = self._clock.monotonic()
                seconds = self.waiting.seconds_until(key, now)
                if seconds is None or seconds > 0:
                    return Result(requeue_after=seconds)
                if self.waiting.must_wait(key, now):
                    return Result(requeue_after=0.0)
                decided = self._decide(self.waiting.take(key, now), client)
        if isinstance(decided, Binding):
            decided = self._bind(decided, client)
        return Result(requeue_after=decided) if decided is not None else None

    def _catch_up(self) -> None:
        now = self._clock.monotonic()
        for seen in self.world.catch_up():
            if seen.gone is not None:
                self.waiting.forget(seen.gone)
                self._awaited.pop(seen.gone)
            if seen.waiting is not None:
                self._offer(seen.waiting, seen.revision)
            if seen.group is not None:
                self._offer_members(seen.group, seen.revision)
            if seen.change is not None:
                self._note(seen.change, now)
            if seen.happening is not None:
                self._wake_after(seen.happening, (seen.revision,))

    def _wake_after(self, happening: Happening, revisions: tuple[Revision, ...] = ()) -> None:
        for key, seconds in self.waiting.happened(happening, self._clock.monotonic()):
            self.wake(key, seconds, revisions)

    def _note(self, change: Change, now: float) -> None:
        """Process a change of a claim, a volume, or an object that describes devices."""
        obj = change.object
        if obj.resource in (CLAIMS, VOLUMES):
            claim = obj.key if obj.resource == CLAIMS else claim_reference(obj)
            for key in self._awaited.for_claim(claim):
                self.waiting.volume_changed(key, now)
                self.wake(key, 0.0, (change.revision,))
        if obj.resource.group == RESOURCE_CLAIMS.group:
            self._surroundings.devices.note(obj, is_deleted=change.new is None)
        if obj.resource == RESOURCE_CLAIMS:
            for pod in self.waiting.gated_by(obj):
                self._offer(pod, change.revision)

    def _offer(self, pod: PodInfo, revision: Revision) -> None:
        """Queue a pod, unless it has scheduling gates or one of its resource claims is missing."""
        lacks = self._surroundings.devices.missing(pod) or self._groups.missing(pod)
        if self.waiting.offer(pod, self._clock.monotonic(), lacks=lacks):
            self.wake(pod.key, 0.0, (revision,))
        elif lacks:
            log.debug("queueing pod failed", pod=str(pod.key), reason=lacks)

    def _offer_members(self, group: Key, revision: Revision) -> None:
        """Queue the pods of a PodGroup that waited for the group or for other pods."""
        gated = [self.waiting.gated[each] for each in self.world.members.get(group, ()) if each in self.waiting.gated]
        if gated and not self._groups.missing(gated[0]):
            for pod in sorted(gated, key=lambda each: each.key):
                self._offer(pod, revision)

    def _decide(self, entry: Entry, client: EngineClient) -> Binding | float | None:
        """Find a node for a pod, and bind the pod to it.

        Return the pod's node, or the seconds until the retry; None means no retry.
        """
        pod = self._pods.get(entry.pod.key)
        if pod is None or pod.uid != entry.pod.uid:
            self.waiting.forget(entry.pod.key)
            return None
        awaited = self._awaited.pop(entry.pod.key)
        if awaited is not None:
            return self._bound_volumes(awaited, client)
        group = self._groups.of(entry.pod)
        if group is not None:
            return self._decide_group(group, entry, pod, client)
        decision = self._decision_of(entry, pod, client)
        if decision.best:
            return self._reserve(entry, pod, self._random.choice(decision.best))
        try:
            self._refusals.write(entry, pod, decision, self.world.cluster, client)
        except CtrlmgrError:
            self.waiting.retry(entry, self._clock.monotonic())
            raise
        if decision.reason == FAILED and not decision.plugins:
            return self.waiting.retry(entry, self._clock.monotonic())
        return self.waiting.failed(entry, decision.plugins, self._clock.monotonic())

    def _decide_group(self, group: Key, entry: Entry, pod: Object, client: EngineClient) -> Binding | float | None:
        """Decide about all waiting pods of a group; return the decision about the first pod."""
        members = [(entry, pod)]
        for key in self.world.members.get(group, ()):
            other = self._pods.get(key)
            if key == entry.pod.key or other is None or key not in self.waiting.entries or key in self._awaited:
                continue
            if other.uid == self.waiting.entries[key].pod.uid:
                members.append((self.waiting.take(key, entry.taken_at), other))
        members.sort(key=lambda each: each[0].order)
        preempts = self._profiles[entry.pod.view.spec.scheduler_name].preempts
        found: dict[Key, Binding] = {}
        try:
            bindings = self._group_cycle.run(group, members, self.world.cluster, client, preempts=preempts)
            found = {each.entry.pod.key: each for each in bindings}
        finally:
            now = self._clock.monotonic()
            for each, _ in members:
                if each.pod.key in found:
                    self.waiting.forget(each.pod.key)
                else:
                    self.wake(each.pod.key, self.waiting.retry(each, now), ())
        own = found.pop(entry.pod.key, None)
        self._permitted.update(found)
        for key in found:
            self.wake(key, 0.0, ())
        return own

    def _decision_of(self, entry: Entry, pod: Object, client: EngineClient, scope: Scope = WHOLE) -> Decision:
        began = perf_counter()
        decision = self.decision(entry.pod, self._extenders.of(pod, client), scope)
        self._start = decision.next_start
        scheduler_metrics.ALGORITHM_SECONDS.observe(perf_counter() - began)
        return decision

    def _reserve(self, entry: Entry, pod: Object, node: str) -> Binding:
        try:
            binding = self._bindings.reserve(entry, pod, node, self.world.cluster.nodes[node].labels)
        except CtrlmgrError:
            self.waiting.retry(entry, self._clock.monotonic())
            raise
        self.world.assume(entry.pod, node)
        self.waiting.forget(entry.pod.key)
        return binding

    def _await(self, awaited: AwaitingPod) -> float:
        entry, now = awaited.binding.entry, self._clock.monotonic()
        self._awaited.put(awaited)
        return self.waiting.await_volumes(entry, awaited.volumes.until - now, now)

    def _bound_volumes(self, awaited: AwaitingPod, client: EngineClient) -> Binding | float | None:
        """Continue a pod that waits for its volumes.

        If all its volumes are bound now, return its binding. If the pod must wait, the method returns the seconds until
        the next attempt.
        """
        entry, node = awaited.binding.entry, self.world.cluster.nodes.get(awaited.binding.node)
        labels = node.labels if node is not None else None
        found = progress(awaited.volumes, self._surroundings.volumes(entry.pod), labels, self._clock.monotonic())
        if not found.is_bound and not found.problem:
            return self._await(awaited)
        if found.is_bound:
            self.waiting.forget(entry.pod.key)
            return awaited.binding.written()
        self._withdraw(awaited.binding, client)
        plugins = frozenset(["VolumeBinding"])
        decision = Decision(message=found.problem, plugins=plugins, reason=FAILED)
        self._refusals.write(entry, awaited.binding.pod, decision, self.world.cluster, client)
        return self.waiting.retry(entry, self._clock.monotonic())

    def decision(self, pod: PodInfo, extenders: Sequence[Extender] = (), scope: Scope = WHOLE) -> Decision:
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
            profile=self._profiles[pod.view.spec.scheduler_name],
            extenders=extenders,
            start=self._start,
            offset=self._random.randrange(nodes) if nodes else 0,
            within=scope.nodes,
            no_preemption=scope.no_preemption,
        )

    def _bind(self, binding: Binding, client: EngineClient) -> float | None:
        """Write a pod's reservations, and bind the pod.

        If the pod must wait for its volumes, return the seconds until the volumes are checked.

        The caller must not hold the lock.
        """
        entry, pod, node = binding.entry, binding.pod, binding.node
        try:
            if binding.has_writes:
                self._bindings.write(binding, client, self._deciding)
            if binding.provisioned is not None:
                with self._deciding:
                    self._catch_up()
                    seconds = self._profiles[scheduler_of(pod)].bind_timeout
                    until = self._clock.monotonic() + seconds
                    awaited = AwaitingPod(AwaitedVolumes(node, until, binding.provisioned), binding)
                    found = self._bound_volumes(awaited, client)
                if not isinstance(found, Binding):
                    return found
            self._extenders.bind(pod, node, client)
        except ExtenderError as error:
            with self._deciding:
                self._withdraw(binding, client)
                decision = Decision(message=str(error), reason=FAILED)
                self._refusals.write(entry, pod, decision, self.world.cluster, client)
                return self.waiting.retry(entry, self._clock.monotonic())
        except CtrlmgrError as error:
            with self._deciding:
                self._withdraw(binding, client)
                if isinstance(error, NotFound):
                    return None
                self.waiting.retry(entry, self._clock.monotonic())
            raise
        if binding.has_reservations:
            with self._deciding:
                self._bindings.forget(binding)
        now = self._clock.monotonic()
        scheduler_metrics.count_attempt(scheduler_metrics.SCHEDULED, scheduler_of(pod), now - entry.taken_at)
        scheduler_metrics.count_scheduled(entry.attempts, now - entry.since)
        message = f"Successfully assigned {pod.key} to {node}"
        self._recorders[scheduler_of(pod)].event(pod, NORMAL, "Scheduled", message, action="Binding")
        return None

    def _withdraw(self, binding: Binding, client: EngineClient) -> None:
        self.world.withdraw(binding.entry.pod.key)
        self._bindings.release(binding, client)
        self._wake_after(Happening(ClusterEvent.POD_GONE, old_pod=binding.entry.pod))


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    informers = context.informers
    storage = (CLAIMS, VOLUMES, CLASSES, CSI_NODES, VOLUME_ATTACHMENTS)
    devices = [RESOURCE_CLAIMS, DEVICE_CLASSES, RESOURCE_SLICES, *([DEVICE_TAINT_RULES] if is_on(RULES_GATE) else ())]
    groups = (POD_GROUPS,) if is_on(WORKLOADS) else ()
    watched = [informers.informer(each) for each in (NAMESPACES, NODES, PODS, *storage, *devices, *groups)]
    index_by_possible_claims(informers.informer(VOLUMES))
    configuration = configured(options.scheduler_config, options.scheduler_name, context.scheduler_plugins)
    scheduler = Scheduler(
        informers.informer(PODS).lister,
        informers.informer(NODES).lister,
        informers.informer(POD_GROUPS).lister if groups else None,
        [each.lister for each in watched],
        DecisionInputs(lambda resource: informers.informer(resource).lister),
        lambda name: context.recorder(replace(DESCRIPTOR, component=name)),
        configuration,
        clock=context.clock,
        random=Random(options.simulated_seed) if options.simulated_seed else context.random,
    )
    watches = [Watch(each, scheduler.keys) for each in watched]
    controller = assemble(DESCRIPTOR, context, scheduler, watches, workers=_WORKERS)
    scheduler.wake = controller.queue.add_after
    scheduler_metrics.PENDING_PODS.add(scheduler.pending)
    scheduler_metrics.UNSCHEDULABLE_PODS.add(scheduler.refusing)
    scheduler_metrics.CACHE_SIZE.add(scheduler.world.sizes)
    return controller
