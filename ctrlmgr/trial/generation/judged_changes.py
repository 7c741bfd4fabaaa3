"""Changes of one property of an object, each with the judgement of the API server's validation.

Guarantees: an object is read as the server reads it (pruned and defaulted) and then validated with the schema and all
rules, including the rules that compare with the previous state.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.field import FieldError
from ctrlmgr.extensions.definition import Version
from ctrlmgr.extensions.structural import MISSING
from ctrlmgr.trial.generation.sample_values import candidates, placed
from ctrlmgr.trial.generation.schema_paths import Place, places

Fields = dict[str, Any]
"""A whole object: decoded JSON."""

_QUOTED: Final = re.compile(r'"[^"]*"')
_OF_VALUE: Final = 2
"""The number of parts of an error's body before the explanation: `Invalid value: 0: …`."""
_MOST_ERRORS: Final = 2
"""A refused object with more errors than this number is not nearly valid."""


class Change(NamedTuple):
    """A change of one property."""

    path: str
    before: Fields
    after: Fields
    """The whole object after the change, with defaults if the change is valid."""
    errors: tuple[FieldError, ...]
    """The errors with which the server refuses the change; empty if the server accepts it."""
    has_way_back: bool
    """Whether the server accepts the opposite change, too."""

    @property
    def is_valid(self) -> bool:
        """Return whether the server accepts the change."""
        return not self.errors


def as_stored(version: Version, fields: Mapping[str, Any]) -> Fields:
    """Return a copy of an object as the server stores it: pruned and with defaults."""
    result: Fields = copy.deepcopy(dict(fields))
    version.schema.read(result)
    return result


def errors_of(version: Version, fields: Fields, old: Any = MISSING) -> tuple[FieldError, ...]:
    """Return the errors with which the server refuses an object; `old` is the object before an update."""
    _, error = version.schema.read(fields)
    if error is not None:
        return (error,)
    return tuple(version.validate(fields, old))


def changes(version: Version, before: Fields, random: Random) -> Iterator[Change]:
    """Yield the valid and the nearly valid changes of each property of a valid object, each only once.

    Candidates that change nothing, and candidates with more than a few errors, are left out. Of several candidates for
    a property that are refused for the same reason, only the first is used.
    """
    raw = version.raw_schema or {}
    seen: set[object] = {_written(before)}
    for place in places(raw, before):
        for value in (*candidates(place.raw, random, place.hints), MISSING):
            after = placed(raw, random, before, place.path, value)
            change = _judged(version, place, before, after)
            mark = _mark(change)
            if mark not in seen and len(change.errors) <= _MOST_ERRORS:
                seen.add(mark)
                yield change


def _mark(change: Change) -> object:
    """Return a value that is equal for changes that test the same thing: the object, or the reason of the refusal."""
    if change.is_valid:
        return _written(change.after)
    return change.path, *((each.field, each.reason, _without_value(each.body)) for each in change.errors)


def _without_value(body: str) -> str:
    """Return the body of a field error without the refused value, such as `should be less than or equal to 9`."""
    parts = _QUOTED.sub("", body).split(": ", 2)
    return parts[-1] if len(parts) <= _OF_VALUE else parts[_OF_VALUE]


def _judged(version: Version, place: Place, before: Fields, after: Fields) -> Change:
    sent, stored = after, copy.deepcopy(after)
    errors = errors_of(version, stored, before)
    if errors:
        return Change(str(place), before, sent, errors, True)
    return Change(str(place), before, stored, (), not errors_of(version, copy.deepcopy(before), stored))


def _written(fields: Fields) -> bytes:
    return msgspec.json.encode(fields, order="deterministic")
