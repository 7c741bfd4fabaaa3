"""Converts OpenAPI v2 documents of extension servers to OpenAPI v3, for servers that serve no OpenAPI v3.

Source: kube-openapi `pkg/openapiconv/convert.go`, `pkg/builder3/util` (`WrapRefs`). A document that does not have the
form of OpenAPI v2 raises ValueError, TypeError or AttributeError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.unstructured import Unstructured

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_KEPT: Final = ("description", "externalDocs", "tags", "summary", "deprecated", "operationId")
"""The fields of an operation that are the same in OpenAPI v2 and v3."""
_SIMPLE: Final = ("type", "format", "uniqueItems")
_PREFIXES: Final = {
    "#/definitions/": "#/components/schemas/",
    "#/parameters/": "#/components/parameters/",
    "#/responses/": "#/components/responses/",
}


def as_v3(document: Mapping[str, Any]) -> Unstructured:
    """Return an OpenAPI v2 document as an OpenAPI v3 document."""
    produces = document.get("produces") or ()
    components = {
        "schemas": {name: _schema(each) for name, each in (document.get("definitions") or {}).items()},
        "securitySchemes": {
            name: _security(each) for name, each in (document.get("securityDefinitions") or {}).items()
        },
        "responses": {name: _response(each, produces) for name, each in (document.get("responses") or {}).items()},
    }
    return {
        "openapi": "3.0.0",
        **{name: document[name] for name in ("info", "externalDocs") if name in document},
        "paths": {path: _path(item) for path, item in (document.get("paths") or {}).items()},
        "components": {name: each for name, each in components.items() if each},
    }


def _path(item: Mapping[str, Any]) -> Unstructured:
    found = {**_extensions(item), **{method: _operation(item[method]) for method in _METHODS if item.get(method)}}
    if "$ref" in item:
        found["$ref"] = item["$ref"]
    if item.get("parameters"):
        found["parameters"] = [_parameter(each) for each in item["parameters"]]
    return found


def _operation(operation: Mapping[str, Any]) -> Unstructured:
    produces = operation.get("produces") or ()
    found = {**_extensions(operation), **{name: operation[name] for name in _KEPT if name in operation}}
    others = []
    for each in operation.get("parameters") or ():
        if each.get("name") == "body" and each.get("schema") is not None:
            found["requestBody"] = _content(each["schema"], operation.get("consumes") or ())
        else:
            others.append(_parameter(each))
    if others:
        found["parameters"] = others
    responses = operation.get("responses") or {}
    found["responses"] = {
        code: each if code.startswith("x-") else _response(each, produces) for code, each in responses.items()
    }
    return found


def _response(response: Mapping[str, Any], produces: Sequence[str]) -> Unstructured:
    found = {**_extensions(response), "description": response.get("description", "")}
    if "$ref" in response:
        return {"$ref": _reference(response["$ref"])}
    return {**found, **_content(response["schema"], produces)} if response.get("schema") is not None else found


def _content(schema: Mapping[str, Any], types: Sequence[str]) -> Unstructured:
    return {"content": {each: {"schema": _schema(schema)} for each in types}} if types else {}


def _parameter(parameter: Mapping[str, Any]) -> Unstructured:
    if "$ref" in parameter:
        return {"$ref": _reference(parameter["$ref"])}
    names = ("name", "description", "in", "required", "allowEmptyValue")
    schema = parameter.get("schema")
    simple = {name: parameter[name] for name in _SIMPLE if name in parameter}
    found = {name: parameter[name] for name in names if name in parameter}
    return {**_extensions(parameter), **found, "schema": simple if schema is None else _schema(schema)}


def _schema(schema: Mapping[str, Any]) -> Unstructured:
    """Return an OpenAPI v2 schema in the form of OpenAPI v3.

    Wrap a reference that has sibling fields, because OpenAPI v3 ignores fields beside a reference.
    """
    found = dict(schema)
    if "properties" in found:
        found["properties"] = {name: _schema(each) for name, each in found["properties"].items()}
    for name in ("items", "additionalProperties", "additionalItems"):
        if isinstance(each := found.get(name), dict):
            found[name] = _schema(each)
        elif isinstance(each, list):
            found[name] = [_schema(one) for one in each]
    if "$ref" in found:
        reference = {"$ref": _reference(found.pop("$ref"))}
        return {**found, "allOf": [reference]} if found else reference
    return found


def _security(scheme: Mapping[str, Any]) -> Unstructured:
    names = ("description", "type", "name", "in")
    found = {**_extensions(scheme), **{name: scheme[name] for name in names if name in scheme}}
    if scheme.get("flow"):
        urls = {name: scheme[name] for name in ("authorizationUrl", "tokenUrl", "scopes") if name in scheme}
        found["flows"] = {scheme["flow"]: urls}
    return found


def _extensions(node: Mapping[str, Any]) -> Unstructured:
    return {name: value for name, value in node.items() if name.startswith("x-")}


def _reference(reference: str) -> str:
    for old, new in _PREFIXES.items():
        if reference.startswith(old):
            return new + reference.removeprefix(old)
    return reference
