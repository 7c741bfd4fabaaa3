"""Parses and validates the query parameters of a request for data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctrlmgr.errors import BadRequest
from ctrlmgr.ui.visibility import Visibility, unbounded

_LONGEST = 1024


class Parameters:
    """The query parameters of a request, and the visibility of the log for its user.

    A parameter that the query does not contain has a default value.
    """

    def __init__(self, query: Mapping[str, Sequence[str]], visibility: Visibility | None = None) -> None:
        """Use the first value of each name in `query`; if `visibility` is None, the user may see everything."""
        self._query = query
        self.visibility = visibility or unbounded()
        """The part of the log that the user may see."""

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string parameter; raises `BadRequest` if it is too long, or if it is missing and has no default."""
        value = self._query.get(name, [default])[0]
        if value is None:
            raise BadRequest(f"{name} is missing")
        if len(value) > _LONGEST:
            raise BadRequest(f"{name} is longer than {_LONGEST} characters")
        if "\0" in value:
            raise BadRequest(f"{name} contains a NUL character")  # PostgreSQL cannot store texts with NUL
        return value

    def number(self, name: str, default: int | None = None, *, low: int = 0, high: int = (1 << 63) - 1) -> int:
        """Return a number parameter from `low` to `high`; raises `BadRequest` for any other value."""
        text = self.text(name, None if default is None else str(default))
        if not (text.isascii() and text.isdecimal()) or not low <= int(text) <= high:
            raise BadRequest(f"{name} is {text!r}; it must be a whole number from {low} to {high}")
        return int(text)

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Return a parameter that is one of `choices`; by default, it is the first choice.

        The method raises `BadRequest` for any other value.
        """
        text = self.text(name, choices[0])
        if text not in choices:
            raise BadRequest(f"{name} is {text!r}; it must be one of {', '.join(choices)}")
        return text
