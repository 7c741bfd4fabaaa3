"""Summarizes a change of an object in a few words, such as `Ready True→False`, `replicas 3→2` or `+10.0.0.7`.

Guarantees: all functions are pure, and changes of conditions come first. Timestamps and version counters are omitted,
and so are differences for which no short description exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ctrlmgr.inspection.differences import ABSENT, Difference

MOST: Final = 3
"""The maximum number of words for one change."""

_LONGEST: Final = 24
"""The maximum number of characters of a value in a word."""

_CONDITION: Final = re.compile(r"conditions\[type=(?P<type>[\w./-]+)\](?P<status>\.status)?$")
_ITEM: Final = re.compile(r"\[(?:ip|name|key)=(?P<name>[^\]]+)\]$")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT")
_COUNTED: Final = frozenset({"resourceVersion", "generation", "observedGeneration", "uid"})


def summary(found: Iterable[Difference]) -> list[str]:
    """Return at most `MOST` words for the differences, beginning with the most important."""
    phrases = [word for difference in found for word in _words(difference)]
    phrases.sort(key=lambda each: not each[0])
    return list(dict.fromkeys(text for _, text in phrases))[:MOST]


def _words(difference: Difference) -> Iterator[tuple[bool, str]]:
    """Yield the words for a difference, each with a flag that says whether the word is about a condition."""
    path, before, after = difference
    if path.endswith("conditions"):
        yield from ((True, word) for word in _conditions(before, after))
    elif condition := _CONDITION.search(path):
        was, now = (each if condition["status"] else _status(each) for each in (before, after))
        if was != now:
            yield True, f"{condition['type']} {_shown(was)}→{_shown(now)}"
    elif path == "metadata.deletionTimestamp":
        yield False, "deletion requested"
    elif path == "spec.nodeName":
        yield False, f"bound to {_shown(after)}"
    elif item := _ITEM.search(path):
        yield from ((False, f"{sign}{item['name']}") for sign in _came_or_went(before, after))
    elif (name := path.rpartition(".")[2]) not in _COUNTED and "[" not in name and _is_short(before, after):
        yield False, f"{name} {_shown(before)}→{_shown(after)}"


def _conditions(before: Any, after: Any) -> Iterator[str]:
    """Yield the word for the condition Ready, given all conditions before and after."""
    was, now = (
        {each.get("type"): each.get("status", ABSENT) for each in side} if isinstance(side, list) else {}
        for side in (before, after)
    )
    if "Ready" in was or "Ready" in now:
        yield f"Ready {_shown(was.get('Ready', ABSENT))}→{_shown(now.get('Ready', ABSENT))}"


def _status(condition: Any) -> Any:
    return condition.get("status", ABSENT) if isinstance(condition, dict) else ABSENT


def _came_or_went(before: Any, after: Any) -> Iterator[str]:
    if before is ABSENT:
        yield "+"
    elif after is ABSENT:
        yield "−"


def _is_short(*values: Any) -> bool:
    return all(each is ABSENT or isinstance(each, int) or (isinstance(each, str) and _fits(each)) for each in values)


def _fits(text: str) -> bool:
    return len(text) <= _LONGEST and not _TIME.match(text)


def _shown(value: Any) -> str:
    if value is ABSENT:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
