"""Tests of accepted bodies, refused bodies and dropped fields, with Kubernetes' messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctrlmgr.errors import BadRequest, UnsupportedMediaType
from ctrlmgr.schema import strict_json
from ctrlmgr.schema.codec import JSON, Codec
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.schema.protobuf.protobuf_decoding import MAGIC, MEDIA_TYPE
from tests.robustness.attack.growth import WORST, growth

DEFINITIONS = Definitions.builtin()
SERVICES = DEFINITIONS.codec("Service", "v1", "io.k8s.api.core.v1.Service")
CONFIG_MAPS = DEFINITIONS.codec("ConfigMap", "v1", "io.k8s.api.core.v1.ConfigMap")
API_SERVICES = DEFINITIONS.codec(
    "APIService", "apiregistration.k8s.io/v1", "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService"
)
LEASES = DEFINITIONS.codec("Lease", "coordination.k8s.io/v1", "io.k8s.api.coordination.v1.Lease")
REVISIONS = DEFINITIONS.codec("ControllerRevision", "apps/v1", "io.k8s.api.apps.v1.ControllerRevision")
PODS = DEFINITIONS.codec("Pod", "v1", "io.k8s.api.core.v1.Pod")
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
CRDS = DEFINITIONS.codec("CustomResourceDefinition", "apiextensions.k8s.io/v1", f"{EXTENSIONS}CustomResourceDefinition")


def refusal(codec: Codec, data: bytes, media_type: str = JSON) -> str:
    with pytest.raises(BadRequest) as caught:
        codec.decode(data, media_type)
    return str(caught.value)


@pytest.mark.parametrize(
    ("body", "problems"),
    [
        (
            '{"other":{},"spec":{"unknownField":1,"ports":[{"port":1},{"bogus":{"x":1}}]}}',
            ['unknown field "other"', 'unknown field "spec.unknownField"', 'unknown field "spec.ports[1].bogus"'],
        ),
        (
            '{"metadata":{"labels":{"a":"1","a":"2"}},"spec":{"type":"ClusterIP","type":"ClusterIP"}}',
            ['duplicate field "metadata.labels.a"', 'duplicate field "spec.type"'],
        ),
        ('{"spec":{"Type":"x","type":"y","type":"z"}}', ['unknown field "spec.Type"', 'duplicate field "spec.type"']),
        ('{"a\\"b":1,"a\\"b":2,"\\u00e9":1}', ['unknown field "a\\"b"', 'unknown field "é"']),
        ('{"metadata":{"name":"x","n\\u0061me":"y"}}', ['duplicate field "metadata.name"']),
        ('{"metadata":{"managedFields":[{"fieldsV1":{"a":{},"a":{}}}]}}', []),
        ('{ "metadata": {"annotations": {"a": "\\"a\\": \\u0022"}} }\n', []),
    ],
)
def test_problems(body: str, problems: list[str]) -> None:
    assert list(SERVICES.decode(body.encode(), JSON).problems) == problems


def test_the_last_duplicate_counts_and_unknown_fields_are_dropped() -> None:
    body = b'{"metadata":{"name":"a","labels":{"a":"1","a":"2"},"name":"b"},"zzz":1}'
    fields, _ = CONFIG_MAPS.decode(body, JSON)
    assert fields == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "b", "labels": {"a": "2"}}}


def test_at_most_a_hundred_problems_are_listed() -> None:
    body = json.dumps({f"f{number}": 1 for number in range(150)}).encode()
    assert len(CONFIG_MAPS.decode(body, JSON).problems) == 100


def test_problems_as_an_error() -> None:
    refused = LEASES.refuse_strictly(('unknown field "a"', 'duplicate field "b"'))
    assert str(refused) == (
        'Lease in version "v1" cannot be handled as a Lease: strict decoding error:'
        ' unknown field "a", duplicate field "b"'
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"metadata": {"name": 5}}, "number into Go struct field ObjectMeta.metadata.name of type string"),
        ({"metadata": []}, "array into Go struct field Service.metadata of type v1.ObjectMeta"),
        ({"metadata": {"labels": {"a": 1}}}, "number into Go struct field ObjectMeta.metadata.labels of type string"),
        (
            {"metadata": {"labels": "a"}},
            "string into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        ({"spec": {"type": True}}, "bool into Go struct field ServiceSpec.spec.type of type v1.ServiceType"),
        ({"spec": {"ports": {}}}, "object into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort"),
        ({"spec": {"ports": [1]}}, "number into Go struct field ServiceSpec.spec.ports of type v1.ServicePort"),
        ({"spec": {"ports": [{"port": "1"}]}}, "string into Go struct field ServicePort.spec.ports.port of type int32"),
        (
            {"spec": {"ports": [{"port": 1.5}]}},
            "number 1.5 into Go struct field ServicePort.spec.ports.port of type int32",
        ),
        (
            {"spec": {"ports": [{"port": 2**31}]}},
            "number 2147483648 into Go struct field ServicePort.spec.ports.port of type int32",
        ),
        (
            {"spec": {"ports": [{"targetPort": False}]}},
            "bool into Go struct field ServicePort.spec.ports.targetPort of type int32",
        ),
        (
            {"metadata": {"generation": 2**63}},
            "number 9223372036854775808 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            {"spec": {"allocateLoadBalancerNodePorts": "yes"}},
            "string into Go struct field ServiceSpec.spec.allocateLoadBalancerNodePorts of type bool",
        ),
        (
            {"spec": {"externalIPs": [None, 1]}},
            "number into Go struct field ServiceSpec.spec.externalIPs of type string",
        ),
    ],
)
def test_wrong_types(body: Any, reason: str) -> None:
    message = f'Service in version "v1" cannot be handled as a Service: json: cannot unmarshal {reason}'
    assert refusal(SERVICES, json.dumps(body).encode()) == message


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"overhead": {"cpu": "1 core"}}, "quantities must match the regular expression"),
        ({"overhead": {"cpu": True}}, "quantities must match"),
        ({"overhead": {"cpu": {}}}, "quantities must match"),
        ({"overhead": {"cpu": "1K"}}, "unable to parse quantity's suffix"),
    ],
)
def test_malformed_quantities(spec: Any, reason: str) -> None:
    assert reason in refusal(PODS, json.dumps({"spec": spec}).encode())


@pytest.mark.parametrize(
    ("codec", "body", "reason"),
    [
        (
            CONFIG_MAPS,
            {"metadata": {"creationTimestamp": "today"}},
            'parsing time "today" as "2006-01-02T15:04:05Z07:00"',
        ),
        (CONFIG_MAPS, {"metadata": {"creationTimestamp": 5}}, "ObjectMeta.metadata.creationTimestamp of type string"),
        (CONFIG_MAPS, {"binaryData": {"a": "%"}}, "illegal base64 data"),
        (LEASES, {"spec": {"renewTime": "2026-01-01T00:00:00Z"}}, 'as "2006-01-02T15:04:05.000000Z07:00"'),
    ],
)
def test_malformed_texts(codec: Codec, body: Any, reason: str) -> None:
    assert reason in refusal(codec, json.dumps(body).encode())


def test_null_counts_as_missing() -> None:
    body = {"metadata": {"name": None, "labels": {"a": None}, "finalizers": [None]}, "spec": None, "status": None}
    fields, problems = SERVICES.decode(json.dumps(body).encode(), JSON)
    assert fields["metadata"] == {"labels": {"a": ""}, "finalizers": [""]}
    assert (fields["spec"], fields["status"], problems) == ({}, {"loadBalancer": {}}, ())
    assert CONFIG_MAPS.decode(b"null", JSON).fields == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}


@pytest.mark.parametrize("body", [b"{}", b'{"apiVersion":"v1"}', b'{"kind":"Service"}', b'{"kind":"","x":1,"x":2}'])
def test_kind_and_version_default_to_the_expected_ones(body: bytes) -> None:
    fields, _ = SERVICES.decode(body, JSON)
    assert (fields["kind"], fields["apiVersion"]) == ("Service", "v1")
    assert SERVICES.encode(fields).startswith(b'{"kind":"Service","apiVersion":"v1","metadata":{')


@pytest.mark.parametrize(
    ("codec", "kind", "api_version", "message"),
    [
        (
            SERVICES,
            "Wrong",
            "v1",
            'Wrong in version "v1" cannot be handled as a Service: no kind "Wrong" is registered for version "v1"'
            ' in scheme "pkg/api/legacyscheme/scheme.go:30"',
        ),
        (
            LEASES,
            "Wrong",
            "coordination.k8s.io/v1",
            'Wrong in version "v1" cannot be handled as a Lease: no kind "Wrong" is registered for version'
            ' "coordination.k8s.io/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
        ),
        (
            API_SERVICES,
            "APIService",
            "A/b",
            'APIService in version "b" cannot be handled as a APIService: no kind "APIService" is registered for'
            ' version "A/b" in scheme "pkg/apiserver/scheme/scheme.go:28"',
        ),
        (
            SERVICES,
            "Service",
            "v9",
            'Service in version "v9" cannot be handled as a Service: no kind "Service" is registered for version "v9"'
            ' in scheme "pkg/api/legacyscheme/scheme.go:30"',
        ),
        (
            SERVICES,
            "Pod",
            "v1",
            'Pod in version "v1" cannot be handled as a Service: converting (v1.Pod) to (core.Service):'
            " unknown conversion",
        ),
        (
            DEFINITIONS.codec("Event", "v1", "io.k8s.api.core.v1.Event"),
            "Event",
            "events.k8s.io/v1",
            "the API version in the data (events.k8s.io/v1) does not match the expected API version (v1)",
        ),
    ],
)
def test_other_kinds(codec: Codec, kind: str, api_version: str, message: str) -> None:
    assert refusal(codec, json.dumps({"kind": kind, "apiVersion": api_version}).encode()) == message


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "unexpected end of JSON input (<empty>)"),
        (b"{", "unexpected end of JSON input"),
        (b"{bad", "invalid character 'b'"),
        (b"[]", "json: cannot unmarshal array into Go value of type struct"),
        (b'"text"', "json: cannot unmarshal string into Go value"),
        (b"5", "json: cannot unmarshal number into Go value"),
        (b"{} x", "invalid character 'x' after top-level value"),
        (b'{"kind":5}', "json: cannot unmarshal number into Go struct field .kind of type string"),
        (b'{"apiVersion":"a/b/c"}', "unexpected GroupVersion string: a/b/c"),
        (b'{"data":{"a":NaN}}', "invalid character 'N'"),
        (b'{"data":{"a":Infinity}}', "invalid character"),
        (b'{"data":{"a":1e999}}', "out of range"),
        (b'{"data":{"a":' + b"1" * 5000 + b"}}", "out of range"),
        (b'{"data":{"a":"\xff"}}', "invalid UTF-8"),
        (b'{"data":{"\xff":"a"}}', "invalid UTF-8"),
        (b'{"data":{"a":"\\ud800"}}', "JSON"),
        (b'{"data":{"a":"\\udc00"}}', "surrogate"),
        (b'{"data":{"a":"\\u0000"}}', "invalid character '\\x00' in string literal"),
        (b'{"data":{"a":"x\\\\\\u0000"}}', "invalid character '\\x00' in string literal"),
        (b'{"data":{"a":"\n"}}', "invalid character"),
        ('{"data":{}}'.encode("utf-16"), "invalid character"),
        (b"\xef\xbb\xbf{}", "invalid character"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "exceeded max depth"),
        (b'{"a":' * 900 + b"1" + b"}" * 900, "exceeded max depth"),
        (b"[" * 100_000, "exceeded max depth"),
        (b"[" * 100_000 + b"]" * 100_000, "exceeded max depth"),
    ],
)
def test_malformed_json(data: bytes, reason: str) -> None:
    message = refusal(CONFIG_MAPS, data)
    assert message.startswith(("the object provided is unrecognized (must be of type ConfigMap): ", "couldn't get"))
    assert reason in message
    assert len(message) < 300


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    assert CONFIG_MAPS.decode(b'{"data":{"a":"\\\\u0000"}}', JSON).fields["data"] == {"a": "\\u0000"}


@pytest.mark.parametrize("codec", [REVISIONS, CONFIG_MAPS])
@pytest.mark.parametrize("levels", [40, 60, 200, 990])
def test_the_depth_of_free_form_values_is_limited(codec: Codec, levels: int) -> None:
    deep = b'{"a":[' * (levels // 2) + b"1" + b"]}" * (levels // 2)
    body = b'{"data":' + deep + b"}"
    if codec is CONFIG_MAPS:
        body = b'{"metadata":{"managedFields":[{"fieldsV1":' + deep + b"}]}}"
    if levels > strict_json.DEEPEST_FREE_FORM:
        assert "exceeded max depth" in refusal(codec, body)
    else:
        assert codec.decode(body, JSON).problems == ()


def test_the_depth_of_recursive_schemas_is_limited() -> None:
    deep: Any = {}
    for _ in range(40):
        deep = {"properties": {"a": deep}}
    body = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": deep}}]}}
    assert "exceeded max depth" in refusal(CRDS, json.dumps(body).encode())
    with pytest.raises(BadRequest, match="exceeded max depth"):
        CRDS.read(body)


def test_recursive_schemas_are_pruned_at_every_level() -> None:
    schema = {"properties": {"a": {"properties": {"$ref": {"type": "string", "bogus": 1}}}}}
    body = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}
    fields, problems = CRDS.read(body)
    assert problems == ('unknown field "spec.versions[0].schema.openAPIV3Schema.properties.a.properties.$ref.bogus"',)
    kept = fields["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["a"]["properties"]
    assert kept == {"$ref": {"type": "string"}}


@pytest.mark.parametrize(("begin", "piece", "end"), [(b"", b"[", b""), (b'{"a":"', b"[{", b'"}'), (b"", b'["a",', b"")])
def test_hostile_nesting_costs_linear_time(begin: bytes, piece: bytes, end: bytes) -> None:
    def refuse(data: bytes) -> None:
        with pytest.raises(BadRequest):
            SERVICES.decode(data, JSON)

    assert growth(lambda count: begin + piece * count + end + b"!", refuse, 50_000) <= WORST


@pytest.mark.parametrize(("levels", "exceeded"), [(1, False), (64, False), (65, True), (130, True)])
def test_depth(levels: int, exceeded: bool) -> None:
    pairs = [b'{"[\\"":', b"["]
    data = b"".join(pairs[level % 2] for level in range(levels)) + b'"]}]"'
    data += b"".join(b"}]"[level % 2 : level % 2 + 1] for level in reversed(range(levels)))
    json.loads(data)
    assert strict_json.depth_exceeds(data, 64) is exceeded
    siblings = b"[" + b",".join([b'{"a":[1]}'] * 100) + b"]"
    assert not strict_json.depth_exceeds(siblings, 64)


def test_media_types() -> None:
    accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    with pytest.raises(UnsupportedMediaType) as caught:
        SERVICES.decode(b"x", "text/plain")
    message = "the body of the request was in an unknown format - accepted media types include: "
    assert str(caught.value) == message + accepted


def test_protobuf_decodes_to_the_same_as_json() -> None:
    metadata = b"\x0a\x04name"
    config_map = b"\x0a" + bytes([len(metadata)]) + metadata
    type_meta = b"\x0a\x02v1\x12\x09ConfigMap"
    body = MAGIC + b"\x0a" + bytes([len(type_meta)]) + type_meta + b"\x12" + bytes([len(config_map)]) + config_map
    fields, problems = CONFIG_MAPS.decode(body, MEDIA_TYPE)
    assert fields == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "name"}}
    assert problems == ()
    assert "'\\x00'" in refusal(CONFIG_MAPS, body.replace(b"\x04name", b"\x04na\x00e"), MEDIA_TYPE)


def test_decoded_objects_are_read() -> None:
    fields, problems = SERVICES.read({"spec": {"bogus": 1, "type": None, "ports": [{"port": 80}]}, "zzz": {}})
    assert fields["spec"] == {"ports": [{"port": 80, "targetPort": 0}]}
    assert problems == ('unknown field "spec.bogus"', 'unknown field "zzz"')
    with pytest.raises(BadRequest, match="cannot unmarshal string"):
        SERVICES.read({"spec": "text"})
