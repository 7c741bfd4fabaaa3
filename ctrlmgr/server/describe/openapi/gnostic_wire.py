"""Creates encoders of gnostic's messages from tables that map keys of a JSON object to fields of protobuf.

Guarantees:
- a JSON key without a field raises KeyError, so that no key is lost silently;
- unknown keys that begin with `x-` are vendor extensions, which gnostic writes as YAML (here as JSON, which is valid
  YAML);
- scalars that are zero, false or empty are omitted, as in proto3.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from ctrlmgr.schema.protobuf.wire import write_fixed64, write_number, write_part

Encode: TypeAlias = Callable[[Any], bytes]
"""A function that returns the encoded content of a value, or a whole field with its tag."""


def message(fields: Mapping[str, Encode], extensions: int) -> Encode:
    """Return an encoder that encodes a JSON object as one message of `OpenAPIv2.proto`.

    `fields` maps each JSON key to the encoder of its value; `extensions` is the number of the field `vendor_extension`.
    The encoder raises KeyError for a JSON key without a field.
    """

    def field(key: str, value: Any) -> bytes:
        if key.startswith("x-") and key not in fields:
            return write_part(extensions, named(key, yaml(value)))
        return fields[key](value)

    return lambda value: b"".join(field(key, each) for key, each in value.items())


def named(key: str, content: bytes) -> bytes:
    """Return the content of a `Named…` message, which is a key and its value.

    Gnostic encodes each entry of a map in this form.
    """
    return write_part(1, key.encode()) + write_part(2, content)


def string(number: int) -> Encode:
    """Return an encoder of a string."""
    return lambda value: write_part(number, value.encode()) if value else b""


def flag(number: int) -> Encode:
    """Return an encoder of a bool."""
    return lambda value: write_number(number, 1) if value else b""


def integer(number: int) -> Encode:
    """Return an encoder of an int64."""
    return lambda value: write_number(number, int(value) & 0xFFFF_FFFF_FFFF_FFFF) if value else b""


def double(number: int) -> Encode:
    """Return an encoder of a double."""
    return lambda value: write_fixed64(number, struct.pack("<d", value)) if value else b""


def yaml(value: Any) -> bytes:
    """Return the content of an `Any` message, which is the value as YAML."""
    return write_part(2, msgspec.json.encode(value) + b"\n")


def one(number: int, content: Encode) -> Encode:
    """Return an encoder of a message."""
    return lambda value: write_part(number, content(value))


def each(number: int, content: Encode) -> Encode:
    """Return an encoder of a repeated message."""
    return lambda values: b"".join(write_part(number, content(value)) for value in values)


def texts(number: int) -> Encode:
    """Return an encoder of repeated strings."""
    return each(number, str.encode)


def text_or_texts(number: int) -> Encode:
    """Return an encoder of repeated strings that also accepts a single string, as for the keyword `type`."""
    write = texts(number)
    return lambda value: write([value] if isinstance(value, str) else value)


def entries(number: int, content: Encode, extensions: int | None = None) -> Encode:
    """Return an encoder of a map as repeated pairs.

    `extensions` is the number of the field for keys that begin with `x-`.
    """

    def write(values: Mapping[str, Any]) -> bytes:
        return b"".join(entry(key, value) for key, value in values.items())

    def entry(key: str, value: Any) -> bytes:
        if extensions is not None and key.startswith("x-"):
            return write_part(extensions, named(key, yaml(value)))
        return write_part(number, named(key, content(value)))

    return write


def choice(choose: Callable[[Any], int], contents: Sequence[Encode]) -> Encode:
    """Return an encoder of a oneof; `choose` returns the number of the chosen field, from 1."""

    def write(value: Any) -> bytes:
        number = choose(value)
        return write_part(number, contents[number - 1](value))

    return write
