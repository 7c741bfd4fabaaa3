"""kubectl and kinds as large as well-known operators': it installs, explains, gets, applies, edits and deletes them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.kubectl import Kubectl
from tests.extensions.operators import DEFINITIONS, a_definition

GROUP = "operators.example.com"


@pytest.fixture(scope="module")
def installed(anywhere: Kubectl) -> Iterator[Kubectl]:
    """All five, one of them of more than half a megabyte, until the tests are over."""
    definitions = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [a_definition(k, DEFINITIONS[k]()) for k in DEFINITIONS],
    }
    made = anywhere("apply --server-side -f -", definitions)
    assert made.count("serverside-applied") == len(DEFINITIONS)
    anywhere(f"wait --for condition=established --timeout=30s crd {' '.join(names())}")
    yield anywhere
    anywhere(f"delete crd {' '.join(names())} --ignore-not-found")
    assert GROUP not in anywhere("get crd -o name")


def names() -> list[str]:
    return [f"{kind.lower()}s.{GROUP}" for kind in DEFINITIONS]


def test_explain_knows_their_fields(installed: Kubectl) -> None:
    shown = installed("explain monitorings.spec.role3.containers.ports")
    assert "KIND:       Monitoring" in shown
    assert "containerPort\t<integer> -required-" in shown


def test_an_object_is_applied_read_edited_and_deleted(installed: Kubectl, namespace: str, editor: str) -> None:
    kubectl = installed.within(namespace)
    spec = {"role3": {"containers": [{"name": "c", "image": "one", "ports": [{"containerPort": 80}]}]}}
    obj = {"apiVersion": f"{GROUP}/v1", "kind": "Monitoring", "metadata": {"name": "m"}, "spec": spec}
    assert kubectl("apply --server-side -f -", obj) == f"monitoring.{GROUP}/m serverside-applied\n"
    assert kubectl("get monitorings").split()[:3] == ["NAME", "READY", "AGE"]
    container = kubectl.get("monitoring m")["spec"]["role3"]["containers"][0]
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert kubectl("edit monitoring m", KUBE_EDITOR=editor) == f"monitoring.{GROUP}/m edited\n"
    assert kubectl.get("monitoring m")["spec"]["role3"]["containers"][0]["image"] == "two"
    obj["spec"] = {"role3": {"containers": [{"name": 3}]}}
    assert ".spec.role3.containers" in kubectl.fails("apply --server-side -f -", obj)
    assert kubectl("delete monitoring m").startswith(f'monitoring.{GROUP} "m" deleted')


def test_deleting_a_definition_deletes_its_objects(installed: Kubectl, namespace: str) -> None:
    kubectl = installed.within(namespace)
    kubectl("create -f -", {"apiVersion": f"{GROUP}/v1", "kind": "Route", "metadata": {"name": "r"}, "spec": {}})
    assert "deleted" in kubectl(f"delete crd routes.{GROUP}")
    assert "NotFound" in kubectl.fails("get routes")  # which it still has in its cache
    again = a_definition("Route", DEFINITIONS["Route"]())
    kubectl("create -f -", again)
    kubectl(f"wait --for condition=established --timeout=30s crd routes.{GROUP}")
    assert json.loads(kubectl("get routes -o json"))["items"] == []
