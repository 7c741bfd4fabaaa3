"""Decodes the OpenAPI v2 document from gnostic's protobuf.

The tables are transcribed from `openapiv2/OpenAPIv2.proto` of google/gnostic, independently of the encoder's tables;
they map a field number to a JSON name and a type, with `*` for repeated fields.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import yaml

MESSAGES: dict[str, dict[int, tuple[str, str]]] = {
    "Document": {
        1: ("swagger", "string"),
        2: ("info", "Info"),
        8: ("paths", "Paths"),
        9: ("definitions", "Definitions"),
        10: ("parameters", "ParameterDefinitions"),
        12: ("security", "*SecurityRequirement"),
        13: ("securityDefinitions", "SecurityDefinitions"),
    },
    "Info": {1: ("title", "string"), 2: ("version", "string")},
    "PathItem": {
        2: ("get", "Operation"),
        3: ("put", "Operation"),
        4: ("post", "Operation"),
        5: ("delete", "Operation"),
        6: ("options", "Operation"),
        7: ("head", "Operation"),
        8: ("patch", "Operation"),
        9: ("parameters", "*ParametersItem"),
    },
    "Operation": {
        1: ("tags", "*string"),
        3: ("description", "string"),
        5: ("operationId", "string"),
        6: ("produces", "*string"),
        7: ("consumes", "*string"),
        8: ("parameters", "*ParametersItem"),
        9: ("responses", "Responses"),
        10: ("schemes", "*string"),
        13: ("x", "*NamedAny"),
    },
    "BodyParameter": {2: ("name", "string"), 3: ("in", "string"), 4: ("required", "bool"), 5: ("schema", "Schema")},
    "QueryParameterSubSchema": {
        1: ("required", "bool"),
        2: ("in", "string"),
        3: ("description", "string"),
        4: ("name", "string"),
        6: ("type", "string"),
        20: ("uniqueItems", "bool"),
    },
    "PathParameterSubSchema": {
        1: ("required", "bool"),
        2: ("in", "string"),
        3: ("description", "string"),
        4: ("name", "string"),
        5: ("type", "string"),
        19: ("uniqueItems", "bool"),
    },
    "JsonReference": {1: ("$ref", "string")},
    "Response": {1: ("description", "string"), 2: ("schema", "SchemaItem")},
    "Schema": {
        1: ("$ref", "string"),
        2: ("format", "string"),
        3: ("title", "string"),
        4: ("description", "string"),
        5: ("default", "Any"),
        6: ("multipleOf", "double"),
        7: ("maximum", "double"),
        8: ("exclusiveMaximum", "bool"),
        9: ("minimum", "double"),
        10: ("exclusiveMinimum", "bool"),
        11: ("maxLength", "int64"),
        12: ("minLength", "int64"),
        13: ("pattern", "string"),
        14: ("maxItems", "int64"),
        15: ("minItems", "int64"),
        16: ("uniqueItems", "bool"),
        17: ("maxProperties", "int64"),
        18: ("minProperties", "int64"),
        19: ("required", "*string"),
        20: ("enum", "*Any"),
        21: ("additionalProperties", "AdditionalPropertiesItem"),
        22: ("type", "TypeItem"),
        23: ("items", "ItemsItem"),
        24: ("allOf", "*Schema"),
        25: ("properties", "Properties"),
        26: ("discriminator", "string"),
        27: ("readOnly", "bool"),
        28: ("xml", "Xml"),
        29: ("externalDocs", "ExternalDocs"),
        30: ("example", "Any"),
        31: ("x", "*NamedAny"),
    },
    "ExternalDocs": {1: ("description", "string"), 2: ("url", "string")},
    "Xml": {1: ("name", "string"), 4: ("attribute", "bool")},
    "ApiKeySecurity": {1: ("type", "string"), 2: ("name", "string"), 3: ("in", "string")},
}
MAPS = {
    "Paths": (2, "PathItem"),
    "Definitions": (1, "Schema"),
    "Properties": (1, "Schema"),
    "ParameterDefinitions": (1, "Parameter"),
    "Responses": (1, "ResponseValue"),
    "SecurityDefinitions": (1, "SecurityDefinitionsItem"),
    "SecurityRequirement": (1, "StringArray"),
}
CHOICES = {
    "ParametersItem": {1: "Parameter", 2: "JsonReference"},
    "Parameter": {1: "BodyParameter", 2: "NonBodyParameter"},
    "NonBodyParameter": {3: "QueryParameterSubSchema", 4: "PathParameterSubSchema"},
    "ResponseValue": {1: "Response"},
    "SchemaItem": {1: "Schema"},
    "ItemsItem": {1: "Schema"},
    "AdditionalPropertiesItem": {1: "Schema", 2: "bool"},
    "TypeItem": {1: "string"},
    "SecurityDefinitionsItem": {2: "ApiKeySecurity"},
    "Any": {2: "yaml"},
}
"""Messages with exactly one field, which are decoded as the value of this field."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value: Any
        if tag & 7 == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        else:
            value, at = varint(data, at)
        if tag & 7 == 2:
            assert at + value <= len(data)
            value, at = data[at : at + value], at + value
        yield tag >> 3, value


def read(type: str, data: Any) -> Any:
    match type:
        case "string":
            return data.decode()
        case "bool":
            return data == 1
        case "double":
            return data
        case "int64":
            return data - (1 << 64) if data >> 63 else data
        case "yaml":
            return yaml.safe_load(data)
        case "StringArray":
            return [value.decode() for _, value in fields(data)]
    if type in MAPS:
        number, values = MAPS[type]
        assert {each for each, _ in fields(data)} == {number}
        return dict(named(values, entry) for _, entry in fields(data))
    if type in CHOICES:
        [(number, value)] = fields(data)
        return read(CHOICES[type][number], value)
    return message(MESSAGES[type], data)


def named(type: str, data: bytes) -> tuple[str, Any]:
    entry = dict(fields(data))
    return entry[1].decode(), read(type, entry[2])


def message(table: dict[int, tuple[str, str]], data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, value in fields(data):
        name, kind = table[number]
        if kind == "*NamedAny":
            extension, content = named("Any", value)
            found[extension] = content
        elif kind.startswith("*"):
            found.setdefault(name, []).append(read(kind[1:], value))
        else:
            found[name] = read(kind, value)
    return found
