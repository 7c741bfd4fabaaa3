"""Decides which names of a CustomResourceDefinition are accepted, and whether it is established.

Guarantees (apiextensions-apiserver `pkg/controller/status/naming_controller.go` and `pkg/controller/establish`):
- No two CustomResourceDefinitions of a group hold the same resource name (plural, singular, short) or the same kind
  (kind, list kind) at the same time. A name that another CustomResourceDefinition holds is refused; all other names are
  accepted.
- An established CustomResourceDefinition stays established, even if its names conflict later.
- A CustomResourceDefinition whose conversion webhook has an invalid CA bundle is not established until the bundle is
  valid.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ctrlmgr.controllers.customresourcedefinitions.crd_conditions import ESTABLISHED, NAMES_ACCEPTED, Condition, find
from ctrlmgr.extensions.validation.ratcheting import has_invalid_ca
from ctrlmgr.golang.go_text import quote

Names = Mapping[str, Any]
"""The names in a CustomResourceDefinition's `spec.names` or `status.acceptedNames`."""


class HeldNames(NamedTuple):
    """The names that the CustomResourceDefinitions of a group hold."""

    resources: Collection[str]
    kinds: Collection[str]

    @classmethod
    def by(cls, definitions: Iterable[Mapping[str, Any]], group: str) -> HeldNames:
        """Return the names that the CustomResourceDefinitions of a group hold."""
        resources: set[str] = set()
        kinds: set[str] = set()
        for definition in definitions:
            if definition["spec"]["group"] == group:
                names = accepted_names(definition)
                resources |= {names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())}
                kinds |= {names.get("kind", ""), names.get("listKind", "")}
        return cls(resources, kinds)


class Naming(NamedTuple):
    """The names for the status of a CustomResourceDefinition, and the conditions about these names."""

    names: Names
    conditions: Sequence[Condition]


def accepted_names(definition: Mapping[str, Any]) -> Names:
    """Return the accepted names that a CustomResourceDefinition holds."""
    return (definition.get("status") or {}).get("acceptedNames") or {}


def desired_naming(definition: Mapping[str, Any], taken: HeldNames) -> Naming | None:
    """Return the names and conditions for the status of a CustomResourceDefinition.

    The result is None if the status already contains these names and conditions.
    """
    desired, held = definition["spec"]["names"], accepted_names(definition)
    if same_names(desired, held):
        return None
    names, naming = _given(desired, held, taken)
    if same_names(names, held) and naming == find(definition, NAMES_ACCEPTED):
        return None
    return Naming(names, [naming, _installing(definition, naming)])


def desired_establishing(definition: Mapping[str, Any]) -> Condition | None:
    """Return the condition Established that the status must get.

    The result is None if the condition is already set, or if the names of the CustomResourceDefinition are not
    accepted.
    """
    established, accepted = find(definition, ESTABLISHED), find(definition, NAMES_ACCEPTED)
    if accepted is None or accepted.status != "True" or (established is not None and established.status == "True"):
        return None
    if has_invalid_ca(definition["spec"]):
        return Condition(ESTABLISHED, "False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
    return Condition(ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted")


def same_names(one: Names, other: Names) -> bool:
    """Return whether two sets of names are equal; an empty name equals a missing name."""
    return {key: each for key, each in one.items() if each} == {key: each for key, each in other.items() if each}


def _given(desired: Names, held: Names, taken: HeldNames) -> tuple[Names, Condition]:
    """Return the accepted names, and the condition about the last conflict.

    The names are checked in the same order as in Kubernetes.
    """
    names = dict(held)
    condition = Condition(NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")
    for field, reason, used in (
        ("plural", "PluralConflict", taken.resources),
        ("singular", "SingularConflict", taken.resources),
        ("shortNames", "ShortNamesConflict", taken.resources),
        ("kind", "KindConflict", taken.kinds),
        ("listKind", "ListKindConflict", taken.kinds),
    ):
        conflicts = _conflicts(desired.get(field), held.get(field), used)
        if conflicts:
            condition = Condition(NAMES_ACCEPTED, "False", reason, _joined(conflicts))
        elif desired.get(field):
            names[field] = desired[field]
        else:
            names.pop(field, None)
    if desired.get("categories"):
        names["categories"] = desired["categories"]
    else:
        names.pop("categories", None)
    return names, condition


def _conflicts(desired: Any, held: Any, used: Collection[str]) -> list[str]:
    if isinstance(desired, list):
        new_names = [name for name in desired if name not in (held or ())]
    else:
        new_names = [desired] if desired and desired != held else []
    return [f"{quote(name)} is already in use" for name in new_names if name in used]


def _joined(errors: Sequence[str]) -> str:
    """Join the distinct errors into one message, in the format of apimachinery's aggregated errors."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _installing(definition: Mapping[str, Any], naming: Condition) -> Condition:
    """Return the condition Established of a CustomResourceDefinition that is not established yet."""
    old = find(definition, ESTABLISHED)
    condition = old or Condition(ESTABLISHED, "False", "NotAccepted", "not all names are accepted")
    if condition.status != "True" and naming.status == "True":
        return Condition(ESTABLISHED, "False", "Installing", "the initial names have been accepted")
    return condition
