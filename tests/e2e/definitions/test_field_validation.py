"""Tests of unknown and duplicate fields of custom objects in server-side apply with `fieldValidation=Strict`."""

from __future__ import annotations

from typing import Any

from tests.e2e.definitions.crds import Crd, Schema, served, version
from tests.e2e.serving import Server

APPLY = "application/apply-patch+yaml"
STRICT = "fieldManager=field_validation_mgr&fieldValidation=Strict"

PORT: Schema = {
    "type": "object",
    "properties": {
        "containerPort": {"format": "int32", "type": "integer"},
        "hostIP": {"type": "string"},
        "hostPort": {"format": "int32", "type": "integer"},
        "name": {"type": "string"},
        "protocol": {"type": "string"},
    },
    "required": ["containerPort", "protocol"],
}
PORTS: Schema = {
    "type": "array",
    "items": PORT,
    "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
    "x-kubernetes-list-type": "map",
}
CRON = r"^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$"
"""A regular expression for cron schedules."""

REST = """
  cronSpec: "* * * * */5"
  ports:
  - name: x
    containerPort: 80
    protocol: TCP"""


def schema(properties: Schema | None = None, /, **marks: Any) -> Schema:
    known = {"foo": {"type": "string"}, "cronSpec": {"type": "string", "pattern": CRON}, "ports": PORTS}
    spec = {"type": "object", "properties": {**known, **(properties or {})}, **marks}
    return {"type": "object", "properties": {"spec": spec}}


def apply(server: Server, crd: Crd, spec: str, *, metadata: str = "", root: str = "") -> tuple[int, Any]:
    """Apply a custom object with these additional YAML lines, and delete it again."""
    text = f"""
apiVersion: {crd.group}/v1beta1
kind: {crd.kind}
metadata:
  name: mytest{metadata}
  finalizers:
  - example.com/test-finalizer{root}
spec:{spec}{REST}"""
    path = f"{crd.objects('v1beta1')}/mytest"
    code, answer = server.request("PATCH", f"{path}?{STRICT}", text, media_type=APPLY)
    if code < 300:
        assert server.request("PATCH", path, {"metadata": {"finalizers": None}})[0] == 200
    return code, answer


def both(**schema: Any) -> list[dict[str, Any]]:
    """Return two versions of a CustomResourceDefinition with the same schema; the older version is stored."""
    return [version("v1beta1", **schema), version("v1beta2", storage=False, **schema)]


def test_a_valid_object_is_applied(server: Server) -> None:
    with served(server, *both(schema=schema())) as crd:
        code, answer = apply(server, crd, "\n  foo: foo1")
        assert (code, answer["spec"]["foo"]) == (201, "foo1")


def test_unknown_fields_are_applied_without_a_schema(server: Server) -> None:
    with served(server, *both()) as crd:
        code, answer = apply(server, crd, "\n  unknown: uk1")
        assert (code, answer["spec"]["unknown"]) == (201, "uk1")


def test_extra_properties_are_refused(server: Server) -> None:
    with served(server, *both(schema=schema())) as crd:
        code, answer = apply(server, crd, "\n  foo: foo1", root="\nunknownField: unknown")
        assert (code, ".unknownField: field not declared in schema" in answer["message"]) == (500, True)


def test_unknown_metadata_is_refused_at_the_root_and_in_embedded_objects(server: Server) -> None:
    name = {"type": "object", "properties": {"name": {"type": "string"}}}
    template = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"metadata": name, "spec": {"type": "object"}},
    }
    embedding = schema({"template": template}, **{"x-kubernetes-preserve-unknown-fields": True})
    spec = """
  template:
    apiVersion: foo/v1
    kind: Sub
    metadata:
      {}name: subobject
  foo: foo1"""
    with served(server, *both(schema=embedding)) as crd:
        code, answer = apply(server, crd, spec.format(""), metadata="\n  unknownMeta: unknown")
        assert (code, ".metadata.unknownMeta: field not declared in schema" in answer["message"]) == (500, True)
        code, answer = apply(server, crd, spec.format("unknownSubMeta: unknown\n      "))
        told = ".spec.template.metadata.unknownSubMeta: field not declared in schema"
        assert (code, told in answer["message"]) == (500, True)


def test_duplicates_are_refused_where_unknown_fields_are_preserved(server: Server) -> None:
    keeping = schema(**{"x-kubernetes-preserve-unknown-fields": True})
    with served(server, *both(schema=keeping)) as crd:
        code, answer = apply(server, crd, "\n  unknown: uk1\n  foo: foo1\n  foo: foo2")
        assert (code, 'line 11: key "foo" already set in map' in answer["message"]) == (400, True)
