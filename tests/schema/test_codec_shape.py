"""Tests that decoded objects have the structure and the bytes of Kubernetes' Go types."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.schema.codec import JSON, Codec
from ctrlmgr.schema.schema import Schema
from tests.recording.samples import small_lines

KINDS = builtin_kinds()
RESOURCE_VERSION = re.compile(rb'"resourceVersion":"\d+",')


def codec(kind: str, api_version: str = "v1") -> Codec:
    group, _, version = api_version.rpartition("/")
    return KINDS.codec_for(GroupVersionKind(group, version, kind))


class Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


@pytest.mark.parametrize("kind", ["Namespace", "Service", "Pod", "Endpoints", "EndpointSlice", "Lease", "Event"])
def test_objects_of_kubernetes_are_encoded_byte_for_byte(kind: str) -> None:
    seen = 0
    for line in small_lines():
        body = bytes(msgspec.json.decode(line, type=Line).object)
        head = msgspec.json.decode(body)
        if head["kind"] == kind:
            fields, problems = codec(kind, head["apiVersion"]).decode(body, JSON)
            assert codec(kind, head["apiVersion"]).encode(fields) == RESOURCE_VERSION.sub(b"", body, count=1)
            assert problems == ()
            seen += 1
    assert seen


@pytest.mark.parametrize(
    ("kind", "api_version", "body", "expected"),
    [
        ("ConfigMap", "v1", {}, {"metadata": {}}),
        ("ConfigMap", "v1", {"data": {}, "binaryData": {"a": "aGk="}}, {"metadata": {}, "binaryData": {"a": "aGk="}}),
        ("Service", "v1", {}, {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}),
        ("Namespace", "v1", {}, {"metadata": {}, "spec": {}, "status": {}}),
        (
            "Pod",
            "v1",
            {"spec": {"containers": [{"name": "c", "image": ""}], "hostNetwork": False, "securityContext": {}}},
            {
                "metadata": {},
                "spec": {"containers": [{"name": "c", "resources": {}}], "securityContext": {}},
                "status": {},
            },
        ),
        ("ClusterRole", "rbac.authorization.k8s.io/v1", {}, {"metadata": {}, "rules": None}),
        ("ClusterRole", "rbac.authorization.k8s.io/v1", {"rules": []}, {"metadata": {}, "rules": None}),
        ("ControllerRevision", "apps/v1", {}, {"metadata": {}, "data": None, "revision": 0}),
        (
            "ControllerRevision",
            "apps/v1",
            {"data": {"b": [1.5, None], "a": {}}},
            {"metadata": {}, "data": {"b": [1.5, None], "a": {}}, "revision": 0},
        ),
        (
            "Lease",
            "coordination.k8s.io/v1",
            {"spec": {"leaseTransitions": 0, "holderIdentity": ""}},
            {"metadata": {}, "spec": {"holderIdentity": "", "leaseTransitions": 0}},
        ),
        (
            "EndpointSlice",
            "discovery.k8s.io/v1",
            {"addressType": "IPv4", "endpoints": None, "ports": []},
            {"metadata": {}, "addressType": "IPv4", "endpoints": None, "ports": None},
        ),
        (
            "PodDisruptionBudget",
            "policy/v1",
            {"status": {"disruptedPods": {"p": None}}},
            {
                "metadata": {},
                "spec": {},
                "status": {
                    "disruptedPods": {"p": None},
                    "disruptionsAllowed": 0,
                    "currentHealthy": 0,
                    "desiredHealthy": 0,
                    "expectedPods": 0,
                },
            },
        ),
        ("DeleteOptions", "v1", {"gracePeriodSeconds": 0}, {"gracePeriodSeconds": 0}),
    ],
)
def test_present_and_omitted_fields(
    kind: str, api_version: str, body: dict[str, Any], expected: dict[str, Any]
) -> None:
    fields, problems = codec(kind, api_version).decode(json.dumps(body).encode(), JSON)
    assert fields == {"kind": kind, "apiVersion": api_version, **expected}
    assert json.loads(codec(kind, api_version).encode(fields)) == fields
    assert problems == ()


def test_every_kind_can_be_empty() -> None:
    for kind in KINDS:
        fields, problems = kind.codec.decode(b"{}", JSON)
        assert json.loads(kind.codec.encode(fields)) == fields, kind
        assert problems == ()


@pytest.mark.parametrize(
    ("path", "given_", "kept"),
    [
        ("spec.containers.0.resources.limits.cpu", 0.5, "500m"),
        ("spec.containers.0.resources.limits.cpu", 2, "2"),
        ("spec.containers.0.resources.limits.cpu", " 1000m ", "1"),
        ("spec.overhead.memory", "1024Mi", "1Gi"),
        ("metadata.creationTimestamp", "2026-01-02T03:04:05.678+01:00", "2026-01-02T02:04:05Z"),
        ("spec.containers.0.livenessProbe.httpGet.port", "http", "http"),
        ("spec.containers.0.livenessProbe.httpGet.port", 80, 80),
    ],
)
def test_canonical_values(path: str, given_: Any, kept: Any) -> None:
    body: Any = given_
    for step in reversed(path.split(".")):
        body = [body] if step == "0" else {step: body}
    pods = codec("Pod")
    value: Any = pods.decode(json.dumps(body).encode(), JSON).fields
    assert json.loads(pods.encode(value)) == value
    for step in path.split("."):
        value = value[int(step) if step == "0" else step]
    assert value == kept


def test_an_empty_time_is_a_zero_time() -> None:
    metadata = {"creationTimestamp": "0001-01-01T00:00:00Z", "deletionTimestamp": None}
    assert codec("ConfigMap").read({"metadata": metadata}).fields["metadata"] == {}


def test_base64_is_encoded_like_go() -> None:
    fields = codec("Secret").read({"data": {"a": "aG\nk=", "empty": ""}}).fields
    assert fields["data"] == {"a": "aGk=", "empty": ""}


def test_maps_are_sorted_and_free_form_values_are_not() -> None:
    body = b'{"metadata":{"labels":{"b":"","a":""},"managedFields":[{"fieldsV1":{"f:b":{},"f:a":{}}}]}}'
    encoded = codec("ConfigMap").encode(codec("ConfigMap").decode(body, JSON).fields)
    assert b'"labels":{"a":"","b":""}' in encoded
    assert b'"fieldsV1":{"f:b":{},"f:a":{}}' in encoded


def test_bodies_begin_alike_without_a_resource_version() -> None:
    fields = {"metadata": {"resourceVersion": "7", "uid": "u", "name": "n"}, "apiVersion": "v1", "kind": "ConfigMap"}
    expected = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n","uid":"u"}}'
    assert codec("ConfigMap").encode(fields) == expected
    assert fields["metadata"] == {"resourceVersion": "7", "uid": "u", "name": "n"}


def test_html_is_escaped_like_go() -> None:
    fields = codec("ConfigMap").read({"data": {"<&>": "\u2028\u2029\b\f\x7fé"}}).fields
    written = codec("ConfigMap").encode(fields)
    assert b'{"\\u003c\\u0026\\u003e":"\\u2028\\u2029\\b\\f\x7f\xc3\xa9"}' in written
    assert json.loads(written) == fields


def test_values_left_by_strategies_are_encoded() -> None:
    fields: dict[str, Any] = {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": None,
        "spec": {"ports": None, "selector": {}},
    }
    assert json.loads(codec("Service").encode(fields)) == {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {},
        "spec": {},
        "status": {"loadBalancer": {}},
    }


def test_values_of_wrong_types_are_not_encoded() -> None:
    with pytest.raises(ValueError, match="cannot unmarshal number into Go struct field"):
        codec("Service").encode({"kind": "Service", "apiVersion": "v1", "spec": {"type": 1}})


def values(schema: Schema, depth: int = 0) -> st.SearchStrategy[Any]:
    """Return values for `schema` in the forms in which clients may send them: in any order, with zeros and nulls."""
    match schema.kind, schema.format:
        case "string", "quantity":
            return st.sampled_from(["0", "1", "1500m", "1Gi", "0.5", "1e3"])
        case "string", "date-time":
            return st.sampled_from(["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5+01:00", None])
        case "string", "micro-time":
            return st.sampled_from(["2026-01-02T03:04:05.000001Z", None])
        case "string", "byte":
            return st.sampled_from(["", "aGk="])
        case "string", _:
            return st.sampled_from(["", "a", "<ü>"])
        case ("integer" | "number", _):
            return st.integers(-3, 3)
        case "boolean", _:
            return st.booleans()
        case "int-or-string", _:
            return st.integers(0, 3) | st.sampled_from(["", "http"])
        case "any", _:
            return st.sampled_from([None, {}, {"b": 1, "a": [None]}])
    if depth > 6:
        return st.none()
    if schema.items:
        return st.none() | st.lists(values(schema.items, depth + 1), max_size=2)
    if schema.values:
        return st.dictionaries(st.sampled_from("ba"), values(schema.values, depth + 1), max_size=2)
    fields: dict[Any, st.SearchStrategy[Any]] = {
        name: values(each, depth + 1) for name, each in schema.properties.items() if name not in TYPE_META
    }
    return st.fixed_dictionaries({}, optional=fields)


TYPE_META = ("kind", "apiVersion")
SOME = [
    "v1/Service",
    "v1/PersistentVolume",
    "networking.k8s.io/v1/NetworkPolicy",
    "autoscaling/v2/HorizontalPodAutoscaler",
]


@pytest.mark.parametrize("name", SOME)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_decoding_an_encoded_object_returns_it(name: str, data: st.DataObject) -> None:
    api_version, _, kind = name.rpartition("/")
    of_kind = codec(kind, api_version)
    body = data.draw(values(of_kind.schema))
    fields, problems = of_kind.decode(json.dumps(body).encode(), JSON)
    encoded = of_kind.encode(fields)
    again = of_kind.decode(encoded, JSON)
    assert again.fields == json.loads(encoded)
    assert again.fields.keys() == fields.keys()
    assert of_kind.encode(again.fields) == encoded
    assert problems == again.problems == ()
