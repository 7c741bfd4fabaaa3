"""The conditions of a namespace during the deletion of its content.

Guarantees: `desired_conditions` is a pure function of the remaining content, the failures and the previous status. The
same input gives the same conditions, including timestamps, so a repeated reconcile writes nothing.

The types, reasons and messages of the conditions are the same as in Kubernetes
(`pkg/controller/namespace/deletion/status_condition_utils.go`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource

Condition = Mapping[str, Any]


@dataclass
class Content:
    """The numbers of remaining objects of a namespace, grouped like the conditions that report them."""

    resources: Counter[Resource] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    """The reasons why content could not be deleted, with one message per resource."""

    def add(self, objects: Iterable[Object]) -> None:
        """Add the remaining objects of one kind to the counts."""
        for obj in objects:
            self.resources[obj.resource] += 1
            self.finalizers.update(obj.metadata.finalizers or ())


class _State(NamedTuple):
    status: str
    reason: str
    message: str


def desired_conditions(content: Content, before: Sequence[Condition], now: str) -> list[Condition]:
    """Return all conditions of the namespace; conditions that change get the transition time `now` (RFC 3339)."""
    known = {condition["type"]: condition for condition in before}
    ours = _states(content)
    others = [condition for condition in before if condition["type"] not in ours]
    return [*others, *(_condition(type_, state, known.get(type_), now) for type_, state in ours.items())]


def _states(content: Content) -> dict[str, _State]:
    return {
        "NamespaceDeletionDiscoveryFailure": _State(
            "False", "ResourcesDiscovered", "All resources successfully discovered"
        ),
        "NamespaceDeletionGroupVersionParsingFailure": _State(
            "False", "ParsedGroupVersions", "All legacy kube types successfully parsed"
        ),
        "NamespaceDeletionContentFailure": _failure(content.failures),
        "NamespaceContentRemaining": _remaining(content.resources),
        "NamespaceFinalizersRemaining": _finalizers(content.finalizers),
    }


def _failure(failures: Sequence[str]) -> _State:
    if not failures:
        return _State("False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization")
    text = f"Failed to delete all resource types, {len(failures)} remaining: {', '.join(sorted(failures))}"
    return _State("True", "ContentDeletionFailed", text)


def _remaining(resources: Mapping[Resource, int]) -> _State:
    if not resources:
        return _State("False", "ContentRemoved", "All content successfully removed")
    counts = sorted(f"{each.plural}.{each.group} has {count} resource instances" for each, count in resources.items())
    return _State("True", "SomeResourcesRemain", f"Some resources are remaining: {', '.join(counts)}")


def _finalizers(finalizers: Mapping[str, int]) -> _State:
    if not finalizers:
        return _State("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished")
    counts = sorted(f"{name} in {count} resource instances" for name, count in finalizers.items())
    text = f"Some content in the namespace has finalizers remaining: {', '.join(counts)}"
    return _State("True", "SomeFinalizersRemain", text)


def _condition(type_: str, state: _State, before: Condition | None, now: str) -> Condition:
    since = before.get("lastTransitionTime", now) if before and before["status"] == state.status else now
    return {
        "type": type_,
        "status": state.status,
        "lastTransitionTime": since,
        "reason": state.reason,
        "message": state.message,
    }
