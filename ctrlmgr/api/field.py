"""Field paths and field errors: what validation returns, and the `Status` causes they become.

Guarantees: an error reads as Kubernetes' does, byte for byte, so that clients which match on messages keep
working (apimachinery `pkg/util/validation/field/errors.go` and `path.go`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.api.go_text import escape_html, quote
from ctrlmgr.errors import Invalid, StatusCause, StatusDetails


class Path(str):
    """A field's path as causes carry it: `spec.ports[0].name`, `metadata.labels[a/b]`."""

    __slots__ = ()

    def child(self, *names: str) -> Path:
        """Return the path of a field below this one."""
        below = ".".join(names)
        return Path(f"{self}.{below}" if self else below)

    def at(self, index: int) -> Path:
        """Return the path of a list's element."""
        return Path(f"{self}[{index}]")

    def key(self, key: str) -> Path:
        """Return the path of a map's value."""
        return Path(f"{self}[{key}]")


ROOT = Path()


class FieldError(NamedTuple):
    """One thing that is wrong with one field; made by the functions below."""

    reason: str
    field: str
    body: str

    @property
    def message(self) -> str:
        """The whole message: path and body."""
        return f"{self.field}: {self.body}"


def _value(value: Any) -> str:
    """Write a value as Go's `ErrorBody` does: strings as `%q`, all else as JSON, so null for nil."""
    if isinstance(value, str):
        return quote(value)
    return escape_html(msgspec.json.encode(value)).decode()


def _error(reason: str, label: str, field: str, detail: str, *values: Any) -> FieldError:
    body = ": ".join([label, *(_value(value) for value in values), *([detail] if detail else [])])
    return FieldError(reason, str(field), body)  # a plain text even of a `Path`: it is encoded as it is


def invalid(field: str, value: Any, detail: str) -> FieldError:
    """Return the error for a malformed value, which is shown as Go would show it (None for nil)."""
    return _error("FieldValueInvalid", "Invalid value", field, detail, value)


def required(field: str, detail: str = "") -> FieldError:
    """Return the error for a missing value."""
    return _error("FieldValueRequired", "Required value", field, detail)


def duplicate(field: str, value: Any, detail: str = "") -> FieldError:
    """Return the error for a value that must be unique and is there twice."""
    return _error("FieldValueDuplicate", "Duplicate value", field, detail, value)


def forbidden(field: str, detail: str) -> FieldError:
    """Return the error for a value that is not allowed here under the circumstances."""
    return _error("FieldValueForbidden", "Forbidden", field, detail)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Return the error for a value that an enumeration lacks.

    Its values are shown in the order given; a set's sorted, as Go's `sets.List` does.
    """
    values = sorted(supported) if isinstance(supported, (set, frozenset)) else supported
    detail = ", ".join(quote(each) for each in values)
    return _error("FieldValueNotSupported", "Unsupported value", field, f"supported values: {detail}", value)


def not_found(field: str, value: Any, detail: str = "") -> FieldError:
    """Return the error for a value that names something that does not exist."""
    return _error("FieldValueNotFound", "Not found", field, detail, value)


def too_long(field: str, limit: int) -> FieldError:
    """Return the error for a value of more than `limit` bytes; the value itself is not shown."""
    return _error("FieldValueTooLong", "Too long", field, f"may not be more than {limit} byte{'s' * (limit != 1)}")


def too_many(field: str, count: int, limit: int) -> FieldError:
    """Return the error for a list that has `count` items, more than `limit`."""
    return _error("FieldValueTooMany", "Too many", field, f"must have at most {limit} item{'s' * (limit != 1)}", count)


def refuse(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> Invalid:
    """Return the 422 for an object of `kind` (`Service`) with these errors (apimachinery `errors.NewInvalid`)."""
    seen = list(dict.fromkeys(error.message for error in errors))
    text = seen[0] if len(seen) == 1 else f"[{', '.join(seen)}]"
    causes = tuple(StatusCause(error.reason, error.body, str(error.field)) for error in errors)
    qualified = f"{kind}.{group}" if group else kind
    return Invalid(
        f'{qualified} "{name}" is invalid: {text}' if errors else f'{qualified} "{name}" is invalid',
        details=StatusDetails(name=name, group=group, kind=kind, causes=causes),
    )
