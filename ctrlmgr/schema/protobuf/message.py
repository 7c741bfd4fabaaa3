"""Decodes the messages of Kubernetes' protobuf format.

When a message type is used for the first time, this module creates one decoding function for each field of the message
type.

`published_schema.messages` contains the fields of every message as (number, JSON name, type). The JSON name of an
embedded struct is empty, because the fields of an embedded struct are inline in JSON. The type of a field is a scalar,
a message, `json` (bytes that contain JSON), `repeated T` or `map<string,T>`. A test verifies that the JSON names are
those in the published OpenAPI definitions.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from math import isfinite
from struct import unpack_from
from typing import Any, TypeAlias

import msgspec

from ctrlmgr.errors import BadRequest
from ctrlmgr.schema.protobuf.protobuf_values import VALUES
from ctrlmgr.schema.protobuf.wire import (
    DEEPEST,
    FIXED64,
    LENGTH,
    VARINT,
    extent,
    signed32,
    signed64,
    skip,
    truncated,
    varint,
)
from ctrlmgr.schema.published_schema import messages

Store: TypeAlias = Callable[[dict[str, Any], bytes, int, int, int], int]
"""A function that reads one field into a dict: (into, data, at, end, depth) → the position after the field."""
Read: TypeAlias = Callable[[bytes, int, int, int], Any]
"""A function that reads a value with a length prefix: (data, start, stop, depth) → the value."""


class Message:
    """A message type; its decoding functions are created later, because a message may contain itself."""

    def __init__(self, name: str, rows: Sequence[tuple[int, str, str | Message]]) -> None:
        """Create a message type from its rows of (number, JSON name, type)."""
        self.name = name
        self.rows = rows
        self._finish = VALUES.get(name) or (_items if _is_list(rows) else None)

    @property
    def merges(self) -> bool:
        """Return whether the message is an object in JSON.

        If a field of this message type occurs twice in a body, protobuf merges both occurrences; for other types, the
        later occurrence replaces the earlier one.
        """
        return self._finish is None

    def read(self, data: bytes, at: int, end: int, depth: int, into: dict[str, Any] | None = None) -> dict[str, Any]:
        """Read the message in `data[at:end]` into the object `into`, or into a new object.

        Raises `BadRequest` if the message is malformed.
        """
        if depth > DEEPEST:
            raise BadRequest("exceeded max depth")
        fields = {} if into is None else into
        stores = self._stores
        while at < end:
            tag = data[at]
            at += 1
            if tag > 0x7F:
                tag, at = varint(data, at - 1, end)
            store = stores.get(tag)
            at = store(fields, data, at, end, depth) if store else self._step_over(tag, data, at, end)
        return fields

    def value(self, data: bytes, start: int, stop: int, depth: int) -> Any:
        """Read the message, and return its JSON value."""
        return self.finished(self.read(data, start, stop, depth + 1))

    def finished(self, fields: dict[str, Any]) -> Any:
        """Return the JSON value of a message that has these fields."""
        return fields if self._finish is None else self._finish(fields)

    @cached_property
    def _stores(self) -> dict[int, Store]:
        return {tag: store for row in self.rows for tag, store in _compile(*row)}

    @cached_property
    def _names(self) -> dict[int, str]:
        return {number: name or "embedded" for number, name, _ in self.rows}

    def _step_over(self, tag: int, data: bytes, at: int, end: int) -> int:
        number, wire = tag >> 3, tag & 7
        if number in self._names and wire != 4:
            raise BadRequest(f"proto: wrong wireType = {wire} for field {self._names[number]}")
        return skip(tag, data, at, end, self.name.rpartition(".")[2])


def message_of(api_version: str, kind: str) -> str | None:
    """Return the name of the message for a kind (such as `apps/v1`, `Deployment`); None if the kind has no message."""
    return messages().kinds.get(f"{api_version}/{kind}")


@cache
def message(name: str) -> Message:
    """Return a message by its full name; raises `KeyError` if there is no such message."""
    return Message(name, messages().messages[name])


def _is_list(rows: Sequence[tuple[int, str, str | Message]]) -> bool:
    """Return whether a message is a named list in Go (`type ExtraValue []string`), but a message in protobuf."""
    return [row[1:] for row in rows] == [("items", "repeated string")]


def _items(fields: Mapping[str, Any]) -> Any:
    return fields.get("items", [])


def _compile(number: int, name: str, type: str | Message) -> list[tuple[int, Store]]:
    """Return the functions that read a field, by the tags (number and wire type) that can precede the field."""
    plain, varied, fixed = (number << 3 | wire for wire in (LENGTH, VARINT, FIXED64))
    if isinstance(type, Message):
        return [(plain, _object(name, type))]
    element = type.removeprefix("repeated ")
    repeated = element != type
    if element in _NUMBERS:
        convert = _NUMBERS[element]
        if repeated:
            return [(varied, _number_added(name, convert)), (plain, _packed_numbers(name, convert))]
        return [(varied, _number(name, convert))]
    if element == "double":
        return [(fixed, _double(name))]
    if element.startswith("map<"):
        return [(plain, _entry(name, element.removeprefix("map<string,").removesuffix(">")))]
    if repeated:
        return [(plain, _added(name, _reader(element)))]
    if element not in _LEAVES and message(element).merges:
        return [(plain, _object(name, message(element)) if name else _inlined(message(element)))]
    return [(plain, _single(name, _reader(element)))]


def _reader(type: str) -> Read:
    return _LEAVES.get(type) or message(type).value


def _string(data: bytes, start: int, stop: int, depth: int) -> str:
    text = data[start:stop]
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("utf-8", "replace")  # as Go does when it encodes a value to JSON


def _bytes(data: bytes, start: int, stop: int, depth: int) -> str:
    return b64encode(data[start:stop]).decode("ascii")


def _extent(data: bytes, start: int, stop: int, depth: int) -> tuple[int, int]:
    return start, stop


def _json(data: bytes, start: int, stop: int, depth: int) -> Any:
    if start == stop:
        return None
    try:
        return msgspec.json.decode(data[start:stop])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:  # invalid UTF-8 raises ValueError
        raise BadRequest(f"error decoding from json: {error}") from error


_LEAVES: dict[str, Read] = {"string": _string, "bytes": _bytes, "json": _json, "extent": _extent}
_NUMBERS: dict[str, Callable[[int], Any]] = {"int32": signed32, "int64": signed64, "bool": bool}


def _single(name: str, read: Read) -> Store:
    def store(into: dict[str, Any], data: bytes, at: int, end: int, depth: int) -> int:
        start, stop = extent(data, at, end)
        into[name] = read(data, start, stop, depth)
        return stop

    return store


def _object(name: str, nested: Message) -> Store:
    def store(into: dict[str, Any], data: bytes, at: int, end: int, depth: int) -> int:
        start, stop = extent(data, at, end)
        into[name] = nested.read(data, start, stop, depth + 1, into.get(name))
        return stop

    return store


def _inlined(nested: Message) -> Store:
    def store(into: dict[str, Any], data: bytes, at: int, end: int, depth: int) -> int:
        start, stop = extent(data, at, end)
        nested.read(data, start, stop, depth + 1, into)
        return stop

    return store


def _added(name: str, read: Read) -> Store:
    def store(into: dict[str, Any], data: bytes, at: int, end: int, depth: int) -> int:
        start, stop = extent(data, at, end)
        into.setdefault(name, []).append(read(data, start, stop, depth))
        return stop

    return store


def _entry(name: str, type: str) -> Store:
    """Return the function that reads one entry of a map; an entry is a message that consists of a key and a value.

    If the key or the value is missing in an entry, its zero value is used.
    """
    entry = Message("entry", [(1, "key", "string"), (2, "value", type)])

    def store(into: dict[str, Any], data: bytes, at: int, end: int, depth: int) -> int:
        start, stop = extent(data, at, end)
        pair = entry.read(data, start, stop, depth)
        if "value" not in pair:
            pair["value"] = "" if type in _LEAVES else message(type).finished({})
        into.setdefault(name, {})[pair.get("key", "")] = pair["value"]
        return stop

    return store


def _number(name: str, convert: Callable[[int], Any]) -> Store:
    def store(into: dict[str, Any], data: bytes, at: int, end: int, depth: int) -> int:
        value, at = varint(data, at, end)
        into[name] = convert(value)
        return at

    return store


def _number_added(name: str, convert: Callable[[int], Any]) -> Store:
    def store(into: dict[str, Any], data: bytes, at: int, end: int, depth: int) -> int:
        value, at = varint(data, at, end)
        into.setdefault(name, []).append(convert(value))
        return at

    return store


def _packed_numbers(name: str, convert: Callable[[int], Any]) -> Store:
    def store(into: dict[str, Any], data: bytes, at: int, end: int, depth: int) -> int:
        at, stop = extent(data, at, end)
        numbers = into.setdefault(name, [])
        while at < stop:
            value, at = varint(data, at, stop)
            numbers.append(convert(value))
        return stop

    return store


def _double(name: str) -> Store:
    def store(into: dict[str, Any], data: bytes, at: int, end: int, depth: int) -> int:
        if end - at < 8:
            raise truncated()
        into[name] = unpack_from("<d", data, at)[0]
        if not isfinite(into[name]):
            raise BadRequest(f"json: unsupported value: {into[name]}")
        return at + 8

    return store
