"""The strategy of LimitRanges: derives containers' defaults from limits, and requires minimum ≤ default ≤ maximum.

Source: Kubernetes `pkg/registry/core/limitrange`, `pkg/apis/core/validation`, `ValidateLimitRange`, and
`pkg/apis/core/v1/defaults.go`, `SetDefaults_LimitRangeItem`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any
from uuid import UUID

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, required
from ctrlmgr.api.quantity import MILLI, WHOLE, parse
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.quantities import (
    is_overcommittable,
    validate_container_resource_name,
    validate_resource_name,
)
from ctrlmgr.kinds.common_rules import each_problem

_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_DEFAULTS = ("default", "defaultRequest")
_MOST_IN_MILLI = (2**63 - 1) // 1000
"""The largest amount in units that can be converted to thousandths without an overflow (resource.MaxMilliValue)."""


class LimitRangeStrategy(Strategy):
    """The strategy of the kind v1 LimitRange."""

    allow_create_on_update = True
    compares_metadata = False

    def default(self, obj: Unstructured) -> None:
        """Set the default limit of a container to its maximum, and the default request to that limit.

        If there is no limit, set the default request to the minimum.
        """
        for limit in (obj.get("spec") or {}).get("limits") or ():
            if limit.get("type") != "Container":
                continue
            default = {**(limit.get("max") or {}), **(limit.get("default") or {})}
            request = {**(limit.get("min") or {}), **default, **(limit.get("defaultRequest") or {})}
            limit.update({key: value for key, value in (("default", default), ("defaultRequest", request)) if value})

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Generate the name of a LimitRange without a name."""
        metadata = metadata_of(obj)
        if not metadata.get("name") and not metadata.get("generateName"):
            metadata["name"] = str(UUID(int=ctx.random.getrandbits(128), version=4))

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate every limit of a LimitRange, and validate that each type has at most one limit."""
        errors: list[FieldError] = []
        seen: set[str] = set()
        for at, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
            path, type_ = Path("spec.limits").at(at), limit.get("type", "")
            errors += _validate_type(type_, path.child("type"))
            if type_ in seen:
                errors.append(duplicate(path.child("type"), type_))
            seen.add(type_)
            errors += _validate_names(limit, type_, path)
            errors += [error for name in _resources(limit) for error in _Amounts(limit, name, path).errors()]
        return errors


def _validate_type(type_: str, path: Path) -> list[FieldError]:
    errors = each_problem(name_formats.qualified_name, type_, path)
    if not errors and "/" not in type_ and type_ not in _TYPES:
        errors.append(invalid(path, type_, "must be a standard limit type or fully qualified"))
    return errors


def _validate_names(limit: Mapping[str, Any], type_: str, path: Path) -> list[FieldError]:
    check = validate_container_resource_name if type_ in ("Pod", "Container") else validate_resource_name
    errors: list[FieldError] = []
    for field in ("max", "min", *_DEFAULTS, "maxLimitRequestRatio"):
        amounts = limit.get(field) or {}
        if type_ == "Pod" and field in _DEFAULTS:
            errors += [forbidden(path.child(field), "may not be specified when `type` is 'Pod'")] if amounts else []
            continue
        errors += [error for name in amounts for error in check(name, path.child(field).key(name))]
    if type_ == "PersistentVolumeClaim" and not any("storage" in (limit.get(each) or {}) for each in ("min", "max")):
        words = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(path.child("limits"), words))
    return errors


def _resources(limit: Mapping[str, Any]) -> Iterator[str]:
    """Return the names of the resources in a limit of a LimitRange, without duplicates."""
    fields = ("max", "min", *(() if limit.get("type") == "Pod" else _DEFAULTS), "maxLimitRequestRatio")
    return iter(dict.fromkeys(name for field in fields for name in limit.get(field) or ()))


class _Amounts:
    """The amounts that a limit of a LimitRange contains for one resource."""

    def __init__(self, limit: Mapping[str, Any], name: str, path: Path) -> None:
        self.name = name
        self.path = path
        fields = ("min", "max", *(() if limit.get("type") == "Pod" else _DEFAULTS), "maxLimitRequestRatio")
        self.texts: dict[str, str] = {each: limit[each][name] for each in fields if name in (limit.get(each) or {})}

    def errors(self) -> Iterator[FieldError]:
        yield from self._ordered("min", "max", "min", "min", "min value {} is greater than max value {}")
        words = "min value {} is greater than default request value {}"
        yield from self._ordered("min", "defaultRequest", "defaultRequest", "defaultRequest", words)
        words = "default request value {} is greater than max value {}"
        yield from self._ordered("defaultRequest", "max", "defaultRequest", "defaultRequest", words)
        words = "default request value {} is greater than default limit value {}"
        yield from self._ordered("defaultRequest", "default", "defaultRequest", "defaultRequest", words)
        yield from self._ordered("min", "default", "default", "min", "min value {} is greater than default value {}")
        yield from self._ordered("default", "max", "default", "max", "default value {} is greater than max value {}")
        yield from self._ratio()
        yield from self._same_default()

    def _ordered(self, low: str, high: str, field: str, shown: str, words: str) -> Iterator[FieldError]:
        texts = self.texts
        if low in texts and high in texts and parse(texts[low]) > parse(texts[high]):
            yield invalid(self.path.child(field).key(self.name), texts[shown], words.format(texts[low], texts[high]))

    def _ratio(self) -> Iterator[FieldError]:
        text = self.texts.get("maxLimitRequestRatio")
        if text is None:
            return
        ratio, path = parse(text), self.path.child("maxLimitRequestRatio").key(self.name)
        if ratio < WHOLE:
            yield invalid(path, text, f"ratio {text} is less than 1")
        if "min" in self.texts and "max" in self.texts and (highest := self._highest_ratio(ratio)) is not None:
            yield invalid(path, text, f"ratio {text} is greater than max/min = {highest:f}")

    def _highest_ratio(self, ratio: int) -> float | None:
        """Return the ratio of maximum to minimum if it exceeds `ratio` (in billionths).

        As in Kubernetes, maximum and minimum are converted to thousandths. If one of the amounts is too large for
        thousandths, both amounts are compared in units.
        """
        amounts = [ratio, parse(self.texts["min"]), parse(self.texts["max"])]
        unit = MILLI if all(-(-each // WHOLE) < _MOST_IN_MILLI for each in amounts) else WHOLE
        requested, low, high = (-(-each // unit) for each in amounts)
        highest = high / low if low else inf
        return highest if requested / (WHOLE // unit) > highest else None

    def _same_default(self) -> Iterator[FieldError]:
        if is_overcommittable(self.name) or not all(each in self.texts for each in _DEFAULTS):
            return
        limit, request = self.texts["default"], self.texts["defaultRequest"]
        if parse(limit) != parse(request):
            words = f"default value {limit} must equal to defaultRequest value {request} in {self.name}"
            yield invalid(self.path.child("defaultRequest").key(self.name), request, words)
