"""Tests of kubectl with kinds as large as those of well-known operators: install, explain, get,
apply, edit and delete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.e2e.kubectl import Kubectl
from tests.extensions.operators import DEFINITIONS, a_definition

GROUP = "operators.example.com"


@pytest.fixture(scope="module")
def installed(anywhere: Kubectl) -> Iterator[Kubectl]:
    """Install all five kinds, one of which has a schema of more than half a megabyte, until the module's tests have
    finished.
    """
    definitions = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [a_definition(k, DEFINITIONS[k]()) for k in DEFINITIONS],
    }
    made = anywhere("apply --server-side -f -", definitions)
    assert made.count("serverside-applied") == len(DEFINITIONS)
    wait_for(anywhere, names())
    yield anywhere
    anywhere(f"delete crd {' '.join(names())} --ignore-not-found")
    assert GROUP not in anywhere("get crd -o name")


def wait_for(kubectl: Kubectl, definitions: list[str]) -> None:
    """Wait with kubectl until all CustomResourceDefinitions are established.

    While the conditions are null, which lasts until the names are accepted, kubectl fails instead of waiting.
    """
    for name in definitions:
        plural = name.partition(".")[0]
        kubectl(f"wait --for jsonpath='{{.status.acceptedNames.plural}}'={plural} --timeout=30s crd {name}")
    kubectl(f"wait --for condition=established --timeout=30s crd {' '.join(definitions)}")


def names() -> list[str]:
    return [f"{kind.lower()}s.{GROUP}" for kind in DEFINITIONS]


class KindCommands(NamedTuple):
    """The commands that the tests run for a kind."""

    explained: str
    """The path of the field that `kubectl explain` explains."""
    says: str
    """The expected explanation."""
    spec: dict[str, Any]
    """The manifest that `kubectl apply` applies."""
    defaulted: str
    """The path of a field with a default."""
    default: Any
    """The default value of the field."""
    edited: str
    """The path of a field with the value "one", which the editor changes to "two"."""
    wrong: dict[str, Any]
    """An invalid manifest that `kubectl apply` sends."""
    complaint: str
    """The expected error."""


USES = {
    "Monitoring": KindCommands(
        "spec.role3.containers.ports",
        "containerPort\t<integer> -required-",
        {"role3": {"containers": [{"name": "c", "image": "one", "ports": [{"containerPort": 80}]}]}},
        "spec.role3.containers.0.ports.0.protocol",
        "TCP",
        "spec.role3.containers.0.image",
        {"role3": {"containers": [{"name": 3}]}},
        ".spec.role3.containers",
    ),
    "Certificate": KindCommands(
        "spec.privateKey",
        "rotationPolicy\t<string>",
        {"commonName": "one", "secretName": "s", "issuerRef": {"name": "i"}},
        "spec.issuerRef.kind",
        "Issuer",
        "spec.commonName",
        {"secretName": "s", "issuerRef": {"name": "i"}, "ipAddresses": ["::1"]},
        'spec.ipAddresses[0]: Invalid value: "::1"',
    ),
    "Workflow": KindCommands(
        "spec.templates.resource.manifest",
        "apiVersion\t<string> -required-",
        {
            "templates": [
                {
                    "name": "t",
                    "container": {"name": "c", "image": "one", "ports": [{"containerPort": 80}], "gpu": 1},
                    "resource": {"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"any": "thing"}}},
                }
            ]
        },
        "spec.templates.0.container.ports.0.protocol",
        "TCP",
        "spec.templates.0.container.image",
        {"templates": [{"name": "t", "resource": {"manifest": {"apiVersion": "v1"}}}]},
        "spec.templates[0].resource.manifest.kind: Required value",
    ),
    "Database": KindCommands(
        "spec.backup",
        "retentionPolicy\t<string>",
        {"instances": 3, "bootstrap": {"initdb": {"owner": "one"}}, "storage": {"size": "1Gi"}},
        "spec.storage.resizeInUseVolumes",
        True,
        "spec.bootstrap.initdb.owner",
        {"instances": 0},
        "spec.instances in body should be greater than or equal to 1",
    ),
    "Route": KindCommands(
        "spec.rules.matches.headers",
        "value\t<string> -required-",
        {"hostnames": ["one"], "rules": [{"backendRefs": [{"name": "b"}]}]},
        "spec.rules.0.backendRefs.0.weight",
        1,
        "spec.hostnames.0",
        {"rules": [{"backendRefs": [{"name": "b", "port": 65536}]}]},
        "spec.rules[0].backendRefs[0].port in body should be less than or equal to 65535",
    ),
}
"""By kind."""


def at(value: Any, path: str) -> Any:
    """Return the value at a path of field names and list positions."""
    for step in path.split("."):
        value = value[int(step) if step.isdigit() else step]
    return value


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_explain_describes_custom_fields(installed: Kubectl, kind: str) -> None:
    use = USES[kind]
    shown = installed(f"explain {kind.lower()}s.{use.explained}")
    assert f"KIND:       {kind}" in shown
    assert f"GROUP:      {GROUP}" in shown
    assert use.says in shown


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_an_object_is_applied_read_edited_and_deleted(
    installed: Kubectl, namespace: str, editor: str, kind: str
) -> None:
    kubectl, use, name = installed.within(namespace), USES[kind], f"{kind.lower()}.{GROUP}"
    obj = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "m"}, "spec": use.spec}
    assert kubectl("apply --server-side -f -", obj) == f"{name}/m serverside-applied\n"
    assert kubectl("apply --server-side -f -", obj) == f"{name}/m serverside-applied\n"
    assert kubectl(f"get {kind.lower()}s").split()[:4] == ["NAME", "READY", "AGE", "m"]
    found = kubectl.get(f"{kind.lower()} m")
    assert at(found, use.defaulted) == use.default
    assert found["metadata"]["generation"] == 1
    assert kubectl(f"edit {kind.lower()} m", KUBE_EDITOR=editor) == f"{name}/m edited\n"
    found = kubectl.get(f"{kind.lower()} m")
    assert (at(found, use.edited), found["metadata"]["generation"]) == ("two", 2)
    conflict = kubectl.fails("apply --server-side -f -", obj)
    assert 'conflict with "kubectl-edit"' in conflict
    refused = kubectl.fails("apply --server-side --force-conflicts -f -", {**obj, "spec": use.wrong})
    assert use.complaint in refused
    assert kubectl(f"delete {kind.lower()} m").startswith(f'{name} "m" deleted')


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_deleting_a_definition_deletes_its_objects(installed: Kubectl, namespace: str, kind: str) -> None:
    kubectl, name = installed.within(namespace), f"{kind.lower()}s.{GROUP}"
    obj = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "r"}, "spec": USES[kind].spec}
    kubectl("create -f -", obj)
    assert "deleted" in kubectl(f"delete crd {name}")
    assert "NotFound" in kubectl.fails(f"get {kind.lower()}s")  # kubectl still has the kind in its discovery cache
    kubectl("create -f -", a_definition(kind, DEFINITIONS[kind]()))
    wait_for(kubectl, [name])
    assert json.loads(kubectl(f"get {kind.lower()}s -o json"))["items"] == []
