"""The maximum sizes of a schema's values, from which the cost of rules is estimated.

Guarantees: if the schema sets no limit for a value, the maximum is the largest number of parts that fits into a
request, given the minimum size of a part. If expressions cannot access the values of a schema, the schema has no size.

Source: apiserver `pkg/cel/common/schemas.go` (`SchemaDeclType`), `pkg/cel/limits.go`; apiextensions-apiserver
`pkg/apiserver/schema/cel/compilation.go` (`sizeEstimator`, `maxCardinality`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ctrlmgr.expressions.cost_estimation.cost_ranges import Range
from ctrlmgr.expressions.cost_estimation.operands import Place
from ctrlmgr.expressions.escapes import escaped
from ctrlmgr.extensions.rules.schema_types import fields_of, is_embedded
from ctrlmgr.extensions.structural import INT_OR_STRING, Raw, single_items

_LARGEST_REQUEST: Final = 3 * 1024 * 1024
_LONGEST_TEXT: Final = _LARGEST_REQUEST - 2
_EMPTY: Final = 2
"""The length in bytes of `""`, `[]` and `{}`."""
_OF_FORMAT: Final = {"duration": (32, 3), "date": (12, 12), "date-time": (32, 21)}
"""The maximum and the minimum length of a string of each format, including quotation marks."""
_SCALARS: Final = {"boolean": 4, "number": 1, "integer": 1}


@dataclass(slots=True)
class Sizes:
    """The maximum sizes of the values of one schema, and the sizes of their parts."""

    most: int = 0
    """The maximum number of characters, items or entries in the value."""
    shortest: int = _EMPTY
    """The minimum length of the value, in bytes of JSON."""
    fields: Mapping[str, Sizes] = field(default_factory=dict)
    keys: Sizes | None = None
    values: Sizes | None = None

    def at(self, place: Place) -> Range | None:
        """Return the size range of the value at a path; the first part of the path is the name of the variable."""
        found: Sizes | None = self
        for name in place[1:]:
            if found is None:
                return None
            if name in ("@items", "@values"):
                found = found.values
            else:
                found = found.keys if name == "@keys" else found.fields.get(name)
        return Range(0, found.most) if found is not None else None

    @property
    def cardinality(self) -> int:
        """The maximum number of values of this schema that fit into a request, if commas separate them."""
        return _LARGEST_REQUEST // (self.shortest + 1)


def sizes_of(raw: Raw, *, is_resource: bool) -> Sizes | None:
    """Return the maximum sizes of a schema's values; None if expressions cannot access the values."""
    if raw.get(INT_OR_STRING):
        return Sizes(_longest(raw, _LONGEST_TEXT), 1)
    kind = raw.get("type") or ""
    if kind == "array":
        return _list(raw)
    if kind == "object":
        return _object(raw, is_resource=is_resource)
    if kind == "string":
        return _text(raw)
    return Sizes(0, _SCALARS[kind]) if kind in _SCALARS else None


def _below(raw: Raw) -> Sizes | None:
    return sizes_of(raw, is_resource=is_embedded(raw))


def _limit(raw: Raw, keyword: str) -> int | None:
    limit = raw.get(keyword)
    return max(int(limit), 0) if limit is not None else None


def _longest(raw: Raw, otherwise: int) -> int:
    """Return the maximum number of bytes of a string with at most the given number of characters."""
    limit = _limit(raw, "maxLength")
    return otherwise if limit is None else 4 * limit


def _text(raw: Raw) -> Sizes:
    form = raw.get("format") or ""
    if form == "byte":
        limit = _limit(raw, "maxLength")
        return Sizes(_LONGEST_TEXT if limit is None else limit)
    if form in _OF_FORMAT:
        return Sizes(*_OF_FORMAT[form])
    chosen = [len(each.encode("utf-8", "surrogatepass")) for each in raw.get("enum") or () if isinstance(each, str)]
    return Sizes(_longest(raw, max(chosen, default=0) if raw.get("enum") else _LONGEST_TEXT))


def _list(raw: Raw) -> Sizes | None:
    items = single_items(raw)
    inner = _below(items) if items is not None else None
    if inner is None:
        return None
    limit = _limit(raw, "maxItems")
    return Sizes((_LARGEST_REQUEST - 2) // (inner.shortest + 1) if limit is None else limit, values=inner)


def _object(raw: Raw, *, is_resource: bool) -> Sizes | None:
    additional = raw.get("additionalProperties")
    if isinstance(additional, Mapping):
        inner = _below(additional)
        return _map(raw, inner) if inner is not None else None
    required, shortest = raw.get("required") or (), _EMPTY
    fields: dict[str, Sizes] = {}
    for name, each in fields_of(raw, is_resource=is_resource).items():
        size = _below(each)
        if size is None:
            continue
        if own := escaped(name):
            fields[own] = size
        if name in required and each.get("default") is None:
            shortest += len(name.encode("utf-8", "surrogatepass")) + size.shortest + 4
    return Sizes(0, shortest, fields)


def _map(raw: Raw, inner: Sizes) -> Sizes:
    limit = _limit(raw, "maxProperties")
    most = (_LARGEST_REQUEST - 2) // (inner.shortest + 6) if limit is None else limit
    return Sizes(most, keys=Sizes(), values=inner)
