"""What an evaluator is: it knows what objects of one resource use, and which names of a quota are about that.

Rules come from apiserver's `pkg/quota/v1/interfaces.go` and `generic/evaluator.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.admission.quota.amounts import Amounts
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.attributes import Attributes, Verb

Fields = Mapping[str, Any]
"""An object, in its stored version."""


class Requirement(NamedTuple):
    """One term of a scope selector; a scope that a quota simply lists is one with the operator Exists."""

    scope: str
    operator: str
    values: Sequence[str] = ()

    def selects(self, found: Collection[str]) -> bool:
        """Whether names that an object bears for the scope, possibly none, are what this asks for."""
        match self.operator:
            case "Exists":
                return bool(found)
            case "DoesNotExist":
                return not found
            case "In":
                return any(each in self.values for each in found)
        return not found or any(each not in self.values for each in found)

    def __str__(self) -> str:
        """Write it as Go prints it."""
        return f"{{{self.scope} {self.operator} [{' '.join(self.values)}]}}"


def count_name(resource: Resource) -> str:
    """Return what a quota calls the number of objects of a resource."""
    return f"count/{resource.plural}.{resource.group}" if resource.group else f"count/{resource.plural}"


_ALIASES: Final[Mapping[str, str]] = {
    name: name for name in ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
}
"""Resources of the core group that quotas also call by their plural alone."""


class Evaluator:
    """Counts objects; evaluators of kinds that use more than their number are subclasses."""

    def __init__(self, resource: Resource) -> None:
        """Evaluate objects of `resource`."""
        self.resource = resource
        alias = "" if resource.group else _ALIASES.get(resource.plural, "")
        self._names = tuple(filter(None, (count_name(resource), alias)))

    def handles(self, subresource: str, operation: Verb) -> bool:
        """Whether such a write may use more."""
        return operation is Verb.CREATE and not subresource

    def concerns(self, attributes: Attributes) -> bool:
        """Whether this very write may use more, of those it handles."""
        return True

    def names(self, given: Collection[str]) -> list[str]:
        """Return which of a quota's resources objects of this kind use."""
        return [name for name in given if name in self._names]

    def usage(self, fields: Fields, now: str) -> Amounts:
        """Return what one object uses at a time (RFC 3339)."""
        return dict.fromkeys(self._names, "1")

    def in_scope(self, requirement: Requirement, fields: Fields) -> bool:
        """Whether an object is in a scope; most know no scopes, and are in none."""
        return False

    def knows_scopes(self) -> bool:
        """Whether the configuration of the plugin can limit its objects by scope."""
        return False

    def problem(self, required: Collection[str], fields: Fields) -> str:
        """Say what an object must say and does not, where a quota limits `required`; empty: nothing."""
        return ""
