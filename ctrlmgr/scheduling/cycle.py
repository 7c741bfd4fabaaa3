"""Makes one scheduling decision: finds the suitable nodes for a pod, or the reason why no node is suitable.

Guarantees: the decision is a pure function of the pod and the model of the cluster. The caller chooses among nodes with
equal scores. As in kube-scheduler, not all nodes of a large cluster are checked; the check stops when enough feasible
nodes are found. The next decision begins with the node after the last checked node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.app_plugins import PluginError
from ctrlmgr.scheduling.cluster_model import Cluster, NodeInfo, PodInfo
from ctrlmgr.scheduling.dynamic_resources import (
    DEALLOCATED,
    ELSEWHERE,
    NO_CLAIMS,
    NO_DEVICES,
    NOT_SCHEDULABLE,
    PLUGIN,
    Devices,
)
from ctrlmgr.scheduling.extenders import (
    NO_CANDIDATE,
    Extender,
    ExtenderError,
    extender_scores,
    passing,
    plugin_of,
    remaining_candidates,
)
from ctrlmgr.scheduling.filters import NO_VOLUMES, Filters, Refusal, Volumes, histogram, named_nodes, with_nominated
from ctrlmgr.scheduling.preemption import Budget, Preemption, candidates, pick
from ctrlmgr.scheduling.profile import DEFAULT, Profile
from ctrlmgr.scheduling.scheduling_view import Selector
from ctrlmgr.scheduling.scores import Scores, score
from ctrlmgr.scheduling.spread import constraints_of
from ctrlmgr.scheduling.structured.device_selectors import AllocationError

NO_NODES: Final = "no nodes available to schedule pods"
FAILED: Final = "SchedulerError"
"""The reason in the condition of a pod if an error prevented the scheduler's decision about the pod."""
_SMALL: Final = 100
"""The maximum number of nodes of a cluster in which every decision checks all nodes."""


@dataclass
class Decision:
    """The scheduler's decision about a pod.

    If `best` is not empty, the pod can be bound to any node in `best`; otherwise `message` contains the reason.
    """

    best: list[str] = field(default_factory=list)
    scores: Scores = field(default_factory=Scores)
    """The scores of the feasible nodes; empty if only one node is feasible."""
    refusals: dict[str, Refusal] = field(default_factory=dict)
    message: str = ""
    plugins: frozenset[str] = frozenset()
    """The plugins that refused nodes."""
    preemption: Preemption | None = None
    deallocation: Key | None = None
    """A resource claim of the pod that must be deallocated, because no suitable node can reach its devices."""
    reason: str = "Unschedulable"
    """The reason in the pod's condition PodScheduled if the pod cannot be scheduled."""
    next_start: int = 0
    """The index of the node with which the next decision begins."""

    @property
    def nominated(self) -> str | None:
        """Return the node for which the pod is nominated; "" removes the nomination, None keeps it."""
        if self.preemption is None:
            return None
        if self.preemption.candidate is not None:
            return self.preemption.candidate.node
        return "" if self.preemption.clears else None


def enough(nodes: int, percentage: int = 0) -> int:
    """Return the number of feasible nodes after which the check stops in a cluster of `nodes` nodes.

    `percentage` is the value in the profile (`numFeasibleNodesToFind`).
    """
    if nodes < _SMALL:
        return nodes
    percent = percentage or max(50 - nodes // 125, 5)
    return max(nodes * percent // 100, _SMALL)


def decide(
    pod: PodInfo,
    cluster: Cluster,
    *,
    budgets: Sequence[Budget] = (),
    volumes: Volumes = NO_VOLUMES,
    devices: Devices = NO_DEVICES,
    default_selector: Selector | None = None,
    profile: Profile = DEFAULT,
    extenders: Sequence[Extender] = (),
    start: int = 0,
    offset: int = 0,
    within: frozenset[str] | None = None,
    no_preemption: str = "",
) -> Decision:
    """Return the decision about a pod; `extenders` contains the extenders that are interested in the pod.

    `start` is the index of the first node to check for feasibility. `offset` is the index of the first node to check
    for preemption. `within` contains the names of the only nodes to consider; None means all nodes. `no_preemption` is
    the reason why the pod must not preempt other pods; "" if it may.
    """
    nodes = cluster.list() if within is None else [node for node in cluster.list() if node.name in within]
    if not nodes:
        return Decision(message=NO_NODES)
    problem = volumes.problem or devices.problem
    if problem and ("VolumeBinding" if volumes.problem else PLUGIN) in profile.filters:
        message = f"0/{len(nodes)} nodes are available: {problem}. {NO_CLAIMS}, preemption: {_hopeless(nodes)}"
        plugin = "VolumeBinding" if volumes.problem else PLUGIN
        return Decision(message=message, plugins=frozenset([plugin]), next_start=start)
    spread = constraints_of(pod, default_selector, profile.default_spread)
    filters = Filters(pod, cluster.list(), cluster.namespaces, volumes, devices, profile=profile, spread=spread)
    names = named_nodes(pod) if "NodeAffinity" in profile.filters else None
    looked_at = nodes if names is None else [node for node in nodes if node.name in names]
    try:
        feasible, refusals, next_start = _feasible(filters, cluster, looked_at, start, extenders, within)
    except PluginError as error:
        return _failed(error, start)
    except ExtenderError as error:
        return Decision(message=str(error), reason=FAILED, next_start=start)
    except AllocationError as error:
        message = f'running "{PLUGIN}" filter plugin: {error}'
        return Decision(message=message, plugins=frozenset([PLUGIN]), reason=FAILED, next_start=start)
    if feasible:
        if len(feasible) == 1:
            return Decision([feasible[0].name], Scores(), refusals, next_start=next_start)
        try:
            scores = score(pod, feasible, cluster, filters.busy, spread, profile)
            scores.add(extender_scores(extenders, [node.name for node in feasible]))
        except PluginError as error:
            return _failed(error, next_start)
        return Decision(scores.best(), scores, refusals, next_start=next_start)
    preempt = partial(_preemption, filters, cluster, refusals, budgets, extenders, offset)
    found = _unschedulable(
        filters,
        cluster,
        refusals,
        (lambda: Preemption(None, no_preemption)) if no_preemption and profile.preempts else preempt,
        absent=len(nodes) - len(refusals) if names is not None else None,
        count=len(nodes),
    )
    found.next_start = next_start
    if profile.deallocates:
        found.deallocation = _deallocation(devices, cluster, refusals)
    return found


def _failed(error: PluginError, next_start: int) -> Decision:
    plugins = frozenset([error.plugin])
    return Decision(message=str(error), plugins=plugins, reason=FAILED, next_start=next_start)


def _deallocation(devices: Devices, cluster: Cluster, refusals: Mapping[str, Refusal]) -> Key | None:
    refused = [name for name, each in refusals.items() if each.reasons == (ELSEWHERE,)]
    return devices.deallocation({name: cluster.nodes[name].labels for name in refused})


def _feasible(
    filters: Filters,
    cluster: Cluster,
    nodes: Sequence[NodeInfo],
    start: int,
    extenders: Sequence[Extender],
    within: frozenset[str] | None,
) -> tuple[list[NodeInfo], dict[str, Refusal], int]:
    """Return the feasible nodes, the refusals of other nodes, and the index at which the next decision begins."""
    is_near = within is None or filters.pod.nominated in within
    if is_near and _accepts_nominated(filters, cluster, extenders):
        return [cluster.nodes[filters.pod.nominated]], {}, start
    feasible, refusals, next_start = _passing_filters(filters, cluster, nodes, start)
    return passing(extenders, feasible, refusals) if extenders else feasible, refusals, next_start


def _accepts_nominated(filters: Filters, cluster: Cluster, extenders: Sequence[Extender]) -> bool:
    """Return whether the node for which the pod is nominated is feasible."""
    meant = cluster.nodes.get(filters.pod.nominated) if filters.pod.nominated else None
    if meant is None or with_nominated(filters, meant, cluster.nominated.get(meant.name)) is not None:
        return False
    try:
        return bool(passing(extenders, [meant], {}))
    except ExtenderError:
        return False


def _passing_filters(
    filters: Filters, cluster: Cluster, nodes: Sequence[NodeInfo], start: int
) -> tuple[list[NodeInfo], dict[str, Refusal], int]:
    refusals: dict[str, Refusal] = {}
    feasible: list[NodeInfo] = []
    enough_nodes, count = enough(len(nodes), filters.profile.percentage), len(nodes)
    at = start % count if count else 0
    for node in (*nodes[at:], *nodes[:at]):
        nominated = cluster.nominated.get(node.name) if cluster.nominated else None
        if not nominated and filters.passes(node):
            feasible.append(node)
            if len(feasible) >= enough_nodes:
                break
            continue
        refusal = with_nominated(filters, node, nominated) if nominated else filters.refusal(node)
        if refusal is not None:
            refusals[node.name] = refusal
            continue
        feasible.append(node)
        if len(feasible) >= enough_nodes:
            break
    return feasible, refusals, (start + len(feasible) + len(refusals)) % count if count else 0


def _unschedulable(
    filters: Filters,
    cluster: Cluster,
    refusals: dict[str, Refusal],
    preempt: Callable[[], Preemption],
    *,
    absent: int | None,
    count: int,
) -> Decision:
    """Return the decision about a pod that fits on none of `count` nodes.

    `absent` is the number of nodes that the pod's affinity does not name; None if the affinity names no nodes.
    """
    reasons = histogram(refusals.values(), absent or 0, "node(s) didn't satisfy plugin(s) [NodeAffinity]")
    message = f"0/{count} nodes are available: {', '.join(reasons)}." if reasons else f"0/{count} nodes are available:"
    profile = filters.profile
    after = [_about_claims(filters.devices, cluster, refusals)] if profile.deallocates else []
    try:
        preemption = preempt()
    except ExtenderError as error:
        preemption, after = Preemption(None, str(error)), []
    if preemption.message:
        after.append(f"preemption: {preemption.message}")
    plugins = {plugin_of(each) for each in refusals.values()} | ({"NodeAffinity"} if absent is not None else set())
    if preemption.candidate is None and after:
        message = f"{message} {', '.join(after)}"
    return Decision([], Scores(), refusals, message, frozenset(plugins), preemption)


def _preemption(
    filters: Filters,
    cluster: Cluster,
    refusals: Mapping[str, Refusal],
    budgets: Sequence[Budget],
    extenders: Sequence[Extender],
    offset: int,
) -> Preemption:
    if not filters.profile.preempts:
        return Preemption(None)
    found = candidates(filters, cluster, refusals, budgets, offset)
    if isinstance(found, Preemption):
        return found
    left = remaining_candidates(extenders, found, cluster.nodes)
    return Preemption(pick(left)) if left else Preemption(None, NO_CANDIDATE)


def _about_claims(devices: Devices, cluster: Cluster, refusals: Mapping[str, Refusal]) -> str:
    """Return the message of the plugin DynamicResources about the claims of a pod that fits on no node."""
    if devices.is_empty:
        return NO_CLAIMS
    return DEALLOCATED if _deallocation(devices, cluster, refusals) is not None else NOT_SCHEDULABLE


def _hopeless(nodes: Sequence[NodeInfo]) -> str:
    return f"0/{len(nodes)} nodes are available: {len(nodes)} Preemption is not helpful for scheduling."
