"""The base class of evaluators, which measure objects of one resource.

An evaluator also knows the names that quotas use for the measured amounts.

Rules come from apiserver's `pkg/quota/v1/interfaces.go` and `generic/evaluator.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.admission.quota.quota_amounts import Amounts
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb

Fields = Mapping[str, Any]
"""An object, in the version in which it is stored."""


class Requirement(NamedTuple):
    """One term of a scope selector; an entry in a quota's `scopes` is treated as a term with the operator Exists."""

    scope: str
    operator: str
    values: Sequence[str] = ()

    def selects(self, found: Collection[str]) -> bool:
        """Return whether the object's names for the scope fulfil the term; `names` may be empty."""
        match self.operator:
            case "Exists":
                return bool(found)
            case "DoesNotExist":
                return not found
            case "In":
                return any(each in self.values for each in found)
        return not found or any(each not in self.values for each in found)

    def __str__(self) -> str:
        """Format the term as Go prints it."""
        return f"{{{self.scope} {self.operator} [{' '.join(self.values)}]}}"


def count_name(resource: Resource) -> str:
    """Return the name with which quotas limit the number of objects of a resource."""
    return f"count/{resource.plural}.{resource.group}" if resource.group else f"count/{resource.plural}"


_ALIASES: Final[Mapping[str, str]] = {
    name: name for name in ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
}
"""Resources of the core group for which quotas may also use the plural name alone, without the prefix `count/`."""


class Evaluator:
    """Counts objects of a resource; subclasses also measure other amounts."""

    def __init__(self, resource: Resource) -> None:
        """Create an evaluator for objects of `resource`."""
        self.resource = resource
        alias = "" if resource.group else _ALIASES.get(resource.plural, "")
        self._names = tuple(filter(None, (count_name(resource), alias)))

    def handles(self, subresource: str, operation: Verb) -> bool:
        """Return whether writes of this kind may increase the usage."""
        return operation is Verb.CREATE and not subresource

    def concerns(self, attributes: Attributes) -> bool:
        """Return whether this write may increase the usage; for its kind of write, `handles` must return True."""
        return True

    def names(self, given: Collection[str]) -> list[str]:
        """Return the given resource names that objects of this kind use."""
        return [name for name in given if name in self._names]

    def usage(self, fields: Fields, now: str) -> Amounts:
        """Return the amounts that one object uses at a time (RFC 3339)."""
        return dict.fromkeys(self._names, "1")

    def in_scope(self, requirement: Requirement, fields: Fields) -> bool:
        """Return whether an object is in a scope; False for kinds without scopes."""
        return False

    def knows_scopes(self) -> bool:
        """Return whether the plugin's configuration may limit objects of this kind by scope."""
        return False

    def problem(self, required: Collection[str], fields: Fields) -> str:
        """Return an error if the object does not set the amounts that the quota's limits `required` need.

        If no amount is missing, an empty string is returned.
        """
        return ""
