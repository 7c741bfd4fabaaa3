"""Tests of truncated, hostile and empty protobuf bodies: they are refused with Kubernetes' messages, and cause no other
errors.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.errors import BadRequest
from ctrlmgr.schema.protobuf.protobuf_decoding import MAGIC, decode
from tests.schema.protobuf_encoder import delimited, number, unknown, varint

BODIES = [
    bytes.fromhex(case["protobuf"])
    for case in json.loads(Path(__file__).with_name("kubectl_protobuf.json").read_text())
]


def assert_decoded_or_refused(data: bytes) -> dict[str, Any] | None:
    """Return None if the server refuses the body; raise any other error."""
    try:
        return decode(data, "v1", "Pod")
    except BadRequest:
        return None


UNRECOGNIZED = "the object provided is unrecognized (must be of type Pod): "
SCHEME = 'scheme "pkg/api/legacyscheme/scheme.go:30"'
HANDLED = 'Pod in version "v1" cannot be handled as a Pod: '


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", f"{UNRECOGNIZED}empty data (<empty>)", id="nothing"),
        pytest.param(MAGIC, f"{UNRECOGNIZED}empty body (6b387300)", id="only the magic"),
        pytest.param(
            b'{"kind":"Pod","apiVersion":"v1","metadata":{}}',
            f"{UNRECOGNIZED}provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] "
            '({"kind":"Pod","apiVersion":"v1 ...)',
            id="JSON",
        ),
        pytest.param(MAGIC + b"\x12\x05a", f"{UNRECOGNIZED}unexpected EOF (6b387300120561)", id="cut off"),
        pytest.param(unknown("v1", "Pod", b"\x0a\x05a"), f"{HANDLED}unexpected EOF", id="an object cut off"),
        pytest.param(unknown("v1", "Pod", b"\x0a"), f"{HANDLED}unexpected EOF", id="a length missing"),
        pytest.param(unknown("v1", "Pod", b"\x0a" + b"\xff" * 10), f"{HANDLED}proto: integer overflow", id="overlong"),
        pytest.param(
            unknown("v1", "Pod", b"\x0a" + varint(-1)),
            f"{HANDLED}proto: negative length found during unmarshaling",
            id="a negative length",
        ),
        pytest.param(
            unknown("v1", "Pod", number(1, 5)),
            f"{HANDLED}proto: wrong wireType = 0 for field metadata",
            id="a wrong type",
        ),
        pytest.param(
            unknown("v1", "Pod", varint(9 * 8 + 4)),
            f"{HANDLED}proto: Pod: wiretype end group for non-group",
            id="the end of no group",
        ),
        pytest.param(
            unknown("v1", "Pod", b"\x02\x00"), f"{HANDLED}proto: Pod: illegal tag 0 (wire type 2)", id="tag 0"
        ),
        pytest.param(unknown("v1", "Pod", varint(9 * 8 + 6)), f"{HANDLED}proto: illegal wireType 6", id="no wire type"),
        pytest.param(
            unknown("v1", "Pod", delimited(1, delimited(8, number(1, 1 << 60)))),
            f"{HANDLED}Time.MarshalJSON: year outside of range [0,9999]",
            id="a time beyond all calendars",
        ),
        pytest.param(
            unknown("v1", "Widget", b""),
            'Widget in version "v1" cannot be handled as a Pod: no kind "Widget" is registered for version "v1" '
            f"in {SCHEME}",
            id="an unknown kind",
        ),
        pytest.param(
            unknown("example.com/v1", "Widget", b""),
            'Widget in version "v1" cannot be handled as a Pod: no kind "Widget" is registered for version '
            f'"example.com/v1" in {SCHEME}',
            id="an unknown group",
        ),
    ],
)
def test_malformed_bodies_are_refused_with_an_error(data: bytes, message: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        decode(data, "v1", "Pod")
    assert str(refusal.value) == message


def is_part(part: Any, whole: Any) -> bool:
    """Return whether a value contains only parts of another, whole value."""
    if isinstance(part, dict):
        return part.keys() <= whole.keys() and all(is_part(each, whole[key]) for key, each in part.items())
    if isinstance(part, list):
        return len(part) <= len(whole) and all(map(is_part, part, whole))
    return bool(part == whole)


@pytest.mark.parametrize("data", BODIES, ids=lambda data: f"{len(data)} bytes")
def test_a_truncated_body_is_refused_or_has_fewer_fields(data: bytes) -> None:
    """A protobuf message may end after any field, so truncation after a field cannot be detected; any other truncation
    must be detected.
    """
    whole = decode(data)
    found = [assert_decoded_or_refused(data[:length]) for length in range(len(data))]
    assert all(is_part(each, whole) for each in found if each is not None)
    assert found.count(None) > len(data) * 0.9


@settings(deadline=None)
@given(st.sampled_from(BODIES), st.lists(st.tuples(st.integers(4, 400), st.integers(0, 255)), min_size=1, max_size=6))
def test_damaged_bodies_never_crash_the_decoder(data: bytes, damage: list[tuple[int, int]]) -> None:
    damaged = bytearray(data)
    for position, byte in damage:
        damaged[position % len(damaged)] = byte
    assert_decoded_or_refused(bytes(damaged))


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["Pod", "Event", "List", "Status"]))
def test_random_bytes_never_crash_the_decoder(noise: bytes, kind: str) -> None:
    assert_decoded_or_refused(unknown("v1", kind, noise))


def schema(depth: int) -> bytes:
    """Return a JSONSchemaProps with `depth` nested schemas, each in the field `not` of the schema around it."""
    written = b""
    for _ in range(depth):
        written = delimited(28, written)
    return written


def definition(depth: int) -> bytes:
    version = delimited(4, delimited(1, schema(depth)))
    return unknown("apiextensions.k8s.io/v1", "CustomResourceDefinition", delimited(2, delimited(7, version)))


def test_deep_nesting_is_refused() -> None:
    field = decode(definition(50))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    depth = 0
    while field:
        depth, field = depth + 1, field["not"]
    assert depth == 50
    for depth in (100, 20_000):
        with pytest.raises(BadRequest, match="exceeded max depth"):
            decode(definition(depth))


def test_deep_json_in_protobuf_is_refused() -> None:
    data = b"[" * 100_000
    with pytest.raises(BadRequest, match="error decoding from json"):
        decode(unknown("apps/v1", "ControllerRevision", delimited(2, delimited(1, data))))


@pytest.mark.parametrize(
    ("piece", "read"),
    [
        pytest.param(delimited(14, b"f"), lambda metadata: len(metadata["finalizers"]), id="list items"),
        pytest.param(delimited(13, b""), lambda metadata: len(metadata["ownerReferences"]), id="empty messages"),
        pytest.param(delimited(8, b""), lambda metadata: 300_000 * len(metadata), id="one field again and again"),
        pytest.param(number(99, 1), lambda metadata: 300_000, id="unknown fields"),
    ],
)
def test_a_megabyte_of_small_fields_is_decoded_in_one_pass(piece: bytes, read: Any) -> None:
    metadata = decode(unknown("v1", "ConfigMap", delimited(1, piece * 300_000)))["metadata"]
    assert read(metadata) == 300_000
