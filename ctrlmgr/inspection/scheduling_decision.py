"""Repeats the scheduler's decision about a pod, with the state that the scheduler used.

Guarantees: the log does not need to contain decisions. The state before the decision is read from the log, and the
scheduler's own functions decide again with the default profile. For pods of the default profile, refusals and scores
equal those of the original decision. If the state before the decision was compacted, `Expired` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from ctrlmgr.api.resource import NAMESPACES, NODES, PODS, Key, Resource, Revision
from ctrlmgr.controllers.persistentvolume_binder.volume_index import index_by_possible_claims
from ctrlmgr.controllers.scheduler import DESCRIPTOR
from ctrlmgr.controllers.scheduler.decision_inputs import VOLUMES, DecisionInputs
from ctrlmgr.controllers.scheduler.group_algorithm import WHOLE, Scope
from ctrlmgr.controllers.scheduler.pod_groups import FEW_PODS, minimum, no_group
from ctrlmgr.controllers.scheduler.scheduled_claims import RESOURCE_CLAIMS
from ctrlmgr.controllers.scheduler.scheduler_cache import POD_GROUPS
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Lister, Store
from ctrlmgr.inspection import group_repetition, historical_state
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.group_repetition import GroupRepeater, GroupRepetition
from ctrlmgr.scheduling.cluster_model import Cluster, NodeInfo, PodInfo
from ctrlmgr.scheduling.cycle import Decision, decide
from ctrlmgr.scheduling.dynamic_resources import PLUGIN as DYNAMIC
from ctrlmgr.scheduling.dynamic_resources import Devices
from ctrlmgr.scheduling.profile import DEFAULT

_WIDEST: Final = 40
_MOST_NODES, _MOST_DEVICES = 10, 8
"""The maximum number of nodes whose devices are explained, and of devices of each node."""
_UNKNOWN: Final = "an extender, a plugin of an app or a profile, which the log does not contain"


class Placement(NamedTuple):
    """A decision about a pod, written at a revision; `node` is the chosen node, empty if no node was suitable."""

    revision: Revision
    key: Key
    node: str
    decision: Decision
    devices: Mapping[str, Sequence[str]] = {}
    """For each node that lacks devices for the pod, the reasons why its devices were not allocated."""
    notes: Sequence[str] = ()
    """The differences between the decision that was written and the repeated decision, as text."""


def of(database: Database, key: Key, *, until: Revision) -> Placement | None:
    """Return the last decision of ctrlmgr's scheduler about a pod; None if there is no decision.

    Raises `Expired` if the state before the decision was compacted.
    """
    changes = historical_state.history(database, PODS, key, until=until)
    own = [each for each in changes if each.author.controller == DESCRIPTOR.name and each.before is not None]
    if not own:
        return None
    last = own[-1]
    pod = PodInfo.of(last.before or last.object)
    if pod.node_name:
        return None  # the scheduler wrote to this pod to preempt it, which is not a decision about the pod's node
    after = PodInfo.of(last.object)
    around = _inputs(database, last.revision - 1)
    cluster = _cluster(database, last.revision - 1)
    repeated = _repeated(database, pod, last.revision, until) if pod.group is not None else None
    decision = repeated.decision if repeated is not None else _decided(pod, cluster, around)
    found = _device_reasons(decision, cluster, around.devices.of(pod))
    notes = [*repeated.lines] if repeated is not None else []
    if repeated is None or repeated.is_feasible:
        notes += _notes(after, decision)
    return Placement(last.revision, key, after.node_name, decision, found, notes)


def _repeated(database: Database, pod: PodInfo, revision: Revision, until: Revision) -> GroupRepetition | None:
    """Return the repeated decision about the group of a pod; None if the pod was not decided with its group."""
    assert pod.group is not None
    at = group_repetition.first_write(database, pod.group, revision) - 1
    group = next(
        (each for each in historical_state.objects(database, POD_GROUPS, at=at) if each.key == pod.group), None
    )
    if group is None:
        return None
    later = (PodInfo.of(each) for each in historical_state.objects(database, PODS, at=until))
    bound = {each.key: each.node_name for each in later if each.group == pod.group}
    around, objects = _inputs(database, at), _listing(database, at)
    around.devices.follow()
    for each in objects(RESOURCE_CLAIMS).list():
        around.devices.note(each, is_deleted=False)

    def decide_one(other: PodInfo, cluster: Cluster, scope: Scope) -> Decision:
        return _decided(other, cluster, around, scope)

    return GroupRepeater(group, objects, around, bound).repeat(pod, decide_one)


def waiting(database: Database, key: Key, *, until: Revision) -> str:
    """Return the reason why the scheduler has not queued a pod.

    Return "" if the scheduler has queued the pod or does not know the pod.
    """
    changes = historical_state.history(database, PODS, key, until=until)
    if not changes or changes[-1].type is EventType.DELETED:
        return ""
    pod = PodInfo.of(changes[-1].object)
    if pod.node_name or pod.has_ended or pod.is_terminating:
        return ""
    if gates := pod.view.spec.scheduling_gates:
        return f"it has scheduling gates: {', '.join(each.name for each in gates)}"
    if lacks := _inputs(database, until).devices.missing(pod) or _incomplete(database, pod, until):
        return lacks
    name = pod.view.spec.scheduler_name
    return "" if name in ("", DEFAULT.scheduler_name) else f"it names the scheduler {name}, which did not write to it"


def _incomplete(database: Database, pod: PodInfo, at: Revision) -> str:
    """Return a description of what the pod's gang lacks; "" if the pod belongs to no gang."""
    if pod.group is None:
        return ""
    groups = historical_state.objects(database, POD_GROUPS, at=at)
    group = next((each for each in groups if each.key == pod.group), None)
    if group is None:
        return no_group(pod.group)
    members = (PodInfo.of(each) for each in historical_state.objects(database, PODS, at=at))
    count = sum(each.group == pod.group and not each.has_ended for each in members)
    least = minimum(group)
    return f"{FEW_PODS}: {count} of {least} pods exist" if count < least else ""


def _notes(pod: PodInfo, decision: Decision) -> Iterator[str]:
    """Yield descriptions of the differences between the decision that was written and the repeated decision."""
    name = pod.view.spec.scheduler_name
    if name not in ("", DEFAULT.scheduler_name):
        yield f"the profile {name} decided; the lines above show the decision of the default profile"
    conditions = pod.view.status.conditions or ()
    message = next((each.message for each in conditions if each.type == "PodScheduled" and each.status == "False"), "")
    if decision.best and not pod.node_name and message:
        yield f"the scheduler refused the pod because of {_UNKNOWN}: {message}"
    if pod.node_name in decision.refusals:
        yield f"the scheduler chose {pod.node_name} because of {_UNKNOWN}"


def _device_reasons(decision: Decision, cluster: Cluster, devices: Devices) -> dict[str, list[str]]:
    if devices.allocating is None:
        return {}
    names = sorted(name for name, each in decision.refusals.items() if each.plugin == DYNAMIC)
    return {name: devices.allocating.reasons(name, cluster.nodes[name].labels) for name in names[:_MOST_NODES]}


def _inputs(database: Database, at: Revision) -> DecisionInputs:
    return DecisionInputs(_listing(database, at))


def _listing(database: Database, at: Revision) -> Callable[[Resource], Lister]:
    """Return a function that returns the objects of a resource at a revision; each resource is read once."""

    @cache
    def listing(resource: Resource) -> Lister:
        store = Store()
        store.replace(historical_state.objects(database, resource, at=at))
        if resource == VOLUMES:
            index_by_possible_claims(store)
        return store

    return listing


def _cluster(database: Database, at: Revision) -> Cluster:
    cluster = Cluster(NodeInfo.of(each) for each in historical_state.objects(database, NODES, at=at))
    cluster.namespaces = {each.name: each.labels for each in historical_state.objects(database, NAMESPACES, at=at)}
    for each in historical_state.objects(database, PODS, at=at):
        other = PodInfo.of(each)
        if other.has_ended:
            continue
        if other.node_name in cluster.nodes:
            cluster.nodes[other.node_name].add(other)
        elif other.nominated and not other.node_name:
            cluster.nominate(other, other.nominated)
    return cluster


def _decided(pod: PodInfo, cluster: Cluster, around: DecisionInputs, scope: Scope = WHOLE) -> Decision:
    return decide(
        pod,
        cluster,
        budgets=around.budgets(),
        volumes=around.volumes(pod),
        devices=around.devices.of(pod),
        default_selector=None if pod.spread else around.default_selector(pod),
        within=scope.nodes,
        no_preemption=scope.no_preemption,
    )


def lines(placement: Placement) -> Iterator[str]:
    """Yield lines that describe a decision, one line per node.

    The nodes that can run the pod come first, sorted by score from the highest to the lowest.
    """
    decision = placement.decision
    yield ""
    yield f"how the scheduler chose its node, at revision {placement.revision}:"
    sums = decision.scores.sums()
    width = min(max(map(len, (*sums, *decision.refusals, *decision.best)), default=0), _WIDEST)
    if not sums:
        for name in decision.best:
            yield f"  {name:{width}}  the only suitable node"
    for name in sorted(sums, key=lambda each: (-sums[each], each)):
        parts = ", ".join(f"{plugin} {given}" for plugin, given in decision.scores.of(name).items())
        chosen = "  <- chosen" if name == placement.node else ""
        yield f"  {name:{width}}  {sums[name]:4}  {parts}{chosen}"
    for name, refusal in sorted(decision.refusals.items()):
        yield f"  {name:{width}}  rejected by {refusal.plugin}: {', '.join(refusal.reasons)}"
        reasons = placement.devices.get(name, ())
        yield from (f"    {each}" for each in reasons[:_MOST_DEVICES])
        if len(reasons) > _MOST_DEVICES:
            yield f"    … and {len(reasons) - _MOST_DEVICES} more devices"
    if decision.message:
        yield f"  {decision.message}"
    yield from (f"  {each}" for each in placement.notes)
    if decision.preemption is not None and decision.preemption.candidate is not None:
        candidate = decision.preemption.candidate
        victims = ", ".join(str(each.key) for each in candidate.victims)
        yield f"  preemption on {candidate.node}: {victims} are deleted"
