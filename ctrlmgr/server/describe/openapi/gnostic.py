"""Encodes an OpenAPI v2 document as gnostic's protobuf.

kubectl before 1.27 requests gnostic's protobuf; later versions request it only from servers without OpenAPI v3.

The tables contain every field of every message in gnostic's `openapiv2/OpenAPIv2.proto`, because the schema of a custom
kind may use any keyword.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.schema.protobuf.wire import write_number
from ctrlmgr.server.describe.openapi.gnostic_wire import (
    Encode,
    choice,
    double,
    each,
    entries,
    flag,
    integer,
    message,
    one,
    string,
    text_or_texts,
    texts,
    yaml,
)


def encode(document: Mapping[str, Any]) -> bytes:
    """Return a document as `openapi.v2.Document`; raises KeyError for a JSON key without a field in the message."""
    return _DOCUMENT(document)


def _schema(value: Mapping[str, Any]) -> bytes:
    return _SCHEMA(value)


def _additional(value: Mapping[str, Any] | bool) -> bytes:
    """Encode an `AdditionalPropertiesItem`. The item is a oneof, so even the value False must be encoded."""
    return write_number(2, value) if isinstance(value, bool) else one(1, _schema)(value)


_EXTERNAL_DOCS = message({"description": string(1), "url": string(2)}, 3)
_XML = message(
    {"name": string(1), "namespace": string(2), "prefix": string(3), "attribute": flag(4), "wrapped": flag(5)}, 6
)
_SCHEMA = message(
    {
        "$ref": string(1),
        "format": string(2),
        "title": string(3),
        "description": string(4),
        "default": one(5, yaml),
        "multipleOf": double(6),
        "maximum": double(7),
        "exclusiveMaximum": flag(8),
        "minimum": double(9),
        "exclusiveMinimum": flag(10),
        "maxLength": integer(11),
        "minLength": integer(12),
        "pattern": string(13),
        "maxItems": integer(14),
        "minItems": integer(15),
        "uniqueItems": flag(16),
        "maxProperties": integer(17),
        "minProperties": integer(18),
        "required": texts(19),
        "enum": each(20, yaml),
        "additionalProperties": one(21, _additional),
        "type": one(22, text_or_texts(1)),
        "items": one(23, one(1, _schema)),
        "allOf": each(24, _schema),
        "properties": one(25, entries(1, _schema)),
        "discriminator": string(26),
        "readOnly": flag(27),
        "xml": one(28, _XML),
        "externalDocs": one(29, _EXTERNAL_DOCS),
        "example": one(30, yaml),
    },
    31,
)
_FILE_SCHEMA = message(
    {
        "format": string(1),
        "title": string(2),
        "description": string(3),
        "default": one(4, yaml),
        "required": texts(5),
        "type": string(6),
        "readOnly": flag(7),
        "externalDocs": one(8, _EXTERNAL_DOCS),
        "example": one(9, yaml),
    },
    10,
)


def _items(value: Mapping[str, Any]) -> bytes:
    return _ITEMS(value)


def _simple(first: int) -> dict[str, Encode]:
    """Return the fields of a non-object value, which are shared by four messages; `first` is the number of `type`."""
    return {
        "type": string(first),
        "format": string(first + 1),
        "items": one(first + 2, _items),
        "collectionFormat": string(first + 3),
        "default": one(first + 4, yaml),
        "maximum": double(first + 5),
        "exclusiveMaximum": flag(first + 6),
        "minimum": double(first + 7),
        "exclusiveMinimum": flag(first + 8),
        "maxLength": integer(first + 9),
        "minLength": integer(first + 10),
        "pattern": string(first + 11),
        "maxItems": integer(first + 12),
        "minItems": integer(first + 13),
        "uniqueItems": flag(first + 14),
        "enum": each(first + 15, yaml),
        "multipleOf": double(first + 16),
    }


_ITEMS = message(_simple(1), 18)
_HEADER = message({**_simple(1), "description": string(18)}, 19)
_PLACED: Mapping[str, Encode] = {"required": flag(1), "in": string(2), "description": string(3), "name": string(4)}
_PLAIN_PARAMETER = message({**_PLACED, **_simple(5)}, 22)
_OPTIONAL_PARAMETER = message({**_PLACED, "allowEmptyValue": flag(5), **_simple(6)}, 23)
_BODY_PARAMETER = message(
    {"description": string(1), "name": string(2), "in": string(3), "required": flag(4), "schema": one(5, _schema)}, 6
)
_PLACES = ("header", "formData", "query", "path")
_NON_BODY_PARAMETER = choice(
    lambda parameter: _PLACES.index(parameter["in"]) + 1,
    (_PLAIN_PARAMETER, _OPTIONAL_PARAMETER, _OPTIONAL_PARAMETER, _PLAIN_PARAMETER),
)
_PARAMETER = choice(lambda parameter: 1 if parameter["in"] == "body" else 2, (_BODY_PARAMETER, _NON_BODY_PARAMETER))
_REFERENCE = message({"$ref": string(1), "description": string(2)}, 0)


def _which(value: Mapping[str, Any]) -> int:
    return 2 if "$ref" in value else 1


_PARAMETERS_ITEM = choice(_which, (_PARAMETER, _REFERENCE))
_SCHEMA_ITEM = choice(lambda schema: 2 if schema.get("type") == "file" else 1, (_schema, _FILE_SCHEMA))
_RESPONSE = message(
    {
        "description": string(1),
        "schema": one(2, _SCHEMA_ITEM),
        "headers": one(3, entries(1, _HEADER)),
        "examples": one(4, entries(1, yaml)),
    },
    5,
)
_RESPONSE_VALUE = choice(_which, (_RESPONSE, _REFERENCE))


_SECURITY_REQUIREMENT = entries(1, texts(1))
_OPERATION = message(
    {
        "tags": texts(1),
        "summary": string(2),
        "description": string(3),
        "externalDocs": one(4, _EXTERNAL_DOCS),
        "operationId": string(5),
        "produces": texts(6),
        "consumes": texts(7),
        "parameters": each(8, _PARAMETERS_ITEM),
        "responses": one(9, entries(1, _RESPONSE_VALUE, extensions=2)),
        "schemes": texts(10),
        "deprecated": flag(11),
        "security": each(12, _SECURITY_REQUIREMENT),
    },
    13,
)
_PATH_ITEM = message(
    {
        "$ref": string(1),
        "get": one(2, _OPERATION),
        "put": one(3, _OPERATION),
        "post": one(4, _OPERATION),
        "delete": one(5, _OPERATION),
        "options": one(6, _OPERATION),
        "head": one(7, _OPERATION),
        "patch": one(8, _OPERATION),
        "parameters": each(9, _PARAMETERS_ITEM),
    },
    10,
)
_BASIC_SECURITY = message({"type": string(1), "description": string(2)}, 3)
_KEY_SECURITY = message({"type": string(1), "name": string(2), "in": string(3), "description": string(4)}, 5)
_OAUTH2 = {"type": string(1), "flow": string(2), "scopes": one(3, entries(1, str.encode))}
_OAUTH2_BY_FLOW = {
    "implicit": message({**_OAUTH2, "authorizationUrl": string(4), "description": string(5)}, 6),
    "password": message({**_OAUTH2, "tokenUrl": string(4), "description": string(5)}, 6),
    "application": message({**_OAUTH2, "tokenUrl": string(4), "description": string(5)}, 6),
    "accessCode": message(
        {**_OAUTH2, "authorizationUrl": string(4), "tokenUrl": string(5), "description": string(6)}, 7
    ),
}
_SECURITY = {"basic": _BASIC_SECURITY, "apiKey": _KEY_SECURITY, **_OAUTH2_BY_FLOW}
_SECURITY_DEFINITIONS_ITEM = choice(
    lambda security: [*_SECURITY].index(security.get("flow", security["type"])) + 1, [*_SECURITY.values()]
)
_CONTACT = message({"name": string(1), "url": string(2), "email": string(3)}, 4)
_LICENSE = message({"name": string(1), "url": string(2)}, 3)
_INFO = message(
    {
        "title": string(1),
        "version": string(2),
        "description": string(3),
        "termsOfService": string(4),
        "contact": one(5, _CONTACT),
        "license": one(6, _LICENSE),
    },
    7,
)
_TAG = message({"name": string(1), "description": string(2), "externalDocs": one(3, _EXTERNAL_DOCS)}, 4)
_DOCUMENT = message(
    {
        "swagger": string(1),
        "info": one(2, _INFO),
        "host": string(3),
        "basePath": string(4),
        "schemes": texts(5),
        "consumes": texts(6),
        "produces": texts(7),
        "paths": one(8, entries(2, _PATH_ITEM, extensions=1)),
        "definitions": one(9, entries(1, _schema)),
        "parameters": one(10, entries(1, _PARAMETER)),
        "responses": one(11, entries(1, _RESPONSE)),
        "security": each(12, _SECURITY_REQUIREMENT),
        "securityDefinitions": one(13, entries(1, _SECURITY_DEFINITIONS_ITEM)),
        "tags": each(14, _TAG),
        "externalDocs": one(15, _EXTERNAL_DOCS),
    },
    16,
)
