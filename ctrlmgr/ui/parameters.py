"""Parses and validates the query of a request for data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctrlmgr.errors import BadRequest
from ctrlmgr.ui.visibility import Visibility, unbounded

_LONGEST = 1024


class Parameters:
    """The query of a request, and the visibility of its user; absent parameters have defaults."""

    def __init__(self, query: Mapping[str, Sequence[str]], visibility: Visibility | None = None) -> None:
        """Read the first value of each name in `query`; `visibility` None sees everything."""
        self._query = query
        self.visibility = visibility or unbounded()
        """The data that the user may see."""

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; raises `BadRequest` if it is too long, or missing without a default."""
        value = self._query.get(name, [default])[0]
        if value is None:
            raise BadRequest(f"{name} is missing")
        if len(value) > _LONGEST:
            raise BadRequest(f"{name} is longer than {_LONGEST} characters")
        if "\0" in value:
            raise BadRequest(f"{name} has a NUL in it")  # PostgreSQL has no texts with NUL
        return value

    def number(self, name: str, default: int | None = None, *, low: int = 0, high: int = (1 << 63) - 1) -> int:
        """Return an integer from `low` to `high`; raises `BadRequest` for any other value."""
        text = self.text(name, None if default is None else str(default))
        if not (text.isascii() and text.isdecimal()) or not low <= int(text) <= high:
            raise BadRequest(f"{name} is {text!r}; it must be a whole number from {low} to {high}")
        return int(text)

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Return one of `choices`, by default the first; raises `BadRequest` for any other value."""
        text = self.text(name, choices[0])
        if text not in choices:
            raise BadRequest(f"{name} is {text!r}; it must be one of {', '.join(choices)}")
        return text
