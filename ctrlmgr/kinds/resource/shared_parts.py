"""Validates parts that several kinds of resource.k8s.io have: bounded lists, names, taints, and driver configurations.

In Kubernetes' declarative validation, some rules of this module are only alpha. Therefore the errors of this module are
the same as in the file below.

Source: Kubernetes `pkg/apis/resource/validation/validation.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ctrlmgr.api.field import (
    FieldError,
    Path,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from ctrlmgr.api.unstructured import repeated
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_label_name
from ctrlmgr.kinds.common_rules import each_problem
from ctrlmgr.kinds.core.volume_sources import driver_name

T = TypeVar("T")
Fields = Mapping[str, Any]
Check = Callable[[T, Path], list[FieldError]]

MAX_REQUESTS = 32
MAX_CONFIGURATIONS = 32
_MAX_IDENTIFIER = 32
_MAX_DOMAIN = 63
MAX_QUALIFIED_NAME = _MAX_DOMAIN + 1 + _MAX_IDENTIFIER
_MAX_BINDING_CONDITIONS = 4
MAX_DATA = 10 * 1024
"""The maximum size of a driver's configuration, or of a driver's data about a device, in bytes of JSON."""

_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_C_IDENTIFIER_WORDS = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_'"
)
_EFFECTS = frozenset({"NoSchedule", "NoExecute", "None"})
_UNSHOWN = "<value omitted>"


def validate_list(values: Sequence[T], most: int | None, check: Check[T], path: Path) -> list[FieldError]:
    """Validate the elements of a list with at most `most` elements; if `most` is None, the number is not limited."""
    if most is not None and len(values) > most:
        return [too_many(path, len(values), most)]
    return [error for at, value in enumerate(values) for error in check(value, path.at(at))]


def validate_set(
    values: Sequence[T], most: int | None, check: Check[T], path: Path, key: Callable[[T], Hashable] | None = None
) -> list[FieldError]:
    """Validate a list like `validate_list`, and validate that all elements have different keys.

    The function `key` returns the key of an element. By default, the key is the element itself.
    """
    errors = validate_list(values, most, check, path)
    if most is not None and len(values) > most:
        return errors
    seen: set[Any] = set()
    for at, value in enumerate(values):
        known = value if key is None else key(value)
        if known in seen:
            errors.append(duplicate(path.at(at), known))
        seen.add(known)
    return errors


def validate_entries(
    entries: Mapping[str, T], most: int | None, check_key: Check[str], check: Check[T], path: Path, longest: int
) -> list[FieldError]:
    """Validate the entries of a map with at most a given number of entries.

    In errors, the path of a value contains at most `longest` characters of the key.
    """
    if most is not None and len(entries) > most:
        return [too_many(path, len(entries), most)]
    errors: list[FieldError] = []
    for key, value in sorted(entries.items()):
        errors += check_key(key, path) + check(value, path.key(_cut(key, longest)))
    return errors


def _cut(key: str, longest: int) -> str:
    if name_formats.length(key) <= longest:
        return key
    room = longest - len("...")
    return f"{key[: (room + 1) // 2]}...{key[len(key) - room // 2 :]}"


def label(name: str, path: Path) -> list[FieldError]:
    """Validate the name of a device, a request or a set of counters."""
    return each_problem(name_formats.dns1123_label, name, path)


def required_label(name: str, path: Path) -> list[FieldError]:
    """Validate a name like `validate_name`, and validate that it is not empty."""
    return label(name, path) if name else [required(path)]


def pool_name(name: str, path: Path) -> list[FieldError]:
    """Validate a name of the form `part/part`; each part must be a domain name."""
    if not name:
        return [required(path)]
    errors = (
        [too_long(path, name_formats.SUBDOMAIN_LENGTH)]
        if name_formats.length(name) > name_formats.SUBDOMAIN_LENGTH
        else []
    )
    return errors + [
        error for part in name.split("/") for error in each_problem(name_formats.dns1123_subdomain, part, path)
    ]


def qualified_name(name: str, path: Path) -> list[FieldError]:
    """Validate a name of the form `identifier` or `domain/identifier`; names with more slashes are not validated."""
    domain, *rest = name.split("/")
    if not rest:
        return _identifier(domain, path)
    if len(rest) > 1:
        return []
    errors = driver_name(domain, path) if domain else [invalid(path, "", "the domain must not be empty")]
    return errors + (_identifier(rest[0], path) if rest[0] else [invalid(path, "", "the name must not be empty")])


def fully_qualified_name(name: str, path: Path) -> list[FieldError]:
    """Validate a name of the form `domain/identifier`."""
    errors = qualified_name(name, path)
    if "/" not in name:
        errors.append(invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash"))
    return errors


def _identifier(name: str, path: Path) -> list[FieldError]:
    errors = [too_long(path, _MAX_IDENTIFIER)] if name_formats.length(name) > _MAX_IDENTIFIER else []
    if not re.fullmatch(_C_IDENTIFIER, name):
        examples = ("my_name", "MY_NAME", "MyName")
        errors.append(invalid(path, name, name_formats.mismatch(_C_IDENTIFIER_WORDS, _C_IDENTIFIER, *examples)))
    return errors


def validate_taint(taint: Fields, path: Path, *, with_effect: bool = True) -> list[FieldError]:
    """Validate a taint of a device; by default, the effect of the taint is also validated."""
    errors = validate_label_name(taint.get("key") or "", path.child("key"))
    errors += each_problem(name_formats.label_value, taint.get("value") or "", path.child("value"))
    if not with_effect:
        return errors
    effect, below = taint.get("effect") or "", path.child("effect")
    return errors + (_validate_effect(effect, below) if effect else [required(below)])


def _validate_effect(effect: str, path: Path) -> list[FieldError]:
    return [] if effect in _EFFECTS else [not_supported(path, effect, _EFFECTS)]


def validate_toleration(toleration: Fields, path: Path) -> list[FieldError]:
    """Validate a toleration for device taints."""
    key, value = toleration.get("key") or "", toleration.get("value") or ""
    effect = toleration.get("effect") or ""
    errors = validate_label_name(key, path.child("key")) if key else []
    errors += _validate_operator(toleration.get("operator") or "", value, path)
    return errors + (_validate_effect(effect, path.child("effect")) if effect else [])


def _validate_operator(operator: str, value: str, path: Path) -> list[FieldError]:
    below = path.child("operator")
    if operator == "Exists":
        return [invalid(path.child("value"), value, "must be empty for operator `Exists`")] if value else []
    if operator == "Equal":
        return each_problem(name_formats.label_value, value, path.child("value"))
    return [not_supported(below, operator, ("Equal", "Exists"))] if operator else [required(below)]


def validate_configuration(configuration: Fields, path: Path, *, stored: bool) -> list[FieldError]:
    """Validate the configuration of a driver.

    Parameters that were already stored (`stored`) may exceed the maximum size.
    """
    opaque, below = configuration.get("opaque"), path.child("opaque")
    if opaque is None:
        return [required(below)]
    errors = driver_name(opaque.get("driver") or "", below.child("driver"))
    return errors + validate_data(opaque.get("parameters"), below.child("parameters"), stored=stored)


def validate_data(data: Any, path: Path, *, stored: bool = False) -> list[FieldError]:
    """Validate an opaque object that a driver reads or writes; the content of the object is not validated."""
    if data is None:
        return [required(path)]
    if not stored and len(msgspec.json.encode(data)) > MAX_DATA:
        return [too_long(path, MAX_DATA)]
    return [] if isinstance(data, dict) else [invalid(path, _UNSHOWN, "must be a valid JSON object")]


def validate_binding(owner: Fields, path: Path) -> list[FieldError]:
    """Validate the binding conditions and the binding failure conditions of a device.

    Either both lists exist, or neither list exists.
    """
    wanted, failed = owner.get("bindingConditions") or (), owner.get("bindingFailureConditions") or ()
    at_wanted, at_failed = path.child("bindingConditions"), path.child("bindingFailureConditions")
    errors = validate_list(wanted, _MAX_BINDING_CONDITIONS, validate_label_name, at_wanted)
    errors += validate_list(failed, _MAX_BINDING_CONDITIONS, validate_label_name, at_failed)
    errors += [duplicate(at_wanted.at(at), wanted[at]) for at in sorted(repeated(wanted))]
    known, again = frozenset(wanted), repeated(failed)
    for at, each in enumerate(failed):
        if at in again:
            errors.append(duplicate(at_failed.at(at), each))
        if each in known:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            errors.append(invalid(at_failed.at(at), each, detail))
    if failed and not wanted:
        detail = "bindingConditions are required to use bindingFailureConditions"
        errors.append(invalid(at_wanted, None, detail))
    if wanted and not failed:
        detail = "bindingFailureConditions are required to use bindingConditions"
        errors.append(invalid(at_failed, None, detail))
    return errors
