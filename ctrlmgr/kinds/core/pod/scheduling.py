"""Validates the scheduling fields of pods: tolerations, affinities, topology spread constraints and gates.

Source: Kubernetes `pkg/apis/core/validation/validation.go`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_label_name, validate_label_selector
from ctrlmgr.golang.go_numbers import parse_int
from ctrlmgr.kinds.common_rules import each_problem

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
DEFAULT_TOLERATIONS = tuple(
    {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for taint in ("not-ready", "unreachable")
)
"""The taints that a pod tolerates by default, with the seconds of the default toleration. A pod that already tolerates
one of these taints gets no default toleration for the taint.
"""
NOT_POSITIVE = "must be greater than zero"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS = ("Equal", "Exists")
_COMPARISONS = ("Lt", "Gt")
_is_decimal = re.compile("0|-?[1-9][0-9]*").fullmatch
_SPREAD_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION_POLICIES = ("Honor", "Ignore")
_IN_BOTH = "exists in both matchLabelKeys and labelSelector"
_NO_OPERATOR = "not a valid selector operator"
_NO_SELECTOR = "must not be specified when labelSelector is not set"


def validate_tolerations(tolerations: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    """Validate the tolerations."""
    errors: list[FieldError] = []
    for index, toleration in enumerate(tolerations):
        if toleration not in DEFAULT_TOLERATIONS:
            errors += _validate_toleration(toleration, path.at(index))
    return errors


def _validate_toleration(toleration: Mapping[str, Any], at: Path) -> list[FieldError]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    errors = validate_label_name(key, at.child("key")) if key else []
    if not key and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(invalid(at.child("operator"), operator, detail))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(at.child("effect"), effect, detail))
    if operator in ("Equal", ""):
        if problems := name_formats.label_value(value):
            errors.append(invalid(at.child("operator"), value, ";".join(problems)))
    elif operator == "Exists":
        if value:
            detail = "value must be empty when `operator` is 'Exists'"
            errors.append(invalid(at.child("operator"), value, detail))
    elif operator in _COMPARISONS:
        errors += _validate_comparison(operator, value, at)
    else:
        errors.append(not_supported(at.child("operator"), operator, _TOLERATION_OPERATORS))
    if effect and effect not in _EFFECTS:
        errors.append(not_supported(at.child("effect"), effect, _EFFECTS))
    return errors


def _validate_comparison(operator: str, value: str, at: Path) -> list[FieldError]:
    """Validate a toleration whose operator compares numbers (KEP-5471)."""
    if not is_on("TaintTolerationComparisonOperators"):
        return [not_supported(at.child("operator"), operator, (*_TOLERATION_OPERATORS, *_COMPARISONS))]
    errors: list[FieldError] = []
    if not _is_decimal(value):
        errors.append(invalid(at.child("value"), value, "must be a valid decimal integer in canonical form"))
    try:
        parse_int(value)
    except ValueError as error:
        errors.append(invalid(at.child("value"), value, str(error)))
    return errors


def validate_affinity(affinity: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate the affinities of a pod to nodes and to other pods."""
    errors: list[FieldError] = []
    if (node := affinity.get("nodeAffinity")) is not None:
        errors += _validate_node_affinity(node, path.child("nodeAffinity"))
    for field in ("podAffinity", "podAntiAffinity"):
        if (pods := affinity.get(field)) is not None:
            errors += _validate_pod_affinity(pods, path.child(field))
    return errors


def _validate_node_affinity(affinity: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if (selector := affinity.get(REQUIRED)) is not None:
        errors += validate_node_selector(selector, path.child(REQUIRED))
    for index, term in enumerate(affinity.get(PREFERRED) or ()):
        at = path.child(PREFERRED).at(index)
        errors += _validate_weight(term, at)
        errors += _validate_node_term(term.get("preference") or {}, at.child("preference"), strict=False)
    return errors


def validate_node_selector(selector: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate a NodeSelector."""
    below = path.child("nodeSelectorTerms")
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        return [required(below, "must have at least one node selector term")]
    return [error for at, term in enumerate(terms) for error in _validate_node_term(term, below.at(at), strict=True)]


def _validate_node_term(term: Mapping[str, Any], path: Path, *, strict: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        errors += _validate_requirement(requirement, path.child("matchExpressions").at(index), strict)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        errors += _validate_field_requirement(requirement, path.child("matchFields").at(index))
    return errors


def _validate_requirement(requirement: Mapping[str, Any], path: Path, strict: bool) -> list[FieldError]:
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    below = path.child("values")
    errors: list[FieldError] = []
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(below, "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(forbidden(below, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            errors.append(required(below, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    else:
        errors.append(invalid(path.child("operator"), operator, _NO_OPERATOR))
    errors += validate_label_name(requirement.get("key") or "", path.child("key"))
    if strict:
        for index, value in enumerate(values):
            errors += each_problem(name_formats.label_value, value, below.at(index))
    return errors


def _validate_field_requirement(requirement: Mapping[str, Any], path: Path) -> list[FieldError]:
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    errors: list[FieldError] = []
    if operator not in ("In", "NotIn"):
        errors.append(invalid(path.child("operator"), operator, _NO_OPERATOR))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(path.child("values"), detail))
    key = requirement.get("key") or ""
    if key != "metadata.name":
        return [*errors, invalid(path.child("key"), key, "not a valid field selector key")]
    for index, value in enumerate(values):
        errors += each_problem(name_formats.dns1123_subdomain, value, path.child("values").at(index))
    return errors


def _validate_weight(term: Mapping[str, Any], path: Path) -> list[FieldError]:
    weight = term.get("weight") or 0
    return [] if 0 < weight <= 100 else [invalid(path.child("weight"), weight, "must be in the range 1-100")]


def _validate_pod_affinity(affinity: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, term in enumerate(affinity.get(REQUIRED) or ()):
        errors += _validate_pod_term(term, path.child(REQUIRED).at(index))
    for index, weighted in enumerate(affinity.get(PREFERRED) or ()):
        at = path.child(PREFERRED).at(index)
        errors += _validate_weight(weighted, at)
        errors += _validate_pod_term(weighted.get("podAffinityTerm") or {}, at.child("podAffinityTerm"))
    return errors


def _validate_pod_term(term: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("labelSelector", "namespaceSelector"):
        errors += validate_label_selector(term.get(field), path.child(field))
    for namespace in term.get("namespaces") or ():
        errors += each_problem(name_formats.dns1123_label, namespace, path.child("namespace"))
    errors += _validate_label_keys(term, path)
    topology_key = term.get("topologyKey") or ""
    if not topology_key:
        errors.append(required(path.child("topologyKey"), "can not be empty"))
    return errors + validate_label_name(topology_key, path.child("topologyKey"))


def _validate_label_keys(term: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate the label keys of an affinity term; the term takes their values from the pod's own labels (KEP-3633)."""
    selector = term.get("labelSelector")
    matched, mismatched = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    errors: list[FieldError] = []
    for field, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        if keys and selector is None:
            errors.append(forbidden(path.child(field), _NO_SELECTOR))
        elif keys:
            for index, key in enumerate(keys):
                errors += validate_label_name(key, path.child(field).at(index))
    selected = set((selector or {}).get("matchLabels") or ())
    places = {key: index for index, key in enumerate(matched)}
    for expression in (selector or {}).get("matchExpressions") or ():
        key = expression.get("key") or ""
        if key in places and key in selected:
            errors.append(invalid(path.at(places[key]), key, _IN_BOTH))
        selected.add(key)
    others = set(mismatched)
    for index, key in enumerate(matched):
        if key in others:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(path.child("matchLabelKeys").at(index), key, detail))
    return errors


def validate_spreading(constraints: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    """Validate the topology spread constraints of a pod."""
    errors: list[FieldError] = []
    left = Counter(map(_spread_pair, constraints))
    for index, constraint in enumerate(constraints):
        at = path.at(index)
        skew, action = constraint.get("maxSkew") or 0, constraint.get("whenUnsatisfiable") or ""
        if skew <= 0:
            errors.append(invalid(at.child("maxSkew"), skew, NOT_POSITIVE))
        if not constraint.get("topologyKey"):
            errors.append(required(at.child("topologyKey"), "can not be empty"))
        if action not in _SPREAD_ACTIONS:
            errors.append(not_supported(at.child("whenUnsatisfiable"), action, _SPREAD_ACTIONS))
        pair = _spread_pair(constraint)
        left[pair] -= 1
        if left[pair]:
            below = at.child("{topologyKey, whenUnsatisfiable}")
            errors.append(duplicate(below, f"{{{pair[0]}, {pair[1]}}}"))
        errors += _validate_domains(constraint, action, at)
        errors += _validate_label_keys({**constraint, "mismatchLabelKeys": None}, at)
        errors += validate_label_selector(constraint.get("labelSelector"), at.child("labelSelector"))
    return errors


def _spread_pair(constraint: Mapping[str, Any]) -> tuple[str, str]:
    return constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""


def _validate_domains(constraint: Mapping[str, Any], action: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if (domains := constraint.get("minDomains")) is not None:
        if domains <= 0:
            errors.append(invalid(path.child("minDomains"), domains, NOT_POSITIVE))
        if action != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            errors.append(invalid(path.child("minDomains"), domains, detail))
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(field)
        if policy is not None and policy not in _INCLUSION_POLICIES:
            errors.append(not_supported(path.child(field), policy, _INCLUSION_POLICIES))
    return errors


def validate_gates(gates: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    """Validate the scheduling gates of a pod."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name") or ""
        errors += each_problem(name_formats.qualified_name, name, path.at(index))
        if name in seen:
            errors.append(duplicate(path.at(index), name))
        seen.add(name)
    return errors


def merge_label_keys(pod: Mapping[str, Any]) -> None:
    """Add the values of a new pod's own labels to the selectors that name their keys, in place (KEP-3633, KEP-3243)."""
    spec, labels = pod.get("spec") or {}, (pod.get("metadata") or {}).get("labels") or {}
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge(constraint, "matchLabelKeys", "In", labels)
    affinity = spec.get("affinity") or {}
    for field in ("podAffinity", "podAntiAffinity"):
        of_pods = affinity.get(field) or {}
        preferred = [each.get("podAffinityTerm") or {} for each in of_pods.get(PREFERRED) or ()]
        for term in (*preferred, *(of_pods.get(REQUIRED) or ())):
            _merge(term, "matchLabelKeys", "In", labels)
            _merge(term, "mismatchLabelKeys", "NotIn", labels)


def _merge(owner: dict[str, Any], field: str, operator: str, labels: Mapping[str, str]) -> None:
    selector = owner.get("labelSelector")
    if selector is None:
        return
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]} for key in owner.get(field) or () if key in labels
    ]
    if added:
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]
