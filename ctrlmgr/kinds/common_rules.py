"""Validation rules that many kinds use: nonnegative numbers, immutable fields, percentages.

The values were already normalized by a codec, which also dropped values without a meaning. Therefore two values have
the same meaning only if they are equal.

Source: apimachinery `pkg/api/validation/objectmeta.go` and `pkg/util/validation/validation.go`, and Kubernetes
`pkg/apis/apps/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, invalid, required
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.golang.go_numbers import parse_int

NEGATIVE = "must be greater than or equal to 0"


def nonnegative(value: int | None, path: Path) -> list[FieldError]:
    """Validate a number that must not be negative; the number may be absent."""
    return [invalid(path, value, NEGATIVE)] if value is not None and value < 0 else []


def nonnegative_fields(owner: Mapping[str, Any], fields: Iterable[str], path: Path) -> list[FieldError]:
    """Validate several numbers of one object that must not be negative."""
    return [error for field in fields for error in nonnegative(owner.get(field), path.child(field))]


def each_problem(check: Callable[[str], list[str]], value: str, path: Path) -> list[FieldError]:
    """Return the errors that `check`, a function of `validation.names`, returns for `value`."""
    return [invalid(path, value, problem) for problem in check(value)]


def malformed(path: Path, detail: str) -> FieldError:
    """Return the error for a malformed value; the message does not contain the value (Go's `OmitValueType`)."""
    return FieldError("FieldValueInvalid", path, f"Invalid value: {detail}")


def domain_path(value: str, path: Path) -> list[FieldError]:
    """Validate a name of the form `example.com/path` (`IsDomainPrefixedPath`)."""
    if not value:
        return [required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    return each_problem(name_formats.dns1123_subdomain, host, path) + each_problem(name_formats.http_path, rest, path)


def domain_prefixed_key(key: str, path: Path) -> list[FieldError]:
    """Validate a name of the form `example.com/key` (`IsDomainPrefixedKey`)."""
    if not key:
        return [required(path)]
    if problems := each_problem(name_formats.qualified_name, key, path):
        return problems
    return [] if "/" in key else [invalid(path, key, 'must be a domain-prefixed key (such as "acme.io/foo")')]


def immutable(new: Any, old: Any, path: Path) -> list[FieldError]:
    """Validate that a field is unchanged."""
    return [] if new == old else [invalid(path, new, IMMUTABLE)]


def int_or_percent(value: int | str, path: Path) -> list[FieldError]:
    """Validate a nonnegative number or a percentage."""
    if isinstance(value, str):
        return each_problem(name_formats.percent, value, path)
    return nonnegative(value, path)


def at_most_all(value: int | str, path: Path) -> list[FieldError]:
    """Validate that a percentage does not exceed 100 %."""
    share = percentage(value)
    return [invalid(path, value, "must not be greater than 100%")] if share is not None and share > 100 else []


def percentage(value: int | str) -> int | None:
    """Return the number of a percentage such as `25%`; None if `value` is not a percentage."""
    return int(value[:-1]) if isinstance(value, str) and not name_formats.percent(value) and len(value) < 20 else None


def amount(value: int | str | None) -> int:
    """Return the number of an int-or-string; if it is a string, return 0, like Go's `IntValue` for a percentage."""
    if isinstance(value, int):
        return value
    text = value or ""
    found = percentage(text)
    if found is not None:
        return found
    try:
        return parse_int(text)
    except ValueError:
        return 0


def sorted_map(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a map sorted by key, in the format of Go's messages; None stands for nil."""
    return dict(sorted(values.items())) if values else None
