"""Tests of custom kinds in the OpenAPI v2 document, and of kubectl's use of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tests.e2e.definitions.crds import JSON_PATCH, Crd, Schema, served, version
from tests.e2e.kubectl import Kubectl
from tests.e2e.serving import Server, until

ADDED = ("apiVersion", "kind", "metadata")
"""Fields that objects of every kind have, and that no schema in a CustomResourceDefinition contains."""


def an_object(description: str, /, **properties: Schema) -> dict[str, Any]:
    return {"description": description, "type": "object", "properties": properties}


def text(description: str, **marks: Any) -> dict[str, Any]:
    return {"description": description, "type": "string", **marks}


def a_list(description: str, item: Schema) -> dict[str, Any]:
    return {"description": description, "type": "array", "items": item}


BAR = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": text("Name of Bar."),
        "age": text("Age of Bar."),
        "feeling": text("Whether Bar is feeling great.", enum=["Great", "Down"]),
        "bazs": a_list("List of Bazs.", {"type": "string"}),
    },
}
BAR_STATUS = {
    "type": "object",
    "properties": {
        "name": text("Name of Bar."),
        "available": {"description": "Whether the Bar is installed.", "type": "boolean"},
        "quxType": text("Indicates to external qux type.", pattern="in-tree|out-of-tree"),
    },
}
FOO = an_object(
    "Foo CRD for Testing",
    spec=an_object("Specification of Foo", bars=a_list("List of Bars and their specs.", BAR)),
    status=an_object("Status of Foo", bars=a_list("List of Bars and their statuses.", BAR_STATUS)),
)
WALDO = an_object(
    "Waldo CRD for Testing",
    spec=an_object("Specification of Waldo", dummy={"description": "Dummy property.", "type": "object"}),
    status=an_object("Status of Waldo", bars=a_list("List of Bars and their statuses.", {"type": "object"})),
)
KEEPS = {"x-kubernetes-preserve-unknown-fields": True}


def published(server: Server, crd: Crd, version: str) -> Any:
    """Return the schema of a version in the OpenAPI document, without the fields of every kind; return None if the
    document has no such schema.
    """
    definitions = server.request("GET", "/openapi/v2")[1]["definitions"]
    name = ".".join([*reversed(crd.group.split(".")), version, crd.kind])
    if name not in definitions:
        return None
    schema = definitions[name]
    (kind,) = schema.pop("x-kubernetes-group-version-kind")
    assert kind == {"group": crd.group, "version": version, "kind": crd.kind}
    properties = {k: v for k, v in schema.pop("properties", {}).items() if k not in ADDED}
    return {**schema, "properties": properties} if properties else schema


def check(server: Server, crd: Crd, versions: Iterable[str], schema: Any) -> None:
    for each in versions:
        until(lambda each=each: published(server, crd, each) == schema)


def accepted(kubectl: Kubectl, crd: Crd, obj: Any) -> None:
    """Create an object, delete it, apply it, and delete it again; kubectl and the server validate each manifest."""
    for verb, done in (("create", "created"), ("apply", "created")):
        assert done in kubectl(f"{verb} --validate=strict -f -", obj)
        assert "deleted" in kubectl(f"delete {crd.plural} {obj['metadata']['name']}")


def explained(kubectl: Kubectl, path: str, pattern: str) -> None:
    shown = kubectl(f"explain {path}")
    assert re.search(pattern, shown, re.DOTALL), shown


def test_a_schema_is_published_validates_and_is_explained(server: Server, kubectl: Kubectl) -> None:
    with served(server, version(schema=FOO), scope="Namespaced") as crd:
        check(server, crd, ["v1"], FOO)
        accepted(kubectl, crd, crd.object("foo", spec={"bars": [{"name": "test-bar"}]}))
        for bad, told in (
            ({"bars": [{"name": "b", "feeling": "Bad"}]}, 'spec.bars[0].feeling: Unsupported value: "Bad"'),
            ({"foo": True}, 'unknown field "spec.foo"'),
            ({"bars": [{"age": "10"}]}, "spec.bars[0].name: Required value"),
        ):
            for verb in ("create", "apply"):
                assert told in kubectl.fails(f"{verb} -f -", crd.object("foo", spec=bad))
        root = "DESCRIPTION:.*Foo CRD for Testing.*FIELDS:.*apiVersion.*<string>.*APIVersion defines"
        explained(kubectl, crd.plural, f"{root}.*spec.*<Object>.*Specification of Foo")
        times = "creationTimestamp.*<string>.*CreationTimestamp is a timestamp"
        explained(kubectl, f"{crd.plural}.metadata", f"DESCRIPTION:.*Standard object's metadata.*FIELDS:.*{times}")
        spec = r"DESCRIPTION:.*Specification of Foo.*FIELDS:.*bars.*<\[\]Object>.*List of Bars and their specs"
        explained(kubectl, f"{crd.plural}.spec", spec)
        bars = r"bars.*<\[\]Object>.*DESCRIPTION:.*List of Bars and their specs.*FIELDS:.*bazs.*<\[\]string>"
        explained(kubectl, f"{crd.plural}.spec.bars", f"{bars}.*List of Bazs.*name.*<string>.*Name of Bar")
        assert 'field "bars2" does not exist' in kubectl.fails(f"explain {crd.plural}.spec.bars2")
    until(lambda: published(server, crd, "v1") is None)


def test_without_a_schema_all_fields_are_valid(server: Server, kubectl: Kubectl) -> None:
    with served(server, scope="Namespaced") as crd:
        check(server, crd, ["v1"], {"type": "object"})
        accepted(kubectl, crd, crd.object("cr", a={"b": [{"c": "d"}]}))
        explained(kubectl, crd.plural, "DESCRIPTION:.*<empty>")


def test_a_preserving_root_accepts_all_fields(server: Server, kubectl: Kubectl) -> None:
    schema = {**WALDO, "description": "keeps all at the root", **KEEPS}
    with served(server, version(schema=schema), scope="Namespaced") as crd:
        until(lambda: published(server, crd, "v1") is not None)
        accepted(kubectl, crd, crd.object("cr", a={"b": [{"c": "d"}]}))
        explained(kubectl, crd.plural, f"KIND:.*{crd.kind}")


def test_a_preserving_field_accepts_all_fields(server: Server, kubectl: Kubectl) -> None:
    spec = {**WALDO["properties"]["spec"], **KEEPS}
    properties = {**WALDO["properties"], "spec": spec}
    schema = {**WALDO, "description": "keeps all in a nested field", "properties": properties}
    with served(server, version(schema=schema), scope="Namespaced") as crd:
        until(lambda: published(server, crd, "v1") is not None)
        accepted(kubectl, crd, crd.object("cr", spec={"b": [{"c": "d"}]}))
        explained(kubectl, crd.plural, "DESCRIPTION:.*keeps all in a nested field")


def test_definitions_of_different_groups_are_published(server: Server) -> None:
    foo, waldo = version(schema=FOO), version("v1beta1", WALDO)
    with served(server, foo) as first, served(server, waldo) as second:
        assert first.group != second.group
        check(server, second, ["v1beta1"], WALDO)
        check(server, first, ["v1"], FOO)
    until(lambda: (published(server, first, "v1"), published(server, second, "v1beta1")) == (None, None))


def assert_published_together(server: Server, namespace: str, *versions: str) -> None:
    group = f"{namespace}.example.com"
    foo, waldo = version(versions[0], FOO), version(versions[1], WALDO)
    with served(server, foo, group=group) as first, served(server, waldo, group=group) as second:
        check(server, second, versions[1:], WALDO)
        check(server, first, versions[:1], FOO)
    until(lambda: (published(server, first, versions[0]), published(server, second, versions[1])) == (None, None))


def test_definitions_of_one_group_and_version_are_published(server: Server, namespace: str) -> None:
    assert_published_together(server, namespace, "v6", "v6")


def test_different_versions_of_one_group_are_published(server: Server, namespace: str) -> None:
    with served(server, version("v2", FOO), version("v3", FOO, storage=False)) as crd:
        check(server, crd, ["v2", "v3"], FOO)
    until(lambda: (published(server, crd, "v2"), published(server, crd, "v3")) == (None, None))
    assert_published_together(server, namespace, "v4", "v5")


def test_a_renamed_version_is_published_under_its_new_name(server: Server) -> None:
    with served(server, version("v2", FOO), version("v3", FOO, storage=False)) as crd:
        check(server, crd, ["v2", "v3"], FOO)
        rename = [
            {"op": "test", "path": "/spec/versions/1/name", "value": "v3"},
            {"op": "replace", "path": "/spec/versions/1/name", "value": "v4"},
        ]
        assert server.request("PATCH", crd.path, rename, media_type=JSON_PATCH)[0] == 200
        check(server, crd, ["v4"], FOO)
        until(lambda: published(server, crd, "v3") is None)
        check(server, crd, ["v2"], FOO)


def test_an_unserved_version_is_not_published(server: Server) -> None:
    with served(server, version("v5", FOO), version("v6alpha1", FOO, storage=False)) as crd:
        check(server, crd, ["v5", "v6alpha1"], FOO)
        obj = server.request("GET", crd.path)[1]
        obj["spec"]["versions"][1]["served"] = False
        assert server.request("PUT", crd.path, obj)[0] == 200
        until(lambda: published(server, crd, "v6alpha1") is None)
        check(server, crd, ["v5"], FOO)
