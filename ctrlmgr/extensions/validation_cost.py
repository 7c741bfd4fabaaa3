"""Computes the relative cost of validating and defaulting a byte of an object with a given schema.

The engine processes large objects outside the event loop; the minimum size of such an object depends on the relative
cost. The estimate assumes a list of small items. Each item is checked against the schema of items, all alternatives of
the schema (`anyOf`) and its rules, and gets its defaults. If an item is invalid, the error explains why each
alternative failed, and lists the values of an enumeration.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ctrlmgr.extensions.structural import RULES, Raw, junctors, single_items

_PATTERN: Final = 4
_RULE: Final = 32
_SHARE: Final = 4
"""The weight of a schema up to which validation takes less time than the other work for an object."""
_EXPLAINED: Final = 4
"""The cost of explaining why an alternative failed, relative to the cost of checking the alternative."""
_LISTED: Final = 16
"""Listing this number of enumeration values in an error costs as much as one check."""
_BYTES: Final = 16
"""Setting a default of this number of bytes costs as much as one check."""


def relative_cost(raw: Raw) -> int:
    """Return the relative cost of validating and defaulting a byte; it is 1 for a simple schema.

    `raw` is the decoded schema of an object.
    """
    return max(1, _weight(raw, is_repeated=False) // _SHARE)


def _weight(raw: Raw, *, is_repeated: bool) -> int:
    """Return the number of checks of a value against a schema, or against the most expensive part of the schema.

    `is_repeated` says whether an object may contain many values of this schema. The rules are evaluated for each value.
    """
    own = 1 + _PATTERN * bool(raw.get("pattern"))
    if is_repeated:
        own += _RULE * len(raw.get(RULES) or ())
    own += _of_defaults(raw) + len(raw.get("enum") or ()) // _LISTED if is_repeated else 0
    fields = (raw.get("properties") or {}).values()
    below = max((_weight(each, is_repeated=is_repeated) for each in fields), default=0)
    repeated = (raw.get("additionalProperties"), single_items(raw))
    many = max((_weight(each, is_repeated=True) for each in repeated if isinstance(each, dict)), default=0)
    alternatives = sum(_weight(each, is_repeated=is_repeated) for _, each in junctors(raw))
    return max(own, below, many) + alternatives * (_EXPLAINED if is_repeated else 1)


def _of_defaults(raw: Raw) -> int:
    """Return the weight of the defaults of an object's fields, assuming that the object has none of these fields."""
    fields = (raw.get("properties") or {}).values()
    return sum(len(msgspec.json.encode(each["default"])) for each in fields if "default" in each) // _BYTES
