"""The strategy of PriorityLevelConfigurations, which limit concurrent requests and may queue other requests.

Source: Kubernetes `pkg/apis/flowcontrol/v1/defaults.go` and `pkg/apis/flowcontrol/validation/validation.go`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.kinds.flowcontrol.mandatory_configuration import EXEMPT, PRIORITY_LEVELS, validate_fixed
from ctrlmgr.kinds.flowcontrol.status import validate_conditions

_SPEC: Final = Path("spec")
_SHARES: Final = 30
_QUEUING: Final = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
_MOST_QUEUES: Final = 10_000_000
_ZERO_SHARES: Final = "flowcontrol.k8s.io/preserve-zero-concurrency-shares"
"""The annotation that means that the shares are set to 0. In v1beta3, the value 0 and an absent value are the same."""
_HASH_BITS: Final = 60
"""The number of bits of a flow's hash that select the flow's queues."""


class PriorityLevelStrategy(Strategy):
    """The strategy of the kind flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration."""

    compares_metadata = False
    has_generation = True
    status_keeps = METADATA

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of a priority level's shares, lendable percentage, and queues."""
        spec = obj.get("spec") or {}
        for kind, shares in (("exempt", 0), ("limited", _SHARES)):
            level = spec.get(kind)
            if level is None:
                continue
            for field, value in (("nominalConcurrencyShares", shares), ("lendablePercent", 0)):
                if level.get(field) is None:
                    level[field] = value
        queuing = ((spec.get("limited") or {}).get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            queuing |= {field: value for field, value in _QUEUING.items() if not queuing.get(field)}

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the spec or the status of a priority level; the specs of mandatory levels must not change."""
        if ctx.subresource:
            return validate_conditions(obj)
        name, spec = obj["metadata"].get("name", ""), obj.get("spec") or {}
        errors = _validate_annotations(obj) + _validate_spec(name, spec)
        if name in PRIORITY_LEVELS:
            errors += _validate_fixed(name, spec)
        return errors + validate_conditions(obj)


def _validate_annotations(obj: Unstructured) -> list[FieldError]:
    if _ZERO_SHARES not in (metadata_of(obj).get("annotations") or {}):
        return []
    return [forbidden("metadata.annotations", f"annotation '{_ZERO_SHARES}' is forbidden")]


def _validate_fixed(name: str, spec: Mapping[str, Any]) -> list[FieldError]:
    fixed, what = PRIORITY_LEVELS[name], f"spec of '{name}'"
    if name == EXEMPT:
        fixed = {**fixed, **({"exempt": spec["exempt"]} if spec.get("exempt") is not None else {})}
        what += " except the 'spec.exempt' field"
    return validate_fixed("PriorityLevelConfigurationSpec", spec, fixed, what)


def _validate_spec(name: str, spec: Mapping[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    type_, exempt, limited = spec.get("type") or "", spec.get("exempt"), spec.get("limited")
    if (name == EXEMPT) != (type_ == "Exempt"):
        errors.append(invalid(_SPEC.child("type"), type_, "must be 'Exempt' if and only if `name` is 'exempt'"))
    match type_:
        case "Exempt":
            if limited is not None:
                errors.append(forbidden(_SPEC.child("limited"), "must be nil if the type is not Limited"))
            errors += _validate_shares(exempt or {}, _SPEC.child("exempt"))
            errors += _validate_lent(exempt or {}, _SPEC.child("exempt"))
        case "Limited":
            if exempt is not None:
                errors.append(forbidden(_SPEC.child("exempt"), "must be nil if the type is Limited"))
            if limited is None:
                errors.append(required(_SPEC.child("limited"), "must not be empty when type is Limited"))
            else:
                errors += _validate_limited(limited, _SPEC.child("limited"))
        case _:
            errors.append(not_supported(_SPEC.child("type"), type_, ("Exempt", "Limited")))
    return errors


def _validate_shares(level: Mapping[str, Any], path: Path) -> list[FieldError]:
    shares = level.get("nominalConcurrencyShares") or 0
    if shares >= 0:
        return []
    return [invalid(path.child("nominalConcurrencyShares"), shares, "must be a non-negative integer")]


def _validate_lent(level: Mapping[str, Any], path: Path) -> list[FieldError]:
    lends = level.get("lendablePercent") or 0
    if 0 <= lends <= 100:
        return []
    return [invalid(path.child("lendablePercent"), lends, "must be between 0 and 100, inclusive")]


def _validate_limited(limited: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors = _validate_shares(limited, path)
    errors += _validate_response(limited.get("limitResponse") or {}, path.child("limitResponse"))
    errors += _validate_lent(limited, path)
    borrows = limited.get("borrowingLimitPercent")
    if borrows is not None and borrows < 0:
        detail = "if specified, must be a non-negative integer"
        errors.append(invalid(path.child("borrowingLimitPercent"), borrows, detail))
    return errors


def _validate_response(response: Mapping[str, Any], path: Path) -> list[FieldError]:
    queuing, where = response.get("queuing"), path.child("queuing")
    match response.get("type") or "":
        case "Reject":
            detail = "must be nil if limited.limitResponse.type is not Limited"
            return [] if queuing is None else [forbidden(where, detail)]
        case "Queue":
            if queuing is None:
                return [required(where, "must not be empty if limited.limitResponse.type is Limited")]
            return _validate_queuing(queuing, where)
        case other:
            return [not_supported(path.child("type"), other, ("Queue", "Reject"))]


def _validate_queuing(queuing: Mapping[str, Any], path: Path) -> list[FieldError]:
    queues, hand, length = (queuing.get(each) or 0 for each in ("queues", "handSize", "queueLengthLimit"))
    errors = [] if length > 0 else [invalid(path.child("queueLengthLimit"), length, "must be positive")]
    if queues <= 0:
        errors.append(invalid(path.child("queues"), queues, "must be positive"))
    elif queues > _MOST_QUEUES:
        errors.append(invalid(path.child("queues"), queues, f"must not be greater than {_MOST_QUEUES}"))
    where = path.child("handSize")
    if hand <= 0:
        errors.append(invalid(where, hand, "must be positive"))
    elif hand > queues:
        errors.append(invalid(where, hand, f"should not be greater than queues ({queues})"))
    elif _entropy(queues, hand) > _HASH_BITS:
        needed = f"required entropy bits of deckSize {queues} and handSize {hand}"
        errors.append(invalid(where, hand, f"{needed} should not be greater than {_HASH_BITS}"))
    return errors


def _entropy(deck: int, hand: int) -> int:
    """Return the number of hash bits that are needed to select queues (apiserver `pkg/util/shufflesharding`)."""
    return math.ceil(math.log2(deck) * hand)
