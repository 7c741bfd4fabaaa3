"""Custom kinds whose schemas use every keyword that the generation knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.extensions.definition import Definition, Version, parse

QUANTITY = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE])?$"
PORT = {
    "type": "object",
    "required": ["name", "port"],
    "properties": {
        "name": {"type": "string", "maxLength": 15},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535},
    },
}
SPEC: Mapping[str, Any] = {
    "type": "object",
    "required": ["replicas", "size", "version"],
    "x-kubernetes-validations": [
        {"rule": "self.minimum <= self.maximum"},
        {"rule": "self.mode != 'large' || self.replicas >= 3"},
        {"rule": "!has(oldSelf.storageClass) || has(self.storageClass)", "message": "storageClass stays"},
    ],
    "properties": {
        "replicas": {"type": "integer", "minimum": 1, "maximum": 9, "format": "int32"},
        "size": {"x-kubernetes-int-or-string": True, "pattern": QUANTITY},
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
        "mode": {"type": "string", "enum": ["small", "large"], "default": "small"},
        "minimum": {"type": "integer", "default": 1},
        "maximum": {"type": "integer", "default": 5},
        "ratio": {"type": "number", "minimum": 0, "exclusiveMaximum": True, "maximum": 1, "multipleOf": 0.25},
        "storageClass": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
        "ports": {
            "type": "array",
            "maxItems": 4,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": PORT,
        },
        "zones": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}, "minItems": 1},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 2},
        "backup": {
            "type": "object",
            "nullable": True,
            "properties": {
                "schedule": {"type": "string", "minLength": 9},
                "to": {"type": "string", "format": "uri"},
                "paused": {"type": "boolean"},
                "free": {"x-kubernetes-preserve-unknown-fields": True},
            },
        },
    },
}


def kind_of(spec: Mapping[str, Any], **root: Any) -> tuple[Definition, Version]:
    """Return a namespaced kind `Widget` with this schema of its `spec`."""
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}, **root}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"plural": "widgets", "kind": "Widget"}
    body = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definition = parse({"metadata": {"name": "widgets.example.com"}, "spec": body})
    return definition, definition.versions["v1"]
