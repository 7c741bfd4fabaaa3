"""Tests of the errors for values of wrong types, and tests that resource quantities are rounded to thousandths in every
kind.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctrlmgr.errors import BadRequest
from ctrlmgr.schema.codec import JSON
from ctrlmgr.schema.definitions import Definitions

_CORE = "io.k8s.api.core.v1."
_FIELD = "into Go struct field"


def _decode(kind: str, fields: dict[str, Any], version: str = "v1", package: str = _CORE) -> dict[str, Any]:
    codec = Definitions.builtin().codec(kind, version, f"{package}{kind}")
    return codec.decode(json.dumps(fields).encode(), JSON).fields


@pytest.mark.parametrize(
    ("kind", "spec", "reason"),
    [
        (
            "Pod",
            {"volumes": [{"nfs": {"path": 7}}]},
            f"number {_FIELD} NFSVolumeSource.spec.volumes.VolumeSource.nfs.path",
        ),
        ("Pod", {"volumes": [{"name": 7}]}, f"number {_FIELD} Volume.spec.volumes.name"),
        (
            "Pod",
            {"containers": [{"livenessProbe": {"tcpSocket": {"port": 2**31}}}]},
            f"number 2147483648 {_FIELD} TCPSocketAction.spec.containers.livenessProbe.ProbeHandler.tcpSocket.port",
        ),
        (
            "Pod",
            {"ephemeralContainers": [{"image": []}]},
            f"array {_FIELD} EphemeralContainer.spec.ephemeralContainers.EphemeralContainerCommon.image",
        ),
        (
            "Pod",
            {"containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": True}}}]}]},
            f"bool {_FIELD} SecretKeySelector.spec.containers.env.valueFrom.secretKeyRef.LocalObjectReference.name",
        ),
        (
            "PersistentVolume",
            {"hostPath": {"path": 1}},
            f"number {_FIELD} HostPathVolumeSource.spec.PersistentVolumeSource.hostPath.path",
        ),
    ],
)
def test_errors_name_embedded_structs(kind: str, spec: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadRequest, match="json: cannot unmarshal " + reason.replace(".", r"\.")):
        _decode(kind, {"spec": spec})


def test_errors_name_structs_in_embedded_structs() -> None:
    package = "io.k8s.api.admissionregistration.v1."
    rules = [{"apiGroups": 7}]
    body = {"spec": {"matchConstraints": {"resourceRules": rules}}}
    path = r"resourceRules\.RuleWithOperations\.Rule\.apiGroups of type \[\]string"
    with pytest.raises(BadRequest, match=path):
        _decode("ValidatingAdmissionPolicy", body, "admissionregistration.k8s.io/v1", package)


@pytest.mark.parametrize(
    ("container", "reason"),
    [
        ({"image": 7, "resources": {"limits": {"cpu": "1Ki1"}}}, "unable to parse quantity's suffix"),
        ({"image": 7, "ports": [{"name": []}]}, "number into Go struct field Container.spec.containers.image"),
        ({"image": 7, "livenessProbe": {"httpGet": {"port": {}}}}, "object into Go struct field HTTPGetAction"),
    ],
)
def test_errors_of_custom_decoders_precede_earlier_wrong_types(container: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadRequest, match=reason):
        _decode("Pod", {"spec": {"containers": [container]}})


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Pod", "spec.overhead"),
        ("Pod", "spec.resources.limits"),
        ("Pod", "status.allocatedResources"),
        ("ResourceQuota", "spec.hard"),
        ("Node", "status.capacity"),
        ("PersistentVolume", "spec.capacity"),
        ("PersistentVolumeClaim", "spec.resources.requests"),
    ],
)
def test_resource_amounts_are_rounded_up_to_thousandths(kind: str, path: str) -> None:
    value: dict[str, Any] = {"cpu": "0.5n", "memory": "1500u", "storage": "1.5Gi"}
    for name in reversed(path.split(".")):
        value = {name: value}
    found: Any = _decode(kind, value)
    for name in path.split("."):
        found = found[name]
    assert found == {"cpu": "1m", "memory": "2m", "storage": "1536Mi"}


def test_quantities_outside_resource_lists_are_not_rounded() -> None:
    volume = {"name": "v", "emptyDir": {"sizeLimit": "0.5n"}}
    assert _decode("Pod", {"spec": {"volumes": [volume]}})["spec"]["volumes"][0]["emptyDir"] == {"sizeLimit": "1n"}


def test_amounts_of_runtime_classes_are_not_rounded() -> None:
    package = "io.k8s.api.node.v1."
    body = {"handler": "h", "overhead": {"podFixed": {"cpu": "100.5m"}}}
    assert _decode("RuntimeClass", body, "node.k8s.io/v1", package)["overhead"] == {"podFixed": {"cpu": "100500u"}}


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("-a", 0),
        ("a", 0),
        ("E30", 0),
        ("a/b/c", 4),
        ("A.b/C", 1),
        ("Bad Value!", 3),
        ("dg==-", 4),
        ("dg=", 3),
        ("dg=x", 2),
        ("dg=\n\n", 5),
        ("d===", 1),
        ("dgA=\nx", 5),
        ("dg\n==", None),
        ("\u00e9", 0),
        ("AAEC\u00e9", 4),
    ],
)
def test_the_error_of_illegal_base64_has_gos_position(text: str, at: int | None) -> None:
    if at is None:
        assert _decode("Secret", {"data": {"k": text}})["data"] == {"k": "dg=="}
        return
    with pytest.raises(BadRequest, match=f"cannot be handled as a Secret: illegal base64 data at input byte {at}$"):
        _decode("Secret", {"data": {"k": text}})


@pytest.mark.parametrize(
    ("kind", "fields", "type_"),
    [
        ("Secret", {"data": {"k": 7}}, r"Secret.data of type \[\]uint8"),
        ("ResourceQuota", {"spec": {"scopes": [7]}}, "ResourceQuotaSpec.spec.scopes of type v1.ResourceQuotaScope"),
        ("ConfigMap", {"data": {"k": 7}}, "ConfigMap.data of type string"),
        (
            "PersistentVolume",
            {"spec": {"csi": {"volumeAttributes": []}}},
            r"volumeAttributes of type map\[string\]string",
        ),
    ],
)
def test_errors_name_the_types_of_items(kind: str, fields: dict[str, Any], type_: str) -> None:
    with pytest.raises(BadRequest, match=type_):
        _decode(kind, fields)


@pytest.mark.parametrize(
    ("number", "amount"), [("1e3", "1e3"), ("1E+3", "1E+3"), ("1.5", "1500m"), ("1000", "1k"), ("0.0005", "1m")]
)
def test_a_number_keeps_its_spelling_as_a_quantity(number: str, amount: str) -> None:
    codec = Definitions.builtin().codec("ResourceQuota", "v1", f"{_CORE}ResourceQuota")
    body = f'{{"spec":{{"hard":{{"requests.cpu":{number}}}}}}}'
    assert codec.decode(body.encode(), JSON).fields["spec"]["hard"] == {"requests.cpu": amount}


def test_other_numbers_are_decoded_normally() -> None:
    codec = Definitions.builtin().codec("ControllerRevision", "apps/v1", "io.k8s.api.apps.v1.ControllerRevision")
    fields = codec.decode(b'{"data":{"a":[1e3,1.5,2]},"revision":1,"unknown":1}', JSON).fields
    assert [(each, type(each)) for each in fields["data"]["a"]] == [(1000.0, float), (1.5, float), (2, int)]


def test_an_error_shows_a_number_as_spelled() -> None:
    codec = Definitions.builtin().codec("ControllerRevision", "apps/v1", "io.k8s.api.apps.v1.ControllerRevision")
    with pytest.raises(BadRequest, match=r"cannot unmarshal number 1\.50e0 into Go struct field"):
        codec.decode(b'{"revision":1.50e0}', JSON)


def test_overheads_of_runtime_classes_are_not_rounded() -> None:
    body = {"handler": "h", "overhead": {"podFixed": {"cpu": "100.5m"}}}
    found = _decode("RuntimeClass", body, "node.k8s.io/v1", "io.k8s.api.node.v1.")
    assert found["overhead"] == {"podFixed": {"cpu": "100500u"}}
