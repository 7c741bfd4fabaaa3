"""Converts the objects that a controller writes to manifests: plain data without fields that the server sets.

Guarantees: all functions are pure; they depend on their arguments alone. A manifest contains only the author's fields,
as server-side apply requires.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.framework.class_declaration import Declaration, declaration_of
from ctrlmgr.framework.typed_kinds import Kind, Untyped

Fields: TypeAlias = dict[str, Any]
Child: TypeAlias = "Kind | Untyped | Mapping[str, Any]"

_OURS = ("name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences")
"""The metadata fields that the author of an object sets."""


def declared(child: Child) -> Declaration:
    """Return the kind of an object to write; raises TypeError if the object has no kind."""
    if isinstance(child, Kind):
        return declaration_of(type(child))
    fields = child.fields if isinstance(child, Untyped) else child
    try:
        return declaration_of(f"{fields['apiVersion']}/{fields['kind']}")
    except KeyError as error:
        raise TypeError(f"a manifest has no {error.args[0]}") from error


def manifest(child: Child) -> Fields:
    """Return the fields that an object's author sets: all except the status and the fields that the server sets."""
    declaration = declared(child)
    fields = plain(child.fields if isinstance(child, Untyped) else child)
    metadata = {name: value for name, value in fields.pop("metadata", {}).items() if name in _OURS and value}
    for name in ("apiVersion", "kind", "status"):
        fields.pop(name, None)
    return {"apiVersion": declaration.api_version, "kind": declaration.kind, "metadata": metadata, **fields}


def plain(value: Any) -> Any:
    """Return a struct as JSON values, without the fields that are None."""
    return _without_nulls(msgspec.to_builtins(value, str_keys=True))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def owner_reference(owner: Object, declaration: Declaration) -> Fields:
    """Return an owner reference to an object that is the controller of another object (`metav1.NewControllerRef`)."""
    return {
        "apiVersion": declaration.api_version,
        "kind": declaration.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned(fields: Fields, owner: Object, declaration: Declaration) -> Fields:
    """Return a manifest with an owner reference; raises ValueError if Kubernetes forbids this owner.

    A namespaced owner must be in the namespace of the manifest (`controllerutil.SetControllerReference`).
    """
    metadata = dict(fields["metadata"])
    if owner.namespace and metadata.get("namespace", owner.namespace) != owner.namespace:
        raise ValueError(
            f"{fields['kind']} {metadata['namespace']}/{metadata.get('name')} cannot be owned from namespace"
            f" {owner.namespace}: apply it with owned=False"
        )
    others = [each for each in metadata.get("ownerReferences", ()) if each.get("uid") != owner.uid]
    return {**fields, "metadata": {**metadata, "ownerReferences": [*others, owner_reference(owner, declaration)]}}


def to_object(fields: Mapping[str, Any], resource: Resource) -> Object:
    """Return a manifest as an object of a resource, whose plural may be irregular."""
    obj = Object.from_dict(fields)
    return obj if obj.resource == resource else Object(resource, obj.body, obj.revision)


def says(current: Any, desired: Any) -> bool:
    """Return whether `current` contains all fields of `desired`.

    Lists are compared item by item, and must have the same length.
    """
    if isinstance(desired, dict):
        return isinstance(current, dict) and all(
            name in current and says(current[name], each) for name, each in desired.items()
        )
    if isinstance(desired, list):
        return (
            isinstance(current, list)
            and len(current) == len(desired)
            and all(says(have, want) for have, want in zip(current, desired, strict=True))
        )
    return bool(current == desired)
