"""Derives the CustomResourceDefinition of a class, and checks whether a stored CustomResourceDefinition contradicts it.

Guarantees: all functions are pure; `kubectl apply` accepts the manifest. A contradiction is a difference in the scope,
the names, the version, or a field's type. The API server refuses a manifest that removes such a difference, or stored
objects would become unreadable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ctrlmgr.framework.class_declaration import Column, Declaration, declaration_of
from ctrlmgr.framework.class_schema import Schema, schema_of


def definition_of(kind: type[Any]) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind as plain data.

    Raises TypeError if the class is a view of an existing kind.
    """
    declaration = declaration_of(kind)
    if declaration.existing:
        raise TypeError(f"{declaration.where}: {declaration.label} is defined elsewhere")
    schema = schema_of(kind)
    properties = schema["properties"]
    version: dict[str, Any] = {
        "name": declaration.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        **_subresources(declaration, properties),
    }
    if declaration.columns:
        columns = [*(_column(each, schema) for each in declaration.columns), _AGE]
        version["additionalPrinterColumns"] = columns
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": str(declaration.resource)},
        "spec": {
            "group": declaration.group,
            "names": _names(declaration),
            "scope": "Namespaced" if declaration.namespaced else "Cluster",
            "versions": [version],
        },
    }


_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def _names(declaration: Declaration) -> dict[str, Any]:
    names: dict[str, Any] = {
        "plural": declaration.resource.plural,
        "singular": declaration.kind.lower(),
        "kind": declaration.kind,
        "listKind": f"{declaration.kind}List",
    }
    if declaration.short_names:
        names["shortNames"] = list(declaration.short_names)
    if declaration.categories:
        names["categories"] = list(declaration.categories)
    return names


def _subresources(declaration: Declaration, properties: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "status" in properties:
        found["status"] = {}
    if (scale := declaration.scale) is not None:
        found["scale"] = {"specReplicasPath": scale.spec, "statusReplicasPath": scale.status}
        if scale.selector:
            found["scale"]["labelSelectorPath"] = scale.selector
    return {"subresources": found} if found else {}


def _column(column: Column, schema: Schema) -> dict[str, Any]:
    found: dict[str, Any] = {"name": column.name, "type": column.type or _type_at(column.path, schema)}
    if column.description:
        found["description"] = column.description
    if column.priority:
        found["priority"] = column.priority
    return {**found, "jsonPath": column.path}


def _type_at(path: str, schema: Schema) -> str:
    for name in path.strip(".").split("."):
        schema = schema.get("properties", {}).get(name, {})
    type_ = str(schema.get("type", "string"))
    if schema.get("format") == "date-time":
        return "date"
    return type_ if type_ in ("integer", "number", "boolean") else "string"


def contradiction(stored: Mapping[str, Any], desired: Mapping[str, Any]) -> str | None:
    """Return the contradiction between a stored and the wanted CustomResourceDefinition; None if there is none."""
    have, want = stored["spec"], desired["spec"]
    if have["scope"] != want["scope"]:
        return f"its scope is {have['scope']}, not {want['scope']}"
    if have["names"]["kind"] != want["names"]["kind"]:
        return f"its kind is {have['names']['kind']}, not {want['names']['kind']}"
    version = want["versions"][0]
    versions = {each["name"]: each for each in have["versions"]}
    if version["name"] not in versions:
        return f"it has {', '.join(versions)} and no version {version['name']}"
    here = (versions[version["name"]].get("schema") or {}).get("openAPIV3Schema") or {}
    return next(_differences(here, version["schema"]["openAPIV3Schema"], ""), None)


def _differences(have: Schema, want: Schema, path: str) -> Iterator[str]:
    """Yield the fields whose types differ between two schemas.

    A field in only one of the schemas is no contradiction.
    """
    types = have.get("type"), want.get("type")
    if None not in types and types[0] != types[1]:
        yield f"{path} is of type {types[0]}, not {types[1]}"
        return
    inside, desired = have.get("properties") or {}, want.get("properties") or {}
    if inside and isinstance(want.get("additionalProperties"), dict):
        yield f"{path} has fields of its own ({', '.join(inside)}), and is no map"
    if desired and isinstance(have.get("additionalProperties"), dict):
        yield f"{path} is a map, and has no fields of its own ({', '.join(desired)})"
    for name in inside.keys() & desired.keys():
        if (path, name) != ("", "metadata"):
            yield from _differences(inside[name], desired[name], f"{path}.{name}")
    for keyword, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(have.get(keyword), dict) and isinstance(want.get(keyword), dict):
            yield from _differences(have[keyword], want[keyword], path + mark)
