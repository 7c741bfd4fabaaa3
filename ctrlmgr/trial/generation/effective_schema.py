"""Merges the alternatives of a schema node (`allOf`, `anyOf`, `oneOf`) into the node, so that values can be generated.

Guarantees: the merged schema only guides the generation. It may allow values that the original schema refuses, for
example if two patterns were merged; therefore each generated value is validated against the original schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from ctrlmgr.extensions.structural import INT_OR_STRING, Raw

_LOWEST: Final = frozenset(("maximum", "maxLength", "maxItems", "maxProperties"))
_HIGHEST: Final = frozenset(("minimum", "minLength", "minItems", "minProperties"))


def effective(raw: Raw, random: Random) -> Raw:
    """Return a schema node with its `allOf` and one alternative each of `anyOf` and `oneOf` merged into it."""
    if raw.get(INT_OR_STRING):
        raw = {"type": random.choice(("integer", "string")), **{k: v for k, v in raw.items() if k != "anyOf"}}
    for part in raw.get("allOf") or ():
        raw = merged(raw, effective(part, random))
    for choices in (raw.get("anyOf"), raw.get("oneOf")):
        if choices:
            raw = merged(raw, effective(random.choice(choices), random))
    return raw


def merged(raw: Raw, more: Raw) -> Raw:
    """Return a schema node with the constraints of two nodes."""
    result: dict[str, Any] = dict(raw)
    for keyword, value in more.items():
        result[keyword] = _both(keyword, result[keyword], value) if result.get(keyword) is not None else value
    return result


def _both(keyword: str, first: Any, second: Any) -> Any:
    if keyword in _LOWEST:
        return min(first, second)
    if keyword in _HIGHEST:
        return max(first, second)
    if keyword == "required":
        return [*dict.fromkeys([*first, *second])]
    if keyword == "enum":
        return [each for each in first if each in second]
    if keyword == "properties":
        names = {**first, **second}
        return {name: merged(first.get(name) or {}, second.get(name) or {}) for name in names}
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return merged(first, second)
    return second
