"""Tests of field managers that write one object in different API versions: each manager owns fields in its own version.

The expected values are recorded responses of Kubernetes 1.36.2.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.controllers.customresourcedefinitions.defined import GROUP, DefinedStage, definition, version
from tests.engine.stage import Response, Stage

MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
WHOLE_TARGET: dict[str, Any] = {"f:apiVersion": {}, "f:kind": {}, "f:name": {}}
FULL = {"scaleTargetRef": TARGET, "maxReplicas": 5}


def cpu(utilization: int) -> list[dict[str, Any]]:
    target = {"type": "Utilization", "averageUtilization": utilization}
    return [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def owned(response: Response) -> dict[str, Any]:
    assert response.code in (200, 201), response.body
    return {each["manager"]: each["fieldsV1"]["f:spec"] for each in response.body["metadata"]["managedFields"]}


class VersionedAutoscaler:
    """A HorizontalPodAutoscaler that is applied and changed in both API versions."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.stage.namespace("shop")

    def path(self, api_version: str) -> str:
        return f"/apis/autoscaling/{api_version}/namespaces/shop/horizontalpodautoscalers/x"

    def apply(self, api_version: str, manager: str, **spec: Any) -> Response:
        kind = {"apiVersion": f"autoscaling/{api_version}", "kind": "HorizontalPodAutoscaler"}
        body = {**kind, "metadata": {"name": "x"}, "spec": spec}
        query = {"fieldManager": manager}
        return self.stage.send("PATCH", self.path(api_version), body, media_type=APPLY, query=query)

    def merge(self, api_version: str, manager: str, **spec: Any) -> Response:
        query = {"fieldManager": manager}
        return self.stage.send("PATCH", self.path(api_version), {"spec": spec}, media_type=MERGE, query=query)


@pytest.fixture
def scalers() -> VersionedAutoscaler:
    return VersionedAutoscaler()


def test_an_update_takes_changed_fields_from_an_applier_of_the_older_version(scalers: VersionedAutoscaler) -> None:
    scalers.apply("v1", "a", **FULL, targetCPUUtilizationPercentage=60)
    changed = scalers.merge("v2", "upd", metrics=cpu(61))
    assert owned(changed) == {"a": {"f:maxReplicas": {}, "f:scaleTargetRef": {}}, "upd": {"f:metrics": {}}}
    again = scalers.apply("v1", "a", **FULL, targetCPUUtilizationPercentage=60)
    assert again.message == 'Apply failed with 1 conflict: conflict with "upd" using autoscaling/v2: .spec.metrics'
    assert scalers.stage.send("GET", scalers.path("v2")).body["spec"]["metrics"] == cpu(61)


def test_an_update_takes_changed_fields_from_an_applier_of_the_newer_version(scalers: VersionedAutoscaler) -> None:
    behavior = {"scaleUp": {"stabilizationWindowSeconds": 3}}
    scalers.apply("v2", "a", **FULL, metrics=cpu(61), behavior=behavior)
    changed = owned(scalers.merge("v1", "upd", targetCPUUtilizationPercentage=90))
    assert changed["upd"] == {"f:targetCPUUtilizationPercentage": {}}
    assert changed["a"] == {
        "f:behavior": {"f:scaleUp": {"f:stabilizationWindowSeconds": {}}},
        "f:maxReplicas": {},
        "f:scaleTargetRef": WHOLE_TARGET,
    }
    other = scalers.apply("v1", "c", targetCPUUtilizationPercentage=91)
    assert other.message == (
        'Apply failed with 1 conflict: conflict with "upd" using autoscaling/v1: .spec.targetCPUUtilizationPercentage'
    )
    given_up = scalers.apply("v2", "a", **FULL)
    assert owned(given_up)["a"] == {"f:maxReplicas": {}, "f:scaleTargetRef": WHOLE_TARGET}
    assert given_up.body["spec"] == {**FULL, "minReplicas": 1, "metrics": cpu(90)}


def test_an_applier_of_a_newer_version_owns_its_fields_there(scalers: VersionedAutoscaler) -> None:
    scalers.apply("v1", "a", **FULL, targetCPUUtilizationPercentage=60)
    moved = scalers.apply("v2", "a", **FULL)
    assert owned(moved) == {"a": {"f:maxReplicas": {}, "f:scaleTargetRef": WHOLE_TARGET}}
    assert moved.body["spec"]["metrics"] == cpu(60)


class VersionedKindStage(DefinedStage):
    """A custom kind with a list that is a set in v1, the stored version, and atomic in v2; v2 also has an additional
    field.
    """

    def __init__(self) -> None:
        super().__init__()
        string = {"type": "string"}
        items = {"type": "array", "items": string}
        versions = [
            version("v1", schema=_schema(a=string, l={**items, "x-kubernetes-list-type": "set"})),
            version("v2", schema=_schema(a=string, b={**string, "default": "x"}, l=items), storage=False),
        ]
        self.define(definition(versions=versions))

    def path(self, api_version: str) -> str:
        return f"/apis/{GROUP}/{api_version}/namespaces/shop/widgets/o"

    def apply(self, api_version: str, manager: str, spec: dict[str, Any], *, force: bool = False) -> Response:
        body = {"apiVersion": f"{GROUP}/{api_version}", "kind": "Widget", "metadata": {"name": "o"}, "spec": spec}
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        return self.send("PATCH", self.path(api_version), body, media_type=APPLY, query=query)


def _schema(**fields: Any) -> dict[str, Any]:
    return {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}}


def test_versions_of_a_custom_kind_are_compared_by_their_schemas() -> None:
    stage = VersionedKindStage()
    stage.apply("v1", "m1", {"a": "1", "l": ["x", "y"]})
    assert stage.apply("v2", "m2", {"a": "2", "l": ["y", "z"]}).message == (
        'Apply failed with 1 conflict: conflict with "m1": .spec.a'
    )
    forced = stage.apply("v2", "m2", {"a": "2", "l": ["y", "z"]}, force=True)
    assert owned(forced) == {"m1": {"f:l": {'v:"y"': {}}}, "m2": {"f:a": {}, "f:l": {}}}
    refused = stage.apply("v1", "m1", {"l": ["q"]})
    assert refused.message == 'Apply failed with 1 conflict: conflict with "m2": .spec.l'
    assert stage.send("GET", stage.path("v1")).body["spec"] == {"a": "2", "l": ["y", "z"]}


def test_an_object_without_a_declared_version_cannot_be_applied() -> None:
    stage = VersionedKindStage()
    stage.apply("v1", "m1", {"a": "1"})
    undeclared = ".spec.b: field not declared in schema"
    refused = stage.apply("v2", "m1", {"b": "k"})
    assert (refused.code, refused.message) == (
        500,
        f"failed to prune fields: failed to convert merged object to last applied version: {undeclared}",
    )
    refused = stage.apply("v2", "m2", {"b": "k"})
    assert refused.message == f"failed to convert new object: {undeclared}"
    assert owned(stage.send("GET", stage.path("v1"))) == {"m1": {"f:a": {}}}


def test_an_update_with_undeclared_fields_drops_their_managers() -> None:
    stage = VersionedKindStage()
    stage.apply("v1", "m1", {"a": "1"})
    updated = stage.send("PATCH", stage.path("v2"), {"spec": {"b": "k"}}, media_type=MERGE)
    assert updated.code == 200
    assert "managedFields" not in updated.body["metadata"]


def test_a_value_that_became_atomic_has_no_managed_descendants() -> None:
    stage = VersionedKindStage()
    stage.apply("v1", "m1", {"a": "1", "l": ["x", "y"]})
    string = {"type": "string"}
    schema = _schema(a=string, l={"type": "array", "items": string})
    stage.redefine({"spec": {"versions": [version("v1", schema=schema)]}})
    applied = stage.apply("v1", "m2", {"a": "1"})
    assert owned(applied) == {"m1": {"f:a": {}, "f:l": {}}, "m2": {"f:a": {}}}
    refused = stage.apply("v1", "m2", {"a": "1", "l": ["z"]})
    assert refused.message == 'Apply failed with 1 conflict: conflict with "m1": .spec.l'
