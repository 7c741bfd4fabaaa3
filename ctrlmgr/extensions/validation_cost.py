"""The relative cost of validating and defaulting a byte of an object, by its schema.

From the relative cost, the engine derives the size at which an object is processed outside the event loop. The cost is
estimated for a small list item: it is checked against the schema of items, against all alternatives in it (`anyOf`) and
against its rules, and its defaults are set. If the item is invalid, the error explains each alternative, and lists the
values of an enumeration.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ctrlmgr.extensions.structural import RULES, Raw, junctors, single_items

_PATTERN: Final = 4
_RULE: Final = 32
_SHARE: Final = 4
"""The weight of a schema up to which validation takes less time than the remaining work for an object."""
_EXPLAINED: Final = 4
"""The minimum factor by which explaining an invalid alternative costs more than checking it."""
_LISTED: Final = 16
"""The number of enumeration values in an error that cost as much as one check."""
_BYTES: Final = 16
"""The number of bytes of a default that cost as much as one check."""


def relative_cost(raw: Raw) -> int:
    """Return the relative cost of a byte, which is 1 for a simple schema. `raw` is the schema of an object."""
    return max(1, _weight(raw, is_repeated=False) // _SHARE)


def _weight(raw: Raw, *, is_repeated: bool) -> int:
    """Return the number of checks for a value of a schema, or for its most expensive part.

    `is_repeated` says whether an object may contain many such values, for each of which rules are evaluated.
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
    """Return the weight of the defaults of an object's fields; an empty object gets all of these defaults."""
    fields = (raw.get("properties") or {}).values()
    return sum(len(msgspec.json.encode(each["default"])) for each in fields if "default" in each) // _BYTES
