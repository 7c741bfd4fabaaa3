"""Sorts the keys of each `runtime.RawExtension`, as Kubernetes does when an object passes through Go maps.

Go's decoder and encoder keep the bytes of a RawExtension, including the order of its keys. A
strategic merge patch and an apply convert the whole object to maps and back (`DefaultUnstructuredConverter`). This
conversion sorts the keys of every RawExtension, even of a RawExtension that the patch does not contain.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from ctrlmgr.schema.schema import Schema

_RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


def with_sorted_raw_extensions(schema: Schema | None, value: Any) -> Any:
    """Return a value of `schema` with the keys of each RawExtension sorted; other parts are shared with `value`.

    `schema` is None for custom resources, which contain no RawExtension.
    """
    if schema is None or value is None or not _holds_any(schema):
        return value
    if schema.definition == _RAW_EXTENSION:
        return _decode(_encode_sorted(value))
    if schema.items is not None and isinstance(value, list):
        return [with_sorted_raw_extensions(schema.items, each) for each in value]
    if schema.kind == "object" and isinstance(value, dict):
        fields = schema.properties
        return {
            name: with_sorted_raw_extensions(fields[name], each) if name in fields else each
            for name, each in value.items()
        }
    return value


@cache
def _holds_any(schema: Schema) -> bool:
    return _search(schema, frozenset())


def _search(schema: Schema, above: frozenset[str]) -> bool:
    if schema.definition == _RAW_EXTENSION:
        return True
    if schema.definition in above:
        return False
    below = above | {schema.definition} if schema.definition else above
    children = (*schema.properties.values(), *([schema.items] if schema.items else []))
    return any(_search(each, below) for each in children)
