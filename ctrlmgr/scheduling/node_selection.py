"""Evaluates node selectors and required node affinity, which describe the nodes that a pod allows by labels and names.

The guarantees are those of Kubernetes' `component-helpers/scheduling/corev1/nodeaffinity`:

- The terms of a selector are alternatives; all requirements within a term must be met. An empty term matches no node; a
  selector without terms matches no node either.
- The operators Gt and Lt compare integers; other values do not match.
- A pod's `nodeSelector` and its required affinity must both match.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """The API type v1 NodeSelectorRequirement."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet this requirement."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in (self.values or ())
            case "NotIn":
                return value is None or value not in (self.values or ())
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return value is not None and self._compares(value)
        return False

    def _compares(self, value: str) -> bool:
        bound = next(iter(self.values or ()), "")
        try:
            return int(value) > int(bound) if self.operator == "Gt" else int(value) < int(bound)
        except ValueError:
            return False


class SelectorTerm(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type v1 NodeSelectorTerm."""

    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node with this name and these labels meets all requirements of the term."""
        if not self.match_expressions and not self.match_fields:
            return False
        fields = {"metadata.name": name}
        return all(each.matches(labels) for each in self.match_expressions or ()) and all(
            each.matches(fields) for each in self.match_fields or ()
        )


class NodeSelector(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type v1 NodeSelector."""

    node_selector_terms: list[SelectorTerm] | None = None

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether any of the terms matches a node."""
        return any(each.matches(name, labels) for each in self.node_selector_terms or ())


class PreferredTerm(msgspec.Struct, frozen=True, gc=False):
    """The API type v1 PreferredSchedulingTerm."""

    weight: int = 0
    preference: SelectorTerm = SelectorTerm()


class NodeAffinity(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 NodeAffinity that this module uses."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


def selects(
    name: str, labels: Mapping[str, str], selector: Mapping[str, str] | None, affinity: NodeAffinity | None
) -> bool:
    """Return whether a pod's `nodeSelector` and node affinity match a node."""
    if selector and not all(labels.get(key) == value for key, value in selector.items()):
        return False
    return affinity is None or affinity.required is None or affinity.required.matches(name, labels)
