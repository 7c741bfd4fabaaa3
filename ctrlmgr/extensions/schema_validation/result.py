"""The result of validation: errors in the form of Kubernetes' validator, from which causes are created.

Guarantees: as in Kubernetes, an error is dropped if an earlier error has the same identifying string. The field
`matches` counts valid parts. If a schema has several alternatives, the alternative with the most matches is the best.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from ctrlmgr.api.field import FieldError, Path, invalid, required, too_long, too_many, unsupported
from ctrlmgr.extensions.schema_validation.go_json_values import shown_value
from ctrlmgr.golang.go_numbers import write_float
from ctrlmgr.golang.go_text import quote

MOST_ERRORS = 1000
"""The maximum number of errors in a result; further errors would not help the user."""

NOWHERE = "<nil>"
"""The string that Kubernetes uses as the path of an error without a path."""


class FoundError(NamedTuple):
    """An error: the string that identifies it, and a function that creates the cause for a path."""

    key: Hashable
    """The message of the error, or the part of the message that identifies the error."""
    at: str | None
    """The path within the validated value: "" for the value itself, None if the error has no path."""
    cause: Callable[[str], FieldError]


class Result:
    """The errors and the number of matches for one schema and one value."""

    __slots__ = ("errors", "matches")

    def __init__(self) -> None:
        """Create a result without errors."""
        self.errors: dict[Hashable, FoundError] = {}
        self.matches = 0

    @property
    def is_valid(self) -> bool:
        """Return whether the result has no errors."""
        return not self.errors

    @property
    def is_full(self) -> bool:
        """Return whether the result has `MOST_ERRORS` errors, so that the validator stops."""
        return len(self.errors) >= MOST_ERRORS

    def add(self, found: FoundError) -> None:
        """Add a validation error to the result."""
        if not self.is_full:
            self.errors.setdefault(found.key, found)

    def merge(self, other: Result) -> None:
        """Add all errors and matches of another result."""
        for found in other.errors.values():
            self.add(found)
        self.matches += other.matches

    def field_errors(self, path: str) -> list[FieldError]:
        """Return the errors as causes; the value is at `path`."""
        return [found.cause(_place(path, found.at)) for found in self.errors.values()]


def _place(path: str, at: str | None) -> str:
    below = (at or "").removeprefix(".")
    if path and below:
        return Path(path).child(below)
    return path or below or NOWHERE


def wrong_type(path: str, types: str, found: str) -> FoundError:
    """Return the error about a value of a wrong type, or for a string that does not match its format."""
    words = f"{path} in body must be of type {types}: {quote(found)}"
    return FoundError(words, path, lambda at: FieldError("FieldValueTypeInvalid", str(at), _invalid(found, words)))


def _invalid(value: Any, words: str) -> str:
    return invalid("", value, words).body


def faulty(path: str, words: str, value: Any) -> FoundError:
    """Return the error for a value that violates a rule."""
    if type(value) is float:
        body = f"Invalid value: {write_float(value)}: {words}"
        return FoundError(words, path, lambda at: FieldError("FieldValueInvalid", str(at), body))
    return FoundError(words, path, lambda at: invalid(at, shown_value(value), words))


def placeless(words: str) -> FoundError:
    """Return an error without a path."""
    return FoundError(words, None, lambda at: invalid(at, "", words))


def missing(path: str) -> FoundError:
    """Return the error for a missing required field."""
    return FoundError(f"{path} in body is required", path, required)


def not_listed(path: str, value: Any, supported: str) -> FoundError:
    """Return the error for a value that is not in an enumeration; `supported` lists the values of the enumeration."""
    return FoundError((path, supported), path, lambda at: unsupported(at, shown_value(value), supported))


def over_long(path: str, limit: int) -> FoundError:
    """Return the error for a string with too many characters."""
    words = f"{path} in body should be at most {limit} chars long"
    return FoundError(words, path, lambda at: too_long(at, limit))


def over_many(path: str, what: str, count: int, limit: int) -> FoundError:
    """Return the error for a list with too many items, or an object with too many properties."""
    words = f"{path} in body should have at most {limit} {what}"
    return FoundError(words, path, lambda at: too_many(at, count, limit))
