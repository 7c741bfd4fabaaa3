"""Encodes messages in protobuf for tests of `ctrlmgr.schema.protobuf.protobuf_decoding`; encoder and decoder use the
same tables.

`body` encodes a request body from an object in its JSON form; the other functions encode parts of messages.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

META = "k8s.io.apimachinery.pkg.apis.meta.v1."
QUANTITY = "k8s.io.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "k8s.io.apimachinery.pkg.util.intstr.IntOrString"
TIMES = (f"{META}Time", f"{META}MicroTime")
SCALARS = ("int32", "int64", "bool")


@cache
def table() -> dict[str, Any]:
    packed = files("ctrlmgr.schema").joinpath("data/protobuf.json.gz").read_bytes()
    loaded: dict[str, Any] = json.loads(gzip.decompress(packed))
    return loaded


def varint(value: int) -> bytes:
    value %= 1 << 64
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F)
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def number(field: int, value: int) -> bytes:
    return varint(field * 8) + varint(value)


def delimited(field: int, content: bytes) -> bytes:
    return varint(field * 8 + 2) + varint(len(content)) + content


def unknown(api_version: str, kind: str, raw: bytes) -> bytes:
    """Wrap an encoded message as a request body."""
    type_meta = delimited(1, api_version.encode()) + delimited(2, kind.encode())
    return b"k8s\0" + delimited(1, type_meta) + delimited(2, raw) + delimited(3, b"") + delimited(4, b"")


def body(obj: Mapping[str, Any], *, packed: bool = False) -> bytes:
    """Encode an object; if `packed` is set, lists of numbers are packed."""
    name = table()["kinds"][f"{obj['apiVersion']}/{obj['kind']}"]
    rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
    return unknown(obj["apiVersion"], obj["kind"], message(name, rest, packed))


def message(name: str, value: Any, packed: bool) -> bytes:
    if name in TIMES:
        return time(value)
    if name == QUANTITY:
        return delimited(1, value.encode())
    if name == INT_OR_STRING:
        return (
            number(1, 0) + number(2, value) if isinstance(value, int) else number(1, 1) + delimited(3, value.encode())
        )
    rows = table()["messages"][name]
    if [row[2] for row in rows] == ["json"]:
        return delimited(1, json.dumps(value).encode())
    if isinstance(value, list):
        return b"".join(delimited(1, each.encode()) for each in value)
    written = b""
    for field, key, kind in rows:
        if not key:
            written += delimited(field, message(kind, value, packed))
        elif key in value:
            written += fields(field, kind, value[key], packed)
    return written


def time(value: str | None) -> bytes:
    if value is None:
        return b""
    moment = datetime.fromisoformat(value)
    seconds = (moment.replace(microsecond=0) - datetime.fromisoformat("1970-01-01T00:00:00Z")).total_seconds()
    return number(1, round(seconds)) + number(2, moment.microsecond * 1000)


def fields(field: int, type: str, value: Any, packed: bool) -> bytes:
    if type.startswith("map<string,"):
        values = type.removeprefix("map<string,").removesuffix(">")
        entries = (delimited(1, key.encode()) + fields(2, values, each, packed) for key, each in value.items())
        return b"".join(delimited(field, entry) for entry in entries)
    if type.startswith("repeated "):
        element = type.removeprefix("repeated ")
        if packed and element in SCALARS:
            return delimited(field, b"".join(varint(each) for each in value))
        return b"".join(fields(field, element, each, packed) for each in value)
    if type in SCALARS:
        return number(field, value)
    if type == "string":
        return delimited(field, value.encode())
    if type == "bytes":
        return delimited(field, base64.b64decode(value))
    return delimited(field, message(type, value, packed))
