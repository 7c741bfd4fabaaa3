"""Prunes a decoded object to its schema, and reports the object's problems with Kubernetes' messages.

This module is the slow path for documents that `schema.structs` refuses. `prune` drops unknown and duplicate fields,
and lists these fields as problems. As in Go, a null counts as an absent value. A value of a wrong type raises an error.

Source of the rules and the messages: `sigs.k8s.io/json`, Kubernetes' variant of Go's encoding/json.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.golang.go_text import quote
from ctrlmgr.schema.embedded_structs import embedding
from ctrlmgr.schema.schema import Schema
from ctrlmgr.schema.strict_json import NumberText, Repeated, refuse_free_form_depth, unwritten
from ctrlmgr.schema.structs import TEXTS, canonical_text

MOST_PROBLEMS = 100
"""The maximum number of problems that the server reports for one body, as in Kubernetes."""

_NULL = object()
"""The result for a value that counts as absent in Go."""
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_GO_KINDS = {"string": "string", "boolean": "bool", "integer": "int64", "number": "float64"}
_JSON_KINDS = {"string": "string", "boolean": "bool", "number": "number"}


class _Place(NamedTuple):
    """The current position in a document; messages name the position.

    Problems show the path (`spec.ports[0].name`); errors show the struct and the fields (`ServicePort`,
    `spec.ports.name`).
    """

    path: str = ""
    struct: str = ""
    fields: str = ""

    def field(self, struct: str, name: str) -> _Place:
        within = "".join(f"{each}." for each in embedding(struct, name))
        return _Place(_join(self.path, name), struct, _join(self.fields, f"{within}{name}"))

    def key(self, name: str) -> _Place:
        return _Place(_join(self.path, name), self.struct, self.fields)

    def item(self, index: int) -> _Place:
        return _Place(f"{self.path}[{index}]", self.struct, self.fields)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def prune(schema: Schema, fields: Unstructured) -> tuple[Unstructured, tuple[str, ...]]:
    """Return those parts of `fields` that `schema` declares, and the problems in their order.

    The result may share unchanged parts with `fields`. Raises ValueError with Go's message if a value has a wrong type.
    """
    walk = _Walk()
    pruned = walk.struct(schema, fields, _Place())
    if walk.error is not None:
        raise walk.error
    return pruned, tuple(walk.problems)[:MOST_PROBLEMS]


class _Walk:
    """Prunes one document.

    As in Go, the first value of a wrong type determines the error, and reading continues after this value. Types with
    their own decoder (quantities, times, int-or-string) stop reading at an error. An error of these types therefore
    takes precedence over an earlier error.
    """

    def __init__(self) -> None:
        self.problems: dict[str, None] = {}
        self.error: ValueError | None = None

    def struct(self, schema: Schema, value: dict[str, Any], place: _Place) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        if not value:
            return kept
        properties = schema.properties
        name = schema.definition.rpartition(".")[2]
        seen: set[str] = set()
        for key, each in _pairs(value):
            known = properties.get(key)
            if known is None:
                self._problem("unknown", _join(place.path, key))
                continue
            if key in seen:
                self._problem("duplicate", _join(place.path, key))
            seen.add(key)
            below = self.value(known, each, place.field(name, key))
            if below is not _NULL:
                kept[key] = below
        return kept

    def value(self, schema: Schema, value: Any, place: _Place, go_type: str = "") -> Any:
        """Return the value pruned to its schema.

        `go_type` is the Go type of a list item or a map value, because the schema of an item does not contain the Go
        type.
        """
        go_type = schema.go_type.lstrip("*") or go_type or _go_type(schema)
        if schema.kind == "any":
            value = unwritten(value)
            refuse_free_form_depth(value)
            return value
        if value is None:
            return _NULL
        if schema.is_struct:
            return self.struct(schema, value, place) if self._is(dict, go_type, value, place) else _NULL
        if schema.items:
            is_list = self._is(list, go_type, value, place)
            return (is_list and self._list(schema.items, value, place, _element(go_type))) or _NULL
        if schema.values:
            is_map = self._is(dict, go_type, value, place)
            return (is_map and self._map(schema.values, value, place, _element(go_type))) or _NULL
        return self._scalar(schema, value, place, go_type)

    def _list(self, schema: Schema, value: list[Any], place: _Place, go_type: str) -> list[Any]:
        items = (self.value(schema, each, place.item(index), go_type) for index, each in enumerate(value))
        return [_zero(schema) if each is _NULL else each for each in items]

    def _map(self, schema: Schema, value: dict[str, Any], place: _Place, go_type: str) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, each in _pairs(value):
            if key in kept:
                self._problem("duplicate", _join(place.path, key))
            below = self.value(schema, each, place.key(key), go_type)
            kept[key] = _zero(schema) if below is _NULL else below
        return kept

    def _scalar(self, schema: Schema, value: Any, place: _Place, go_type: str) -> Any:
        if schema.format in TEXTS:
            return self._text(schema, value, place)
        if schema.kind == "int-or-string":
            if not isinstance(value, str) and (error := _integer("int32", value, place, "int32")):
                raise error
            return value
        if schema.kind == "integer":
            return _NULL if self._keep(_integer(schema.format, value, place, go_type)) else value
        if json_kind(value) != _JSON_KINDS[schema.kind]:
            self._keep(_wrong_type(json_kind(value), go_type, place))
            return _NULL
        if schema.format == "byte":
            return self._bytes(value)
        return float(value) if type(value) is NumberText else value

    def _bytes(self, value: str) -> Any:
        try:
            return _base64(value)
        except ValueError as error:
            self._keep(error)
            return _NULL

    def _text(self, schema: Schema, value: Any, place: _Place) -> Any:
        if not isinstance(value, str) and schema.format != "quantity":
            raise _wrong_type(json_kind(value), "string", place)
        text = canonical_text(TEXTS[schema.format], value)
        return _NULL if text is None else text

    def _is(self, type_: type, go_type: str, value: Any, place: _Place) -> bool:
        wrong = None if isinstance(value, type_) else _wrong_type(json_kind(value), go_type, place)
        return not self._keep(wrong)

    def _keep(self, error: ValueError | None) -> ValueError | None:
        self.error = self.error or error
        return error

    def _problem(self, what: str, path: str) -> None:
        self.problems[f"{what} field {quote(path)}"] = None


def _integer(format: str, value: Any, place: _Place, go_type: str) -> ValueError | None:
    low, high = _RANGES[format]
    if type(value) is not int:
        return _wrong_type(f"number {value!r}" if isinstance(value, float) else json_kind(value), go_type, place)
    return None if low <= value <= high else _wrong_type(f"number {value}", go_type, place)


def _pairs(value: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    return value.pairs if isinstance(value, Repeated) else value.items()


def json_kind(value: Any) -> str:
    """Return the name that Go's errors use for the type of a JSON value."""
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
        case None:
            return "null"
    return "object"


def _wrong_type(what: str, go_type: str, place: _Place) -> ValueError:
    target = f"struct field {place.struct}.{place.fields}" if place.struct else "value"
    return ValueError(f"json: cannot unmarshal {what} into Go {target} of type {go_type}")


def _go_type(schema: Schema) -> str:
    """Return the Go type to which a value of `schema` is decoded, as far as it is known for items and map values."""
    if schema.is_struct:
        *_, version, name = schema.definition.split(".")
        return f"{version}.{name}"
    return schema.format if schema.kind == "integer" else _GO_KINDS.get(schema.kind, "map[string]string")


def _element(go_type: str) -> str:
    """Return the Go type of a list's items or a map's values; empty if the name of the type does not contain it."""
    if not go_type.startswith(("[]", "map[")):
        return ""
    return go_type.partition("]")[2].lstrip("*")


def _zero(schema: Schema) -> Any:
    """Return the value of a null item of a list, or a null value of a map."""
    if schema.is_struct or schema.values:
        return {}
    if schema.items:
        return []
    if schema.format in ("date-time", "micro-time"):
        return None
    if schema.format == "quantity":
        return "0"
    return {"string": "", "boolean": False, "any": None}.get(schema.kind, 0)


def _base64(text: str) -> str:
    """Decode base64 as Go does, ignoring line breaks, and encode the bytes again without line breaks."""
    plain = text.replace("\r", "").replace("\n", "")
    if not _is_base64(plain):
        raise ValueError(f"illegal base64 data at input byte {_illegal_byte(text.encode())}")
    return base64.b64encode(base64.b64decode(plain)).decode()


_is_base64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII).fullmatch
_DIGITS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BREAKS, _PADDING = b"\r\n", ord("=")


def _illegal_byte(text: bytes) -> int:
    """Return the index at which Go stops reading malformed base64 (encoding/base64, `decodeQuantum`)."""
    of_quantum = 0
    for at, byte in enumerate(text):
        if byte in _DIGITS:
            of_quantum = (of_quantum + 1) % 4
        elif byte == _PADDING and of_quantum > 1:
            return _illegal_padding(text, at + 1, of_quantum)
        elif byte not in _BREAKS:
            return at
    return len(text) - of_quantum


def _illegal_padding(text: bytes, at: int, of_quantum: int) -> int:
    """Return the index at which Go stops reading after the first padding character, which ends before `at`."""
    at = _behind_breaks(text, at)
    if of_quantum == 3 or at == len(text):
        return at
    return at - 1 if text[at] != _PADDING else _behind_breaks(text, at + 1)


def _behind_breaks(text: bytes, at: int) -> int:
    while at < len(text) and text[at] in _BREAKS:
        at += 1
    return at
