"""Creates field paths and field errors: the results of validation, which become the causes of a `Status`.

Guarantees: error messages equal Kubernetes' messages byte for byte, so that clients can match on the messages
(apimachinery `pkg/util/validation/field/errors.go` and `path.go`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any, NamedTuple, TypeVar

import msgspec

from ctrlmgr.errors import Invalid, StatusCause, StatusDetails
from ctrlmgr.golang.go_numbers import write_float
from ctrlmgr.golang.go_text import escape_html, quote


class Path(str):
    """The path of a field, as the causes of a Status contain it: `spec.ports[0].name`, `metadata.labels[a/b]`."""

    __slots__ = ()

    def child(self, *names: str) -> Path:
        """Return the path of the field `name` below this path."""
        below = ".".join(names)
        return Path(f"{self}.{below}" if self else below)

    def at(self, index: int) -> Path:
        """Return the path of an element of the list at this path."""
        return Path(f"{self}[{index}]")

    def key(self, key: str) -> Path:
        """Return the path of a value of the map at this path."""
        return Path(f"{self}[{key}]")


T = TypeVar("T")

ROOT = Path()

MOST_ERRORS = 200
"""The maximum number of field errors in an error response."""

LONGEST_VALUE = 16 * 1024
"""The maximum number of characters of a value that an error shows."""

_LONGEST_REFUSAL = 128 * 1024
"""The maximum total length of the errors of one object in characters.

The first error is reported even if this error alone is longer.
"""

MOST_FOUND = 1000
"""The maximum number of errors that a search finds in one object; an error response contains fewer errors."""

_LONGEST_BODY = _LONGEST_REFUSAL // 2
"""The maximum length of one error in characters.

An error about an immutable field may contain both the old and the new value of the field.
"""

_LONGEST_FOUND = 2 * _LONGEST_REFUSAL


class FieldError(NamedTuple):
    """One error of one field; only the functions of this module create field errors."""

    reason: str
    field: str
    body: str

    @property
    def message(self) -> str:
        """The whole error message, which consists of path and body."""
        return f"{self.field}: {self.body}"


class FoundErrors(list[FieldError]):
    """The errors found before the search stopped at `MOST_FOUND`; the object may have more errors."""


class _ErrorLimitReached(BaseException):
    """Ends the search for errors; the class is a BaseException so that `except Exception` does not catch it."""


class _ErrorSearch(threading.local):
    """The errors that the current search of this thread has found.

    If `errors` is None, found errors are neither recorded nor counted.
    """

    errors: FoundErrors | None = None
    room = 0


_search = _ErrorSearch()


def errors_of(find: Callable[[], list[FieldError]]) -> list[FieldError]:
    """Return the errors that `find` returns; if the search stops at a limit, return the errors found so far.

    A body of a megabyte can contain 300,000 elements with three errors each, but an error response lists only 200
    errors. If the search stops at a limit, the errors found so far are returned as `FoundErrors`. If `find`
    creates errors that it does not return, it must create these errors within `tentatively`.
    """
    before = _search.errors, _search.room
    _search.errors = found = FoundErrors()
    _search.room = _LONGEST_FOUND
    try:
        return find()
    except _ErrorLimitReached:
        return found
    finally:
        _search.errors, _search.room = before


def tentatively(find: Callable[[], T]) -> T:
    """Call `find` once, and return its result.

    The errors that `find` creates do not count towards the limits of the search. The caller uses these errors only for
    a decision, and does not report them.
    """
    before = _search.errors
    _search.errors = None
    try:
        return find()
    finally:
        _search.errors = before


def _value(value: Any) -> str:
    """Format a value as Go's `ErrorBody` does: strings as `%q`, floats as `%v`, others as JSON, None as null.

    A value of more than `LONGEST_VALUE` characters is truncated, so that a client cannot cause a huge error response.
    """
    if isinstance(value, str):
        return quote(value) if len(value) <= LONGEST_VALUE else _cut(quote(value[:LONGEST_VALUE]), len(value))
    if type(value) is float and isfinite(value):
        return write_float(value)
    written = msgspec.json.encode(value)
    if len(written) <= LONGEST_VALUE:
        return escape_html(written).decode()
    return _cut(escape_html(written[:LONGEST_VALUE]).decode("utf-8", "ignore"), len(written))


def _cut(shown: str, length: int) -> str:
    return f"{shown}... and {length - LONGEST_VALUE} more"


def _error(reason: str, label: str, field: str, detail: str, *values: Any) -> FieldError:
    body = ": ".join([label, *(_value(value) for value in values), *([detail] if detail else [])])
    if len(body) > _LONGEST_BODY:
        body = f"{body[:_LONGEST_BODY]}... and {len(body) - _LONGEST_BODY} more"
    # the field is encoded later, so store a plain str, not a `Path`
    error = FieldError(reason, str(field), body)
    if (found := _search.errors) is not None:
        found.append(error)
        _search.room -= len(field) + len(body)
        if len(found) >= MOST_FOUND or _search.room < 0:
            raise _ErrorLimitReached
    return error


def invalid(field: str, value: Any, detail: str) -> FieldError:
    """Return the error for a malformed value, whose value is formatted as in Go (None becomes nil)."""
    return _error("FieldValueInvalid", "Invalid value", field, detail, value)


def required(field: str, detail: str = "") -> FieldError:
    """Return the error for a missing value."""
    return _error("FieldValueRequired", "Required value", field, detail)


def duplicate(field: str, value: Any, detail: str = "") -> FieldError:
    """Return the error for a value that occurs more than once although it must be unique."""
    return _error("FieldValueDuplicate", "Duplicate value", field, detail, value)


def forbidden(field: str, detail: str) -> FieldError:
    """Return the error for a value that other fields forbid."""
    return _error("FieldValueForbidden", "Forbidden", field, detail)


def internal_error(field: str, detail: str) -> FieldError:
    """Return the error for a value that could not be checked because of an internal error."""
    return _error("InternalError", "Internal error", field, detail)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Return the error for a value outside an enumeration.

    The message lists the supported values in the given order, but sorts the values of a set, as Go's `sets.List` does.
    """
    return unsupported(field, value, supported_values(supported))


def supported_values(supported: Iterable[str]) -> str:
    """Return the message of `not_supported` for the values of an enumeration."""
    values = sorted(supported) if isinstance(supported, (set, frozenset)) else supported
    return f"supported values: {', '.join(quote(each) for each in values)}"


def unsupported(field: str, value: Any, detail: str) -> FieldError:
    """Return the error for a value outside an enumeration, with a message from `supported_values`."""
    return _error("FieldValueNotSupported", "Unsupported value", field, detail, value)


def not_found(field: str, value: Any, detail: str = "") -> FieldError:
    """Return the error for a field that names an object that does not exist."""
    return _error("FieldValueNotFound", "Not found", field, detail, value)


def too_long(field: str, limit: int) -> FieldError:
    """Return the error for a value of more than `limit` bytes; the message does not contain the value."""
    return _error("FieldValueTooLong", "Too long", field, f"may not be more than {limit} byte{'s' * (limit != 1)}")


def too_many(field: str, count: int, limit: int) -> FieldError:
    """Return the error for a list with `count` items, which is more than the allowed number `limit`."""
    return _error("FieldValueTooMany", "Too many", field, f"must have at most {limit} item{'s' * (limit != 1)}", count)


def refuse(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> Invalid:
    """Return the 422 error for an object of `kind` (such as `Service`), as apimachinery's `errors.NewInvalid` does."""
    messages = _reported(errors)
    seen = list(dict.fromkeys(error.message for error in messages))
    if len(messages) < len(errors):
        seen.append(f"and {'at least ' if isinstance(errors, FoundErrors) else ''}{len(errors) - len(messages)} more")
    text = seen[0] if len(seen) == 1 else f"[{', '.join(seen)}]"
    causes = tuple(StatusCause(error.reason, error.body, str(error.field)) for error in messages)
    qualified = f"{kind}.{group}" if group else kind
    return Invalid(
        f'{qualified} "{name}" is invalid: {text}' if errors else f'{qualified} "{name}" is invalid',
        details=StatusDetails(name=name, group=group, kind=kind, causes=causes),
    )


def _reported(errors: Sequence[FieldError]) -> Sequence[FieldError]:
    """Return the first errors, up to the limits of an error response; usually the response can contain all errors."""
    room = _LONGEST_REFUSAL
    for count, error in enumerate(errors[:MOST_ERRORS]):
        room -= len(error.field) + len(error.body)
        if room < 0:
            return errors[: max(count, 1)]
    return errors[:MOST_ERRORS]
