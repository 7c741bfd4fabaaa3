"""Masks values that differ between equal states: times, uids, revisions, and, if requested, all numbers of the status.

Guarantees: the masks depend only on the values, not on the names of fields, except for metadata that the server sets.
"""

from __future__ import annotations

import re
from typing import Any, Final

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?")
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")
_SERVER_SET: Final = frozenset(("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"))
_REVISIONS: Final = frozenset(("resourceVersion", "observedGeneration"))


def masked(value: Any, *, numbers: bool = False) -> Any:
    """Return a copy of a value with masks; `numbers` masks the numbers in all strings and fields, too."""
    match value:
        case {"metadata": {**metadata}, **rest} if "kind" in rest:
            kept = {name: each for name, each in metadata.items() if name not in _SERVER_SET}
            return {**masked(rest, numbers=numbers), "metadata": masked(kept, numbers=numbers)}
        case dict():
            return {
                name: "<revision>" if name in _REVISIONS else masked(each, numbers=numbers)
                for name, each in value.items()
            }
        case list():
            return [masked(each, numbers=numbers) for each in value]
        case str():
            return _NUMBER.sub("<number>", masked_text(value)) if numbers else masked_text(value)
        case bool() | None:
            return value
        case _:
            return "<number>" if numbers else value


def masked_text(text: str) -> str:
    """Return a text in which each time and each uid is masked."""
    return _UID.sub("<uid>", _TIME.sub("<time>", text))
