"""Repeats the scheduler's decision about a pod, on the state that the scheduler used.

Guarantees: decisions need not be stored in the log. The state before the decision is read from the log, and the
scheduler's own functions decide again with the default profile. Refusals and scores equal the original ones for pods of
that profile. If the state before the decision was compacted, `Expired` is raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ctrlmgr.api.resource import NAMESPACES, NODES, PODS, Key, Resource, Revision
from ctrlmgr.controllers.persistentvolume_binder.volume_index import index_by_possible_claims
from ctrlmgr.controllers.scheduler import DESCRIPTOR
from ctrlmgr.controllers.scheduler.decision_inputs import VOLUMES, DecisionInputs
from ctrlmgr.informer import Lister, Store
from ctrlmgr.inspection import historical_state
from ctrlmgr.inspection.database import Database
from ctrlmgr.scheduling.cluster_model import Cluster, NodeInfo, PodInfo
from ctrlmgr.scheduling.cycle import Decision, decide

_WIDEST: Final = 40


class Placement(NamedTuple):
    """A decision about a pod, written at a revision; `node` is the chosen node, empty if no node was suitable."""

    revision: Revision
    key: Key
    node: str
    decision: Decision


def of(database: Database, key: Key, *, until: Revision) -> Placement | None:
    """Return the last decision of ctrlmgr's scheduler about a pod, None if there is none.

    Raises `Expired` if the state before it was compacted.
    """
    changes = historical_state.history(database, PODS, key, until=until)
    own = [each for each in changes if each.author.controller == DESCRIPTOR.name and each.before is not None]
    if not own:
        return None
    last = own[-1]
    pod = PodInfo.of(last.before or last.object)
    if pod.node_name:
        return None  # the scheduler wrote to this pod to preempt it, which is not a decision about the pod's node
    node = PodInfo.of(last.object).node_name
    return Placement(last.revision, key, node, _decided(database, pod, last.revision - 1))


def _decided(database: Database, pod: PodInfo, at: Revision) -> Decision:
    def listing(resource: Resource) -> Lister:
        store = Store()
        store.replace(historical_state.objects(database, resource, at=at))
        if resource == VOLUMES:
            index_by_possible_claims(store)
        return store

    around = DecisionInputs(listing)
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
    return decide(
        pod,
        cluster,
        budgets=around.budgets(),
        volumes=around.volumes(pod),
        devices=around.devices.of(pod),
        default_selector=None if pod.spread else around.default_selector(pod),
    )


def lines(placement: Placement) -> Iterator[str]:
    """Yield lines that describe a decision, one line per node.

    The nodes that can run the pod come first, the best of them at the top.
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
    if decision.message:
        yield f"  {decision.message}"
    if decision.preemption is not None and decision.preemption.candidate is not None:
        candidate = decision.preemption.candidate
        victims = ", ".join(str(each.key) for each in candidate.victims)
        yield f"  preemption on {candidate.node}: {victims} are deleted"
