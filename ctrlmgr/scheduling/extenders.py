"""Applies extenders to a decision. Extenders are HTTP servers that filter and score nodes, and that change preemption.

Guarantees, as in kube-scheduler (`findNodesThatPassExtenders`, `prioritizeNodes`, `callExtenders`): extenders filter in
order; each extender filters the nodes that the previous extender accepted. An ignorable extender that fails is skipped;
if any other extender fails, the decision fails. Errors during scoring are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from ctrlmgr.scheduling.cluster_model import NodeInfo, PodInfo
from ctrlmgr.scheduling.filters import Refusal
from ctrlmgr.scheduling.preemption import Candidate

PLUGIN: Final = "Extender"
"""The name under which extenders count as a plugin that refused nodes."""
SCALE: Final = 10
"""The factor by which the scores of extenders (0 to 10) are multiplied, to be comparable with those of plugins."""
NO_CANDIDATE: Final = "no candidate node for preemption"


class ExtenderError(Exception):
    """Raised if a call of an extender fails; the pod's condition contains the message."""


class Filtered(NamedTuple):
    """The names of the nodes that an extender accepts, and its reasons for refusing other nodes."""

    names: tuple[str, ...]
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]
    """The reasons for refusing nodes on which preemption cannot help."""


class Victims(NamedTuple):
    """The uids of the pods to preempt on a node, and the number of budgets that this preemption violates."""

    uids: tuple[str, ...]
    violations: int


class Extender(Protocol):
    """An extender that is interested in the pod of the decision. All methods raise `ExtenderError`."""

    @property
    def name(self) -> str:
        """Return the URL of the extender."""

    @property
    def is_ignorable(self) -> bool:
        """Whether an error of the extender has no effect on the decision."""

    @property
    def weight(self) -> int:
        """The factor of the extender's scores; 0 if the extender does not score nodes."""

    @property
    def preempts(self) -> bool:
        """Whether the extender takes part in preemption."""

    def filter(self, nodes: Sequence[str]) -> Filtered:
        """Return which of these nodes the extender accepts."""

    def prioritize(self, nodes: Sequence[str]) -> Mapping[str, int]:
        """Return the scores of these nodes, from 0 to 10."""

    def preempt(self, candidates: Sequence[Candidate]) -> Mapping[str, Victims]:
        """Return the candidate nodes that the extender accepts, with their victims."""


def passing(
    extenders: Sequence[Extender], feasible: Sequence[NodeInfo], refusals: dict[str, Refusal]
) -> list[NodeInfo]:
    """Return the nodes that all extenders accept; add the refusals of extenders to `refusals`."""
    left = {node.name: node for node in feasible}
    for extender in extenders:
        if not left:
            break
        try:
            found = extender.filter([*left])
        except ExtenderError:
            if extender.is_ignorable:
                continue
            raise
        accepted = {name: left[name] for name in found.names}
        told = {**{name: (text, True) for name, text in found.failed.items()}}
        told |= {name: (text, False) for name, text in found.unresolvable.items()}
        for name in [*left, *told]:
            if name in told:
                reason, helps = told[name]
                refusals[name] = Refusal(f"{PLUGIN} {extender.name}", (reason,), helps)
            elif name not in accepted:
                refusals[name] = Refusal(f"{PLUGIN} {extender.name}", ())
        left = accepted
    return [*left.values()]


def plugin_of(refusal: Refusal) -> str:
    """Return the plugin of a refusal; all extenders count as one plugin."""
    return PLUGIN if refusal.plugin.startswith(f"{PLUGIN} ") else refusal.plugin


def extender_scores(extenders: Sequence[Extender], names: Sequence[str]) -> dict[str, tuple[int, list[int]]]:
    """Return the weight of each extender that scores nodes, and its scores in the order of the nodes."""
    found = {}
    for each in extenders:
        if not each.weight:
            continue
        try:
            given = each.prioritize(names)
        except ExtenderError:
            continue
        found[f"{PLUGIN} {each.name}"] = (each.weight * SCALE, [given.get(name, 0) for name in names])
    return found


def remaining_candidates(
    extenders: Sequence[Extender], candidates: Sequence[Candidate], nodes: Mapping[str, NodeInfo]
) -> list[Candidate]:
    """Return the candidates for preemption that all extenders accept, with the victims that they return.

    Raises `ExtenderError`.
    """
    left = [*candidates]
    for extender in extenders:
        if not left:
            break
        if not extender.preempts:
            continue
        try:
            left = _accepted(extender, extender.preempt(left), nodes)
        except ExtenderError:
            if not extender.is_ignorable:
                raise
    return left


def _accepted(extender: Extender, given: Mapping[str, Victims], nodes: Mapping[str, NodeInfo]) -> list[Candidate]:
    found = []
    for name, victims in given.items():
        if not victims.uids:
            if extender.is_ignorable:
                continue
            raise ExtenderError(f'expected at least one victim pod on node "{name}"')
        found.append(Candidate(name, tuple(_pods(extender, name, victims, nodes)), victims.violations))
    return found


def _pods(extender: Extender, name: str, victims: Victims, nodes: Mapping[str, NodeInfo]) -> list[PodInfo]:
    node = nodes.get(name)
    if node is None:
        raise ExtenderError(f'nodeinfo not found for node name "{name}"')
    pods = {each.uid: each for each in node.pods.values()}
    for uid in victims.uids:
        if uid not in pods:
            where = f"on node: {name}, but the pod is not found on that node"
            raise ExtenderError(f"extender: {extender.name} claims to preempt pod (UID: &{{{uid}}}) {where}")
    return [pods[uid] for uid in victims.uids]
