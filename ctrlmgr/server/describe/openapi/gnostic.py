"""Encodes an OpenAPI v2 document as gnostic's protobuf: all that older kubectl reads, and what newer ones fall back to.

The messages are those of gnostic's `openapiv2/OpenAPIv2.proto`, as far as documents of ours use them: for each a table
of what may stand in the JSON object and how that is written. A key that no table has is an error, so that nothing
gets lost silently; keys that begin with `x-` are extensions and go out as YAML, of which JSON is a part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from ctrlmgr.schema.protobuf.wire import write_number, write_part

Encode: TypeAlias = Callable[[Any], bytes]
"""Returns the content of a value, or of a whole field with its tag."""


def encode(document: Mapping[str, Any]) -> bytes:
    """Return a document as `openapi.v2.Document`; raises KeyError for a key that is in no table."""
    return _message(_DOCUMENT, 16, document)


def _message(table: Mapping[str, Encode], extensions: int, value: Mapping[str, Any]) -> bytes:
    """Write a message: its fields as the table says, extensions as named values with the number `extensions`."""
    return b"".join(
        write_part(extensions, _named(key, _any(each))) if _is_extension(key, table) else table[key](each)
        for key, each in value.items()
    )


def _is_extension(key: str, table: Mapping[str, Encode]) -> bool:
    return key.startswith("x-") and key not in table


def _named(name: str, content: bytes) -> bytes:
    """Write a key and its value, which is how gnostic writes maps."""
    return write_part(1, name.encode()) + write_part(2, content)


def _text(value: str) -> bytes:
    return value.encode()


def _any(value: Any) -> bytes:
    return write_part(2, msgspec.json.encode(value) + b"\n")


def _one(number: int, content: Encode = _text) -> Encode:
    return lambda value: write_part(number, content(value))


def _each(number: int, content: Encode = _text) -> Encode:
    return lambda values: b"".join(write_part(number, content(value)) for value in values)


def _entries(number: int, content: Encode) -> Encode:
    return lambda values: b"".join(write_part(number, _named(name, content(value))) for name, value in values.items())


def _flag(number: int) -> Encode:
    return lambda value: write_number(number, 1) if value else b""


def _schema(value: Mapping[str, Any]) -> bytes:
    return _message(_SCHEMA, 31, value)


def _types(value: str | Sequence[str]) -> bytes:
    return _each(1)([value] if isinstance(value, str) else value)


_SCHEMA: Mapping[str, Encode] = {
    "$ref": _one(1),
    "format": _one(2),
    "description": _one(4),
    "default": _one(5, _any),
    "uniqueItems": _flag(16),
    "required": _each(19),
    "enum": _each(20, _any),
    "additionalProperties": _one(21, _one(1, _schema)),
    "type": _one(22, _types),
    "items": _one(23, _one(1, _schema)),
    "properties": _one(25, _entries(1, _schema)),
}


def _parameter_item(value: Mapping[str, Any]) -> bytes:
    return write_part(2, _one(1)(value["$ref"])) if "$ref" in value else write_part(1, _parameter(value))


def _parameter(value: Mapping[str, Any]) -> bytes:
    match value["in"]:
        case "body":
            return write_part(1, _message(_BODY_PARAMETER, 6, value))
        case "query":
            return write_part(2, write_part(3, _message(_QUERY_PARAMETER, 23, value)))
        case "path":
            return write_part(2, write_part(4, _message(_PATH_PARAMETER, 22, value)))
    raise KeyError(value["in"])


_BODY_PARAMETER: Mapping[str, Encode] = {
    "description": _one(1),
    "name": _one(2),
    "in": _one(3),
    "required": _flag(4),
    "schema": _one(5, _schema),
}
_PATH_PARAMETER: Mapping[str, Encode] = {
    "required": _flag(1),
    "in": _one(2),
    "description": _one(3),
    "name": _one(4),
    "type": _one(5),
    "format": _one(6),
    "uniqueItems": _flag(19),
}
_QUERY_PARAMETER: Mapping[str, Encode] = {
    "required": _flag(1),
    "in": _one(2),
    "description": _one(3),
    "name": _one(4),
    "type": _one(6),
    "format": _one(7),
    "uniqueItems": _flag(20),
}


def _response(value: Mapping[str, Any]) -> bytes:
    return write_part(1, _message({"description": _one(1), "schema": _one(2, _one(1, _schema))}, 5, value))


def _operation(value: Mapping[str, Any]) -> bytes:
    return _message(_OPERATION, 13, value)


_OPERATION: Mapping[str, Encode] = {
    "tags": _each(1),
    "description": _one(3),
    "operationId": _one(5),
    "produces": _each(6),
    "consumes": _each(7),
    "parameters": _each(8, _parameter_item),
    "responses": _one(9, _entries(1, _response)),
    "schemes": _each(10),
}
_PATH_ITEM: Mapping[str, Encode] = {
    "get": _one(2, _operation),
    "put": _one(3, _operation),
    "post": _one(4, _operation),
    "delete": _one(5, _operation),
    "options": _one(6, _operation),
    "head": _one(7, _operation),
    "patch": _one(8, _operation),
    "parameters": _each(9, _parameter_item),
}


def _path_item(value: Mapping[str, Any]) -> bytes:
    return _message(_PATH_ITEM, 10, value)


def _info(value: Mapping[str, Any]) -> bytes:
    return _message({"title": _one(1), "version": _one(2), "description": _one(3)}, 7, value)


def _api_key(value: Mapping[str, Any]) -> bytes:
    return write_part(2, _message({"type": _one(1), "name": _one(2), "in": _one(3), "description": _one(4)}, 5, value))


_DOCUMENT: Mapping[str, Encode] = {
    "swagger": _one(1),
    "info": _one(2, _info),
    "paths": _one(8, _entries(2, _path_item)),
    "definitions": _one(9, _entries(1, _schema)),
    "parameters": _one(10, _entries(1, _parameter)),
    "security": _each(12, _entries(1, _each(1))),
    "securityDefinitions": _one(13, _entries(1, _api_key)),
}
