"""Reads the admission policies and their bindings from their objects.

Guarantees: each revision of a policy is compiled only once. If there are no bindings, no policy is read. Policies and
the bindings of each policy are sorted by name.

Source: apiserver `pkg/admission/plugin/policy/generic/policy_source.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ctrlmgr.admission.expressions.cel_evaluation import Condition, condition_of
from ctrlmgr.admission.webhooks.hooks import Rule, rule_of
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.engine.strategy import View
from ctrlmgr.expressions.types import BOOL
from ctrlmgr.kinds.admissionregistration.expression_variables import Scopes
from ctrlmgr.kinds.label_selectors import selector_of

_ALL: Final = frozenset("*")
_EVERYTHING: Final = (Rule(_ALL, _ALL, _ALL, (("*", "*"),), "*"),)


@dataclass(frozen=True, slots=True)
class Matching:
    """The writes that a policy or a binding matches (MatchResources), as a `webhook_selection.Selection`."""

    rules: tuple[Rule, ...]
    excluded: tuple[Rule, ...]
    matches_equivalent: bool
    namespaces: LabelSelector | None
    objects: LabelSelector | None

    @staticmethod
    def of(fields: Mapping[str, Any]) -> Matching:
        """Read MatchResources; if there are no rules, every write matches."""
        return Matching(
            tuple(rule_of(each) for each in fields.get("resourceRules") or ()) or _EVERYTHING,
            tuple(rule_of(each) for each in fields.get("excludeResourceRules") or ()),
            fields.get("matchPolicy") != "Exact",
            selector_of(fields.get("namespaceSelector") or {}),
            selector_of(fields.get("objectSelector") or {}),
        )


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding of a policy; only policies with a binding apply."""

    name: str
    policy: str
    matching: Matching | None
    """The writes to which the binding restricts the policy; None if the binding applies to all writes that the policy
    matches.
    """
    param_ref: Mapping[str, Any] | None
    actions: tuple[str, ...]
    """The binding's actions for a failed validation (Deny, Warn, Audit); empty for a mutating policy."""

    @staticmethod
    def of(obj: Object) -> Binding:
        """Read a binding from its object."""
        spec = obj.to_dict().get("spec") or {}
        match = spec.get("matchResources")
        return Binding(
            obj.name,
            spec.get("policyName") or "",
            Matching.of(match) if match is not None else None,
            spec.get("paramRef"),
            tuple(spec.get("validationActions") or ()),
        )


@dataclass(frozen=True, slots=True)
class PolicyBase:
    """The fields that validating and mutating policies share."""

    name: str
    revision: int
    fails_open: bool
    param_kind: Mapping[str, str] | None
    matching: Matching
    conditions: tuple[Condition, ...]
    variables: Mapping[str, Condition]
    """The expressions of the policy's variables, by name."""


def base_of(obj: Object, spec: Mapping[str, Any], scopes: Scopes) -> dict[str, Any]:
    """Return the fields of a `PolicyBase`, read from a policy's object."""
    conditions = spec.get("matchConditions") or ()
    named = zip(spec.get("variables") or (), scopes.variables, strict=True)
    return {
        "name": obj.name,
        "revision": obj.revision,
        "fails_open": spec.get("failurePolicy") == "Ignore",
        "param_kind": spec.get("paramKind"),
        "matching": Matching.of(spec.get("matchConstraints") or {}),
        "conditions": tuple(condition_of(each, scopes.conditions.compiler(BOOL)) for each in conditions),
        "variables": {each.get("name") or "": condition_of(each, scope.compile) for each, scope in named},
    }


P = TypeVar("P", bound=PolicyBase)


class Bound(NamedTuple, Generic[P]):
    """An admission policy with its bindings."""

    policy: P
    bindings: Sequence[Binding]


class Policies(Generic[P]):
    """Reads the policies of one kind, validating or mutating, and their bindings."""

    def __init__(self, policies: Resource, bindings: Resource, read: Callable[[Object], P]) -> None:
        """Read the policies and bindings from objects of these resources."""
        self._resources = (policies, bindings)
        self._read = read
        self._known: dict[str, tuple[Object, P]] = {}
        self._bindings: dict[str, tuple[Object, Binding]] = {}

    def found(self, view: View) -> Sequence[Bound[P]]:
        """Return the admission policies that have at least one binding."""
        bindings = view.list(self._resources[1])
        return list(self._bound(view, bindings)) if bindings else ()

    def _bound(self, view: View, objects: Sequence[Object]) -> Iterator[Bound[P]]:
        by_policy: dict[str, list[Binding]] = {}
        self._bindings = {each.name: (each, self._binding(each)) for each in objects}
        for _, binding in self._bindings.values():
            by_policy.setdefault(binding.policy, []).append(binding)
        listed = view.list(self._resources[0])
        self._known = {each.name: (each, self._policy(each)) for each in listed if each.name in by_policy}
        for name, (_, policy) in self._known.items():
            yield Bound(policy, by_policy[name])

    def _binding(self, obj: Object) -> Binding:
        known = self._bindings.get(obj.name)
        return known[1] if known is not None and known[0] is obj else Binding.of(obj)

    def _policy(self, obj: Object) -> P:
        known = self._known.get(obj.name)
        return known[1] if known is not None and known[0] is obj else self._read(obj)
