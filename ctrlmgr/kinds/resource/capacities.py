"""Validates the capacities of devices, and the portions of a capacity that several claims may request (KEP-5075).

Amounts of capacity are quantities. Sums and remainders are computed with integers, which are rounded in the same way as
by Go's `Quantity.Value`.

Source: Kubernetes `pkg/apis/resource/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, required, too_many
from ctrlmgr.api.quantity import WHOLE, parse, plus
from ctrlmgr.kinds.resource.shared_parts import Fields

_MAX_OPTIONS = 10
_TWO_POLICIES = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'


def validate_capacity(capacity: Fields, path: Path, *, is_shared: bool) -> list[FieldError]:
    """Validate one capacity of a device; if `is_shared` is set, several claims may share the device."""
    policy, below = capacity.get("requestPolicy"), path.child("requestPolicy")
    if policy is None:
        return []
    if not is_shared:
        return [forbidden(below, "allowMultipleAllocations must be true")]
    options, bounds, default = policy.get("validValues") or (), policy.get("validRange"), policy.get("default")
    if options and bounds is not None:
        return [forbidden(below, _TWO_POLICIES)]
    if not options and bounds is None:
        return []
    field, whole = "validValues" if options else "validRange", capacity.get("value") or "0"
    if default is None:
        return [required(below.child("default"), f"required when {field} is defined")]
    if options:
        return _validate_options(options, default, whole, below.child(field))
    return _validate_bounds(bounds or {}, default, whole, below.child(field))


def _validate_options(options: Sequence[str], default: str, whole: str, path: Path) -> list[FieldError]:
    errors = [
        invalid(path.at(at), options[at], "values must be sorted in ascending order")
        for at in range(1, len(options))
        if parse(options[at - 1]) > parse(options[at])
    ]
    is_known = False
    if len(options) > _MAX_OPTIONS:
        errors.append(too_many(path, len(options), _MAX_OPTIONS))
    else:
        errors += [
            invalid(path.at(at), each, f"option is larger than capacity value: {whole}")
            for at, each in enumerate(options)
            if parse(each) > parse(whole)
        ]
        errors += _duplicates([str(_number(each)) for each in options], path)
        is_known = parse(default) in map(parse, options)
    if not is_known:
        errors.append(invalid(path, default, "default value is not valid according to the requestPolicy"))
    return errors


def _duplicates(values: Sequence[str], path: Path) -> list[FieldError]:
    return [duplicate(path.at(at), each) for at, each in enumerate(values) if each in values[:at]]


def _validate_bounds(bounds: Fields, default: str, whole: str, path: Path) -> list[FieldError]:
    least, most, step = bounds.get("min"), bounds.get("max"), bounds.get("step")
    if least is None:
        return [required(path.child("min"), "required when validRange is defined")]
    errors: list[FieldError] = []
    if parse(least) > parse(whole):
        errors.append(invalid(path.child("min"), least, f"min is larger than capacity value: {whole}"))
    if parse(default) < parse(least):
        errors.append(invalid(path.child("min"), default, f"default is less than min: {least}"))
    if most is not None:
        errors += _validate_most(most, least, default, whole, path.child("max"))
    if step is None:
        return errors
    below, first = path.child("step"), plus(least, step)
    if parse(first) > parse(whole):
        errors.append(invalid(below, step, f"one step {first} is larger than capacity value: {whole}"))
    return errors + [
        error for each in (default, most) if each is not None for error in _validate_step(each, least, step, below)
    ]


def _validate_most(most: str, least: str, default: str, whole: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if parse(least) > parse(most):
        errors.append(invalid(path, least, f"min is larger than max: {most}"))
    if parse(most) > parse(whole):
        errors.append(invalid(path, most, f"max is larger than capacity value: {whole}"))
    if parse(default) > parse(most):
        errors.append(invalid(path, default, f"default is more than max: {most}"))
    return errors


def _validate_step(value: str, least: str, step: str, path: Path) -> list[FieldError]:
    """Validate that a value is `least` plus a multiple of `step`.

    A `step` of 0 is refused; Kubernetes panics in this case.
    """
    size = _number(step)
    if size and not (_number(value) - _number(least)) % size:
        return []
    return [invalid(path, value, f"value is not a multiple of a given step ({step}) from ({least})")]


def _number(amount: str) -> int:
    """Return an amount as an integer that is rounded away from 0."""
    billionths = parse(amount)
    return -(-billionths // WHOLE) if billionths > 0 else billionths // WHOLE
