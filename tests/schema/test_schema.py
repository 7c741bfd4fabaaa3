"""Compares the schemas with known facts about Kubernetes."""

from __future__ import annotations

import pytest

from ctrlmgr.schema import published_schema
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.schema.schema import MISSING, Schema

CORE = "io.k8s.api.core.v1."
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
DEFINITIONS = Definitions.builtin()


def at(definition: str, *path: str) -> Schema:
    """Return the schema of the field at a path; `[]` steps into the items of a list, `{}` into the values of a map."""
    schema = DEFINITIONS.schema(definition)
    for step in path:
        below = {"[]": schema.items, "{}": schema.values}.get(step) or schema.properties[step]
        schema = below
    return schema


@pytest.mark.parametrize(
    ("definition", "path", "kind", "format"),
    [
        (f"{CORE}Service", ("spec",), "object", ""),
        (f"{CORE}Service", ("spec", "ports"), "array", ""),
        (f"{CORE}Service", ("spec", "ports", "[]", "port"), "integer", "int32"),
        (f"{CORE}Service", ("spec", "ports", "[]", "targetPort"), "int-or-string", ""),
        (f"{CORE}Service", ("spec", "selector"), "map", ""),
        (f"{CORE}Service", ("spec", "selector", "{}"), "string", ""),
        (f"{CORE}Service", ("spec", "publishNotReadyAddresses"), "boolean", ""),
        (f"{CORE}Secret", ("data", "{}"), "string", "byte"),
        (f"{CORE}ResourceRequirements", ("limits", "{}"), "string", "quantity"),
        (f"{CORE}Event", ("eventTime",), "string", "micro-time"),
        (f"{CORE}Event", ("firstTimestamp",), "string", "date-time"),
        (f"{META}ObjectMeta", ("generation",), "integer", "int64"),
        (f"{META}ManagedFieldsEntry", ("fieldsV1",), "any", ""),
        ("io.k8s.api.apps.v1.ControllerRevision", ("data",), "any", ""),
    ],
)
def test_kinds_of_nodes(definition: str, path: tuple[str, ...], kind: str, format: str) -> None:
    schema = at(definition, *path)
    assert (schema.kind, schema.format) == (kind, format)


def test_fields_are_in_gos_order_with_embedded_structs_inlined() -> None:
    assert list(at(f"{CORE}Service").properties) == ["kind", "apiVersion", "metadata", "spec", "status"]
    volume = list(at(f"{CORE}Volume").properties)
    assert volume[:3] == ["name", "hostPath", "emptyDir"]
    assert list(at(f"{META}ObjectMeta").properties)[-1] == "managedFields"


def test_a_field_adds_to_its_definition() -> None:
    strategy = at("io.k8s.api.apps.v1.DeploymentSpec", "strategy")
    assert strategy.definition == "io.k8s.api.apps.v1.DeploymentStrategy"
    assert strategy.patch_strategy == ("retainKeys",)
    assert list(strategy.properties) == ["type", "rollingUpdate"]
    assert DEFINITIONS.schema(strategy.definition).patch_strategy == ()


def test_merge_keys_and_strategies() -> None:
    ports = at(f"{CORE}ServiceSpec", "ports")
    assert (ports.list_type, ports.list_map_keys) == ("map", ("port", "protocol"))
    assert (ports.patch_strategy, ports.patch_merge_key) == (("merge",), "port")
    assert at(f"{CORE}PodSpec", "volumes").patch_strategy == ("merge", "retainKeys")
    assert at(f"{CORE}ServiceSpec", "selector").map_type == "atomic"
    assert at(f"{META}ObjectMeta", "finalizers").list_type == "set"


def test_required_and_enumerated() -> None:
    assert at(f"{CORE}ServicePort").required == {"port"}
    assert "LoadBalancer" in at(f"{CORE}ServiceSpec", "type").enum
    assert at(f"{CORE}ServiceSpec", "type").default is MISSING


def test_go_information_of_a_field() -> None:
    container = at(f"{CORE}Container").properties
    assert (container["name"].go_type, container["name"].omitted) == ("string", False)
    assert (container["image"].go_type, container["image"].omitted) == ("string", True)
    assert (container["resources"].go_type, container["resources"].omitted) == ("v1.ResourceRequirements", False)
    assert (container["securityContext"].go_type, container["securityContext"].omitted) == ("*v1.SecurityContext", True)


def test_a_definition_can_be_recursive() -> None:
    props = at("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    assert props.properties["properties"].values is props


def test_nodes_are_shared() -> None:
    assert DEFINITIONS.schema(f"{CORE}PodSpec") is DEFINITIONS.schema(f"{CORE}PodSpec")
    assert at(f"{CORE}Pod", "spec").properties is at(f"{CORE}PodSpec").properties
    assert Definitions.builtin() is DEFINITIONS


def test_a_returned_openapi_definition_belongs_to_the_caller() -> None:
    raw = DEFINITIONS.raw(f"{CORE}ServicePort")
    assert raw["required"] == ["port"]
    raw.clear()
    assert DEFINITIONS.raw(f"{CORE}ServicePort")


def test_unknown_definitions() -> None:
    with pytest.raises(KeyError):
        DEFINITIONS.schema("io.k8s.api.core.v1.Nothing")
    assert "io.k8s.api.core.v1.Nothing" not in DEFINITIONS


def test_go_and_openapi_name_the_same_fields() -> None:
    structs = [name for name in DEFINITIONS if DEFINITIONS.schema(name).kind == "object"]
    assert len(structs) > 500
    for name in structs:
        go = published_schema.go_fields(name)
        assert go is not None
        assert {field.name for field in go} == DEFINITIONS.raw(name).get("properties", {}).keys(), name


def test_structs_are_never_omitted_when_empty() -> None:
    for name in DEFINITIONS:
        for field in DEFINITIONS.schema(name).properties.values():
            assert not (field.omitted and field.kind == "object" and not field.go_type.startswith("*")), name


def test_kinds_by_name() -> None:
    assert DEFINITIONS.by_kind["v1", "Service"] == f"{CORE}Service"
    assert DEFINITIONS.by_kind["apps/v1", "DeleteOptions"] == f"{META}DeleteOptions"
    assert ("apps/v1", "Service") not in DEFINITIONS.by_kind
