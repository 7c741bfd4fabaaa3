"""Tests of kubectl's output for refused requests: Kubernetes' messages, and exit code 1."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.kubectl import Kubectl, patch

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
UNKNOWN = {"spec": {"ports": [{"port": 80, "hue": 1}], "size": 2}}


def service(**spec: Any) -> dict[str, Any]:
    fields = {"ports": [{"port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": fields}


def test_unknown_fields_are_errors(kubectl: Kubectl) -> None:
    kubectl.since(27)  # older versions of kubectl check this themselves, with another message
    for verb in ("create", "apply"):
        assert kubectl.fails(f"{verb} -f - --validate=strict", service() | UNKNOWN).endswith(
            'Service in version "v1" cannot be handled as a Service: strict decoding error: unknown field '
            '"spec.ports[0].hue", unknown field "spec.size"\n'
        )
    assert kubectl("get services -o name") == ""


def test_unknown_fields_cause_warnings(kubectl: Kubectl) -> None:
    kubectl.since(27)
    done = kubectl.run("create -f - --validate=warn", service() | UNKNOWN)
    assert done == (
        0,
        "service/web created\n",
        'Warning: unknown field "spec.ports[0].hue"\nWarning: unknown field "spec.size"\n',
    )


def test_unknown_fields_are_ignored(kubectl: Kubectl) -> None:
    done = kubectl.run("create -f - --validate=false", service() | UNKNOWN)
    assert done.out == "service/web created\n"
    assert "size" not in kubectl.get("service web")["spec"]


def test_old_clients_validate_fields_by_openapi(kubectl: Kubectl) -> None:
    if kubectl.minor >= 25:
        pytest.skip(f"kubectl 1.{kubectl.minor} leaves it to the server")
    told = kubectl.fails("create -f -", service() | UNKNOWN)
    assert 'ValidationError(Service.spec): unknown field "size" in io.k8s.api.core.v1.ServiceSpec' in told
    assert 'unknown field "hue" in io.k8s.api.core.v1.ServicePort' in told


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        pytest.param(
            service(ports=[{"port": 80000, "protocol": "FOO"}, {"port": 1}]),
            'The Service "web" is invalid: \n'
            "* spec.ports[0].name: Required value\n"
            "* spec.ports[0].port: Invalid value: 80000: must be between 1 and 65535, inclusive\n"
            '* spec.ports[0].protocol: Unsupported value: "FOO": supported values: "SCTP", "TCP", "UDP"\n'
            "* spec.ports[0].targetPort: Invalid value: 80000: must be between 1 and 65535, inclusive\n"
            "* spec.ports[1].name: Required value\n",
            id="several fields",
        ),
        pytest.param(
            service(clusterIP="10.0.0.1"),
            'The Service "web" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.1"]: failed to allocate IP '
            "10.0.0.1: the provided network does not match the current range\n",
            id="an address out of range",
        ),
        pytest.param(
            service(type="NodePort", ports=[{"port": 80, "nodePort": 80}]),
            'The Service "web" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the '
            "valid range. The range of valid ports is 30000-32767\n",
            id="a port out of range",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Bad_Name"}},
            f'The ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": {SUBDOMAIN}\n',
            id="a name",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": {"containers": []}},
            'The Pod "one" is invalid: spec.containers: Required value\n',
            id="something missing",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}, "type": "kubernetes.io/tls"},
            'The Secret "one" is invalid: \n* data[tls.crt]: Required value\n* data[tls.key]: Required value\n',
            id="a secret's keys",
        ),
    ],
)
def test_invalid_objects(kubectl: Kubectl, document: dict[str, Any], complaint: str) -> None:
    assert kubectl.fails("create -f - --validate=false", document) == complaint
    assert kubectl.fails("apply --server-side -f - --validate=false", document) == complaint


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ("apiVersion: v1\nkind: Nothing\nmetadata: {name: one}\n", 'no matches for kind "Nothing" in version "v1"'),
        ("apiVersion: none/v1\nkind: ConfigMap\nmetadata: {name: one}\n", 'kind "ConfigMap" in version "none/v1"'),
        ("apiVersion: v1\nmetadata: {name: one}\n", "kind not set"),
        ("kind: ConfigMap\nmetadata: {name: one}\n", "apiVersion not set"),
        ("a: [\n", "error parsing STDIN"),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: other}\n",
            'the namespace from the provided object "other" does not match the namespace',
        ),
    ],
)
def test_a_document_without_a_kind_is_refused(kubectl: Kubectl, document: str, complaint: str) -> None:
    assert complaint in kubectl.fails("create -f -", document)


def test_a_value_of_the_wrong_type(kubectl: Kubectl) -> None:
    told = kubectl.fails("create -f - --validate=false", service(ports=[{"port": "eighty"}]))
    assert (
        'Service in version "v1" cannot be handled as a Service: json: cannot unmarshal string into Go struct field '
        "ServicePort.spec.ports.port of type int32\n"
    ) in told


def test_immutable_fields_are_refused(kubectl: Kubectl) -> None:
    kubectl("create -f -", service())
    assert kubectl.fails(patch("service web", {"spec": {"clusterIP": "10.96.0.99"}})) == (
        'The Service "web" is invalid: spec.clusterIPs[0]: Invalid value: ["10.96.0.99"]: may not change once set\n'
    )
    kubectl("create configmap fixed --from-literal=a=1")
    kubectl(patch("configmap fixed", {"immutable": True}))
    assert kubectl.fails(patch("configmap fixed", {"data": {"a": "2"}})) == (
        'The ConfigMap "fixed" is invalid: data: Forbidden: field is immutable when `immutable` is set\n'
    )
    kubectl("create deployment app --image=nginx")
    told = kubectl.fails(patch("deployment app", {"spec": {"selector": {"matchLabels": {"app": "b"}}}}))
    assert '* spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable' in told


def test_a_name_in_use_is_refused(kubectl: Kubectl) -> None:
    kubectl("create service nodeport one --tcp=80 --node-port=30999")
    assert kubectl.fails("create service nodeport two --tcp=80 --node-port=30999").endswith(
        'Service "two" is invalid: spec.ports[0].nodePort: Invalid value: 30999: provided port is already allocated\n'
    )
    address = kubectl.get("service one")["spec"]["clusterIP"]
    assert kubectl.fails("create -f -", service(clusterIP=address)) == (
        f'The Service "web" is invalid: spec.clusterIPs: Invalid value: ["{address}"]: failed to allocate IP '
        f"{address}: provided IP is already allocated\n"
    )
    assert kubectl.fails("create service clusterip one --tcp=80").endswith('services "one" already exists\n')


def test_a_missing_namespace_is_refused(anywhere: Kubectl) -> None:
    nowhere = anywhere.within("nowhere")
    assert nowhere.fails("create configmap one").endswith('namespaces "nowhere" not found\n')
    assert nowhere.run("get configmaps") == (0, "", "No resources found in nowhere namespace.\n")
