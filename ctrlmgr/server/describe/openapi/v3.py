"""Creates the OpenAPI v3 document of each group version, with only the schemas that its paths and kinds need.

The v3 documents differ from the v2 document in the same way as in kube-openapi (`pkg/openapiconv`, `pkg/builder3`).
Schemas are components of the document, and a reference with siblings becomes an `allOf`. Request and response bodies
have one schema for each media type. Parameters are inlined, because kubectl searches the parameters for
`fieldValidation` and does not follow references.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.schema import published_schema
from ctrlmgr.server.describe.document import in_pieces
from ctrlmgr.server.describe.openapi.descriptions import described
from ctrlmgr.server.describe.openapi.paths import METHODS, Node, section, served_paths
from ctrlmgr.server.describe.openapi.v2 import TITLE
from ctrlmgr.server.describe.version_info import git_version

_V2_SCHEMAS, _V3_SCHEMAS = "#/definitions/", "#/components/schemas/"
_REFERENCE = re.compile(rb'"#/components/schemas/([^"]+)"')
_UNTYPED_IN_V2: Mapping[str, Any] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
}
"""Schemas that OpenAPI v2 cannot express."""


class Sections:
    """The OpenAPI v3 documents by name: `api/v1`, `apis/apps`, `version`.

    Each document is created when it is first requested.
    """

    def __init__(self, kinds: Kinds) -> None:
        """Create documents that describe `kinds`."""
        self._kinds = kinds
        self._schemas: dict[str, msgspec.Raw] = {}
        self._custom = _by_section(kinds)

    def renew(self) -> set[str]:
        """Read the current custom kinds; return the names of the documents that have changed."""
        before, self._custom = self._custom, _by_section(self._kinds)
        return {name for name in before.keys() | self._custom.keys() if before.get(name) != self._custom.get(name)}

    @property
    def names(self) -> Sequence[str]:
        """The names of the OpenAPI v3 documents, sorted."""
        return sorted(self._paths.keys() | self._custom.keys())

    @cached_property
    def _paths(self) -> Mapping[str, Mapping[str, Node]]:
        paths: dict[str, dict[str, Node]] = {}
        for path, item in served_paths(self._kinds).items():
            paths.setdefault(section(path), {})[path] = item
        return paths

    @cached_property
    def _roots(self) -> Mapping[str, list[str]]:
        """The definitions of the kinds, by document.

        A document includes the definitions of its kinds even if no path refers to them.
        """
        roots: dict[str, list[str]] = {}
        for kind in self._kinds:
            if kind.document is not None:
                continue
            prefix = "apis" if kind.gvk.group else "api"
            roots.setdefault(f"{prefix}/{kind.gvk.api_version}", []).append(kind.definition)
        return roots

    def encode(self, name: str) -> bytes:
        """Return a document as JSON; raises KeyError if no document has this name."""
        custom = [kind.document for kind in self._custom.get(name, ()) if kind.document is not None]
        if not custom and name not in self._paths:
            raise KeyError(name)
        items = {**self._paths.get(name, {}), **{path: item for each in custom for path, item in each.paths().items()}}
        paths = in_pieces({path: _path_item(item) for path, item in items.items()})
        own = {name: _encoded(node) for each in custom for name, node in each.definitions(v2=False).items()}
        roots = [each.decode() for item in paths.values() for each in _REFERENCE.findall(bytes(item))]
        schemas = self._closure([*roots, *self._roots.get(name, ()), *own], own)
        return msgspec.json.encode(
            {
                "openapi": "3.0.0",
                "info": {"title": TITLE, "version": git_version()},
                "paths": paths,
                "components": {
                    "schemas": {name: schemas[name] for name in sorted(schemas)},
                    "securitySchemes": published_schema.openapi()["securityDefinitions"],
                },
                "security": published_schema.openapi()["security"],
            }
        )

    def _closure(self, names: list[str], own: Mapping[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
        """Return these schemas and, recursively, all schemas to which they refer.

        `own` are the schemas of custom kinds.
        """
        found: dict[str, msgspec.Raw] = {}
        while names:
            name = names.pop()
            if name not in found:
                found[name] = own.get(name) or self._schema(name)
                names += [each.decode() for each in _REFERENCE.findall(bytes(found[name]))]
        return found

    def _schema(self, name: str) -> msgspec.Raw:
        if name not in self._schemas:
            definition = _UNTYPED_IN_V2.get(name) or _schema(described(name, self._kinds.definitions.raw(name)))
            self._schemas[name] = msgspec.Raw(msgspec.json.encode(definition))
        return self._schemas[name]


def _by_section(kinds: Kinds) -> Mapping[str, list[Kind]]:
    """Return the custom kinds by the names of their documents."""
    sections: dict[str, list[Kind]] = {}
    for kind in kinds.custom():
        sections.setdefault(f"apis/{kind.gvk.api_version}", []).append(kind)
    return sections


def _encoded(node: Node) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(_schema(node)))


def _schema(node: Node) -> dict[str, Any]:
    """Convert a schema from OpenAPI v2 to v3."""
    rest = {key: _part(key, value) for key, value in node.items() if key != "$ref"}
    if "$ref" not in node:
        return rest
    reference = {"$ref": node["$ref"].replace(_V2_SCHEMAS, _V3_SCHEMAS)}
    return {"allOf": [reference], **rest} if rest else reference


def _part(key: str, value: Any) -> Any:
    if key == "properties":
        return {name: _schema(field) for name, field in value.items()}
    return _schema(value) if key in ("items", "additionalProperties") and isinstance(value, Mapping) else value


def _path_item(item: Node) -> dict[str, Any]:
    operations: dict[str, Any] = {key: _operation(each) for key, each in item.items() if key in METHODS}
    if "parameters" in item:
        operations["parameters"] = [_parameter(_resolved(each)) for each in item["parameters"]]
    return operations


def _operation(operation: Node) -> dict[str, Any]:
    parameters = [_resolved(each) for each in operation.get("parameters", ())]
    kept = {
        key: value
        for key, value in operation.items()
        if key in ("description", "operationId", "tags") or key.startswith("x-")
    }
    others = [_parameter(each) for each in parameters if each["in"] != "body"]
    if others:
        kept["parameters"] = others
    for body in parameters:
        if body["in"] == "body":
            required = {"required": True} if body.get("required") else {}
            kept["requestBody"] = {"content": _content(operation["consumes"], body["schema"]), **required}
    responses = operation["responses"].items()
    kept["responses"] = {code: _response(each, operation["produces"]) for code, each in responses}
    return kept


def _resolved(parameter: Node) -> Node:
    reference = parameter.get("$ref")
    resolved: Node = published_schema.openapi()["parameters"][reference.rpartition("/")[2]] if reference else parameter
    return resolved


def _parameter(parameter: Node) -> dict[str, Any]:
    """Convert a parameter from OpenAPI v2 to v3.

    In v2, the parameter itself contains the type; in v3, its schema contains the type.
    """
    kept = {key: value for key, value in parameter.items() if key in ("name", "in", "description", "required")}
    return {**kept, "schema": {key: value for key, value in parameter.items() if key not in kept}}


def _response(response: Node, produces: Iterable[str]) -> dict[str, Any]:
    converted = {"description": response["description"]}
    return {**converted, "content": _content(produces, response["schema"])} if "schema" in response else converted


def _content(media_types: Iterable[str], schema: Node) -> dict[str, Any]:
    return {media_type: {"schema": _schema(schema)} for media_type in media_types}
