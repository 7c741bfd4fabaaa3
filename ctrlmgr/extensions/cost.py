"""How much longer than usual it takes to validate and default a byte of an object, by its schema.

The engine decides by it from which size on an object is worked on beside the event loop. A small list item is looked
at by the schema of items, by all alternatives of that (`anyOf`), and by its rules; it is given its defaults.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ctrlmgr.extensions.structural import RULES, Raw, junctors, single_items

_PATTERN: Final = 4
_RULE: Final = 32
_SHARE: Final = 4
"""What a plain schema may weigh until validation takes longer than what else is done with an object."""
_BYTES: Final = 16
"""Bytes of a default that weigh as much as one check."""


def relative_cost(raw: Raw) -> int:
    """Return how many times as long as usual a byte takes; 1 for a plain schema. `raw` is the schema of an object."""
    return max(1, _weight(raw, is_repeated=False) // _SHARE)


def _weight(raw: Raw, *, is_repeated: bool) -> int:
    """Return the checks that a value of a schema causes, or the part of it that causes most.

    `is_repeated` says whether there may be many of it: a rule is then evaluated for each.
    """
    own = 1 + _PATTERN * bool(raw.get("pattern"))
    if is_repeated:
        own += _RULE * len(raw.get(RULES) or ())
    own += _of_defaults(raw) if is_repeated else 0
    fields = (raw.get("properties") or {}).values()
    below = max((_weight(each, is_repeated=is_repeated) for each in fields), default=0)
    repeated = (raw.get("additionalProperties"), single_items(raw))
    many = max((_weight(each, is_repeated=True) for each in repeated if isinstance(each, dict)), default=0)
    return max(own, below, many) + sum(_weight(each, is_repeated=is_repeated) for _, each in junctors(raw))


def _of_defaults(raw: Raw) -> int:
    """Return what the defaults of an object's fields weigh, which the smallest object is given."""
    fields = (raw.get("properties") or {}).values()
    return sum(len(msgspec.json.encode(each["default"])) for each in fields if "default" in each) // _BYTES
