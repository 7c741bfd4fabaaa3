"""What validation found: errors as Kubernetes' validator has them, before they become causes.

Guarantees: an error whose words were there already is dropped, as in Kubernetes; `matches` counts what was right,
by which the best of several alternatives is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from ctrlmgr.api.field import FieldError, Path, invalid, required, too_long, too_many, unsupported
from ctrlmgr.extensions.values.go import told
from ctrlmgr.golang.go_numbers import write_float
from ctrlmgr.golang.go_text import quote

MOST_ERRORS = 1000
"""How many errors are told; what has more is no more understandable for it."""

NOWHERE = "<nil>"
"""How Kubernetes writes the path of an error that has none."""


class Found(NamedTuple):
    """An error: what tells it from others, and what makes a cause of it at the place where the value is."""

    key: Hashable
    """Its words, or as much of them as makes them different."""
    at: str | None
    """The path below the value that was validated, "" for itself; None for errors that name no place."""
    cause: Callable[[str], FieldError]


class Result:
    """The errors and the number of matches of one schema and one value."""

    __slots__ = ("errors", "matches")

    def __init__(self) -> None:
        """Begin with nothing."""
        self.errors: dict[Hashable, Found] = {}
        self.matches = 0

    @property
    def is_valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.errors

    @property
    def is_full(self) -> bool:
        """Whether the result holds `MOST_ERRORS` errors; the validator then stops."""
        return len(self.errors) >= MOST_ERRORS

    def add(self, found: Found) -> None:
        """Add an error."""
        if not self.is_full:
            self.errors.setdefault(found.key, found)

    def merge(self, other: Result) -> None:
        """Add all errors and matches of another."""
        for found in other.errors.values():
            self.add(found)
        self.matches += other.matches

    def field_errors(self, path: str) -> list[FieldError]:
        """Return the errors as causes of a value at `path`."""
        return [found.cause(_place(path, found.at)) for found in self.errors.values()]


def _place(path: str, at: str | None) -> str:
    below = (at or "").removeprefix(".")
    if path and below:
        return Path(path).child(below)
    return path or below or NOWHERE


def wrong_type(path: str, types: str, found: str) -> Found:
    """Return the error for a value that is of another type, or a string that is not of its format."""
    words = f"{path} in body must be of type {types}: {quote(found)}"
    return Found(words, path, lambda at: FieldError("FieldValueTypeInvalid", str(at), _invalid(found, words)))


def _invalid(value: Any, words: str) -> str:
    return invalid("", value, words).body


def faulty(path: str, words: str, value: Any) -> Found:
    """Return the error for a value that breaks a rule."""
    if type(value) is float:
        body = f"Invalid value: {write_float(value)}: {words}"
        return Found(words, path, lambda at: FieldError("FieldValueInvalid", str(at), body))
    return Found(words, path, lambda at: invalid(at, told(value), words))


def placeless(words: str) -> Found:
    """Return an error that names no field."""
    return Found(words, None, lambda at: invalid(at, "", words))


def missing(path: str) -> Found:
    """Return the error for a field that must be there."""
    return Found(f"{path} in body is required", path, required)


def not_listed(path: str, value: Any, supported: str) -> Found:
    """Return the error for a value that an enumeration lacks; `supported` says what it has."""
    return Found((path, supported), path, lambda at: unsupported(at, told(value), supported))


def over_long(path: str, limit: int) -> Found:
    """Return the error for a string of too many characters."""
    words = f"{path} in body should be at most {limit} chars long"
    return Found(words, path, lambda at: too_long(at, limit))


def over_many(path: str, what: str, count: int, limit: int) -> Found:
    """Return the error for a list of too many items, or an object of too many properties."""
    words = f"{path} in body should have at most {limit} {what}"
    return Found(words, path, lambda at: too_many(at, count, limit))
