"""Tests of protobuf bodies that kubectl sent, and of how they are converted to JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.errors import BadRequest
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.schema import published_schema
from ctrlmgr.schema.protobuf.protobuf_decoding import MAGIC, MEDIA_TYPE, decode
from tests.schema.protobuf_encoder import META, body, delimited, number, table, unknown, varint

CAPTURED = json.loads(Path(__file__).with_name("kubectl_protobuf.json").read_text())
"""Request bodies of kubectl 1.32, each with the output of the same command with `--dry-run=client -o json`, if the
command supports it.
"""

KINDS = builtin_kinds()

EMPTY: tuple[Any, ...] = ("", 0, False, None, {}, [])


def without_zeros(value: Any) -> Any:
    """Drop values that Go's encoders treat differently: the protobuf encoder writes all zero values, the JSON encoder
    only those without omitempty.
    """
    if isinstance(value, dict):
        kept = {key: without_zeros(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in EMPTY}
    return [without_zeros(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", CAPTURED, ids=[case["command"] for case in CAPTURED])
def test_kubectls_protobuf_equals_its_yaml(case: Mapping[str, Any]) -> None:
    decoded = decode(bytes.fromhex(case["protobuf"]))
    assert list(decoded)[:2] == ["kind", "apiVersion"]
    assert without_zeros(decoded) == without_zeros(case["json"])


@pytest.mark.parametrize("case", CAPTURED, ids=[case["command"] for case in CAPTURED])
def test_kubectls_protobuf_is_stored_like_json(case: Mapping[str, Any]) -> None:
    group, _, version = case["json"]["apiVersion"].rpartition("/")
    codec = KINDS.codec_for(GroupVersionKind(group, version, case["json"]["kind"]))
    sent, printed = codec.decode(bytes.fromhex(case["protobuf"]), MEDIA_TYPE), codec.read(deepcopy(case["json"]))
    assert codec.encode(sent.fields) == codec.encode(printed.fields)
    assert sent.problems == ()


def config_map(raw: bytes) -> dict[str, Any]:
    return decode(unknown("v1", "ConfigMap", raw))


def test_zero_values_are_kept() -> None:
    raw = delimited(1, delimited(1, b"") + number(7, 0)) + number(4, 0)
    assert config_map(raw) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "", "generation": 0},
        "immutable": False,
    }


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        pytest.param(b"", None, id="an empty time is none"),
        pytest.param(number(1, 0) + number(2, 0), "1970-01-01T00:00:00Z", id="the epoch, when it is written out"),
        pytest.param(number(1, 1767323045), "2026-01-02T03:04:05Z", id="seconds"),
        pytest.param(
            number(1, 1767323045) + number(2, 999_999_999), "2026-01-02T03:04:05Z", id="nanoseconds are not kept"
        ),
        pytest.param(number(1, -62135596800), "0001-01-01T00:00:00Z", id="the first year"),
    ],
)
def test_times(time: bytes, expected: str | None) -> None:
    assert config_map(delimited(1, delimited(8, time)))["metadata"]["creationTimestamp"] == expected


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        pytest.param(b"", None, id="an empty time is none"),
        pytest.param(number(1, 1767323045) + number(2, 1_999), "2026-01-02T03:04:05.000001Z", id="whole microseconds"),
        pytest.param(number(1, 1767323045), "2026-01-02T03:04:05.000000Z", id="always six digits"),
    ],
)
def test_micro_times(time: bytes, expected: str | None) -> None:
    decoded = decode(unknown("coordination.k8s.io/v1", "Lease", delimited(2, delimited(4, time))))
    assert decoded["spec"]["renewTime"] == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"", 0, id="nothing is zero"),
        pytest.param(number(1, 0) + number(2, 8080) + delimited(3, b""), 8080, id="a number"),
        pytest.param(number(1, 1) + number(2, 0) + delimited(3, b"http"), "http", id="a name"),
        pytest.param(number(2, -1), -1, id="a negative number"),
    ],
)
def test_ints_or_strings(content: bytes, expected: int | str) -> None:
    decoded = decode(unknown("v1", "Service", delimited(2, delimited(1, delimited(4, content)))))
    assert decoded["spec"]["ports"] == [{"targetPort": expected}]


SCHEMA = {"type": "string"}


PROPS = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


def number_of(message: str, name: str) -> int:
    [found] = [row[0] for row in table()["messages"][message] if row[1] == name]
    return int(found)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("default", delimited(1, b'{"a":[1]}'), {"a": [1]}),
        ("default", b"", None),
        ("items", delimited(1, delimited(5, b"string")), SCHEMA),
        ("items", delimited(2, delimited(5, b"string")) + delimited(2, b""), [SCHEMA, {}]),
        ("dependencies", delimited(1, b"a") + delimited(2, delimited(2, b"b")), {"a": ["b"]}),
        ("dependencies", delimited(1, b"a") + delimited(2, delimited(1, b"")), {"a": {}}),
        ("additionalProperties", number(1, 1), True),
        ("additionalProperties", b"", False),
        ("additionalProperties", number(1, 1) + delimited(2, delimited(5, b"string")), SCHEMA),
        ("$schema", b"text", "text"),
        ("$ref", b"text", "text"),
        ("x-kubernetes-list-type", b"map", "map"),
    ],
)
def test_schemas_of_custom_resources(name: str, content: bytes, expected: Any) -> None:
    """The types of the group apiextensions whose form in JSON differs from their form in protobuf."""
    assert schema_of(delimited(number_of(PROPS, name), content)) == {name: expected}


def schema_of(written: bytes) -> Any:
    version = delimited(1, b"v1") + delimited(4, delimited(1, written))
    definition = unknown("apiextensions.k8s.io/v1", "CustomResourceDefinition", delimited(2, delimited(7, version)))
    return decode(definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_doubles() -> None:
    tag = varint(number_of(PROPS, "maximum") * 8 + 1)
    assert schema_of(tag + b"\0\0\0\0\0\0\xf8\x3f") == {"maximum": 1.5}
    for impossible in (b"\0\0\0\0\0\0\xf0\x7f", b"\0\0\0\0\0\0\xf8\x7f", b"\0\0"):
        with pytest.raises(BadRequest, match=r"json: unsupported value: (inf|nan)|unexpected EOF"):
            schema_of(tag + impossible)


def test_embedded_structs_are_inlined() -> None:
    """In protobuf, a volume's source and a probe's handler are separate messages; in JSON, the fields of these messages
    are inlined.
    """
    volume = delimited(1, b"cache") + delimited(2, delimited(2, delimited(1, b"Memory")))
    probe = delimited(1, delimited(2, delimited(1, b"/livez"))) + number(2, 5)
    container = delimited(1, b"c") + delimited(10, probe)
    decoded = decode(unknown("v1", "Pod", delimited(2, delimited(1, volume) + delimited(2, container))))
    assert decoded["spec"]["volumes"] == [{"name": "cache", "emptyDir": {"medium": "Memory"}}]
    handler = {"httpGet": {"path": "/livez"}, "initialDelaySeconds": 5}
    assert decoded["spec"]["containers"] == [{"name": "c", "livenessProbe": handler}]


def test_maps_can_omit_keys_and_values() -> None:
    entries = delimited(2, delimited(2, b"v")) + delimited(2, delimited(1, b"k")) + delimited(3, delimited(1, b"b"))
    decoded = config_map(entries)
    assert (decoded["data"], decoded["binaryData"]) == ({"": "v", "k": ""}, {"b": ""})


def test_a_repeated_message_is_merged_and_a_repeated_scalar_replaced() -> None:
    raw = delimited(1, delimited(1, b"a") + delimited(3, b"ns")) + delimited(1, delimited(1, b"b"))
    assert config_map(raw)["metadata"] == {"name": "b", "namespace": "ns"}


def test_unknown_fields_are_skipped() -> None:
    group = varint(99 * 8 + 3) + number(1, 5) + varint(2 * 8 + 3) + varint(2 * 8 + 4) + varint(99 * 8 + 4)
    strange = [number(100, 1), delimited(101, b"abc"), varint(102 * 8 + 1) + b"12345678", varint(103 * 8 + 5) + b"1234"]
    assert config_map(b"".join([group, *strange, number(4, 1)])) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "immutable": True,
    }


def test_invalid_utf8_is_replaced_like_go() -> None:
    assert config_map(delimited(1, delimited(1, b"a\xffb")))["metadata"]["name"] == "a�b"


def test_kind_and_version_default_to_those_of_the_path() -> None:
    data = MAGIC + delimited(2, number(4, 1))
    assert decode(data, "v1", "ConfigMap") == {"kind": "ConfigMap", "apiVersion": "v1", "immutable": True}


def test_options_of_any_group_are_decoded() -> None:
    options = unknown("coordination.k8s.io/v1", "DeleteOptions", number(1, 0) + delimited(4, b"Foreground"))
    decoded = decode(options)
    assert (decoded["gracePeriodSeconds"], decoded["propagationPolicy"]) == (0, "Foreground")


def names(message: str) -> set[str]:
    """Return the JSON names of a message's fields, including the fields of embedded structs."""
    found: set[str] = set()
    for _, name, kind in table()["messages"][message]:
        found |= {name} if name else names(kind)
    return found


def test_every_field_has_its_openapi_name() -> None:
    checked = 0
    for message in table()["messages"]:
        definition = message.replace("k8s.io.", "io.k8s.", 1).replace("_", "-")
        raw = published_schema.definitions().get(definition)
        properties = json.loads(bytes(raw)).get("properties") if raw is not None else None
        if properties is not None:
            assert names(message) - {"kind", "apiVersion"} == set(properties) - {"kind", "apiVersion"}, message
            checked += 1
    assert checked > 550


def test_every_kind_with_a_definition_can_be_decoded() -> None:
    for api_version, kind in (name.rsplit("/", 1) for name in table()["kinds"]):
        assert decode(unknown(api_version, kind, b"")) == {"kind": kind, "apiVersion": api_version}


def test_the_types_of_all_fields_are_known() -> None:
    scalars = {"string", "bytes", "bool", "int32", "int64", "double", "json"}
    known = scalars | set(table()["messages"])
    for message, rows in table()["messages"].items():
        for _, _, kind in rows:
            assert kind.removeprefix("repeated ").removeprefix("map<string,").removesuffix(">") in known, message
    assert f"{META}ObjectMeta" in known


def test_lists_of_numbers_can_be_packed() -> None:
    context = {"supplementalGroups": [1, 2000, 3_000_000_000]}
    pod = {"kind": "Pod", "apiVersion": "v1", "spec": {"securityContext": context}}
    assert decode(body(pod, packed=True)) == decode(body(pod)) == pod


def test_empty_quantities_are_zero() -> None:
    hard = delimited(1, delimited(1, b"cpu") + delimited(2, b""))
    decoded = decode(unknown("v1", "ResourceQuota", delimited(2, hard)))
    assert decoded["spec"]["hard"] == {"cpu": "0"}


def test_invalid_json_in_bytes_is_refused() -> None:
    revision = unknown("apps/v1", "ControllerRevision", delimited(2, delimited(1, b"{")))
    with pytest.raises(
        BadRequest, match=r'^ControllerRevision in version "v1" cannot be handled as a ControllerRevision: error'
    ):
        decode(revision)
