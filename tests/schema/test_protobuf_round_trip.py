"""Tests that objects survive a round trip through a protobuf encoder that shares no code with the decoder."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctrlmgr.schema.protobuf.protobuf_decoding import decode
from tests.schema.protobuf_encoder import INT_OR_STRING, META, QUANTITY, body, table

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT, lambda inner: st.lists(inner, max_size=2), max_leaves=3
)
SECONDS = st.datetimes().map(lambda moment: f"{moment.replace(microsecond=0).isoformat()}Z")
MICROSECONDS = st.datetimes().map(lambda moment: f"{moment.isoformat(timespec='microseconds')}Z")

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT,
    "bytes": st.sampled_from(["", "AA==", "/+8=", "aGVsbG8="]),
    "bool": st.booleans(),
    "int32": INT32,
    "int64": st.integers(-(1 << 63), (1 << 63) - 1),
    QUANTITY: st.sampled_from(["0", "100m", "1536Mi"]),
    INT_OR_STRING: INT32 | TEXT,
    f"{META}Time": st.none() | SECONDS,
    f"{META}MicroTime": st.none() | MICROSECONDS,
}
UNLIKE_JSON = "JSONSchemaPropsOr"
"""Kinds that the encoder does not support; other tests cover these kinds."""


def value(type: str, depth: int) -> st.SearchStrategy[Any]:
    if type.startswith("map<string,"):
        values = value(type.removeprefix("map<string,").removesuffix(">"), depth)
        return st.dictionaries(TEXT, values, min_size=1, max_size=2)
    if type.startswith("repeated "):
        return st.lists(value(type.removeprefix("repeated "), depth), min_size=1, max_size=2)
    return VALUES[type] if type in VALUES else message(type, depth)


def later(type: str, depth: int) -> st.SearchStrategy[Any]:
    return st.deferred(lambda: value(type, depth))


@cache
def message(name: str, depth: int) -> st.SearchStrategy[Any]:
    rows = table()["messages"][name]
    if [row[2] for row in rows] == ["json"]:
        return JSON
    if [row[1:] for row in rows] == [["items", "repeated string"]]:
        return st.lists(TEXT, min_size=1, max_size=2)
    plain = [row for row in rows if row[1] and row[2] != "double" and UNLIKE_JSON not in row[2]]
    if depth > 4:
        plain = [row for row in plain if row[2] in VALUES]
    optional = {row[1]: later(row[2], depth + 1) for row in plain}
    fields = st.fixed_dictionaries({}, optional=optional)
    embedded = [message(row[2], depth + 1) for row in rows if not row[1]]
    return st.tuples(fields, *embedded).map(lambda parts: {key: each for part in parts for key, each in part.items()})


SLOW_TO_MAKE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
KINDS = sorted(name for name, message in table()["kinds"].items() if not message.startswith(META))


@pytest.mark.parametrize("name", ["v1/Pod", "v1/Service", "apps/v1/Deployment", "v1/PersistentVolume"])
@settings(SLOW_TO_MAKE, max_examples=25)
@given(data=st.data(), packed=st.booleans())
def test_objects_survive_a_round_trip(name: str, data: st.DataObject, packed: bool) -> None:
    check(name, data, packed)


@settings(SLOW_TO_MAKE, max_examples=60)
@given(name=st.sampled_from(KINDS), data=st.data(), packed=st.booleans())
def test_objects_of_any_kind_survive_a_round_trip(name: str, data: st.DataObject, packed: bool) -> None:
    check(name, data, packed)


def check(name: str, data: st.DataObject, packed: bool) -> None:
    api_version, _, kind = name.rpartition("/")
    obj = {"kind": kind, "apiVersion": api_version, **data.draw(message(table()["kinds"][name], 0))}
    assert decode(body(obj, packed=packed)) == obj
