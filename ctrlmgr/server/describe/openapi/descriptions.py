"""The few words that our OpenAPI documents say about kinds, for `kubectl explain`.

The structure comes without prose and we make none up: a kind is named, and the fields that all kinds share are told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FIELDS = {
    "apiVersion": "The group and version of the API that the object is written in.",
    "kind": "The kind of the object.",
    "metadata": "What every object has: name, namespace, labels, annotations, owners.",
    "spec": "What is desired.",
    "status": "What was observed last.",
    "items": "The objects of the list.",
}
_KIND = "x-kubernetes-group-version-kind"


def described(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI v2 definition with descriptions if it is that of a kind; others are returned as they are."""
    kinds = definition.get(_KIND, ())
    if len(kinds) != 1:
        return dict(definition)
    properties = definition.get("properties", {})
    return {
        "description": _sentence(**kinds[0]),
        **definition,
        "properties": {
            name: {"description": _FIELDS[name], **field} if name in _FIELDS else field
            for name, field in properties.items()
        },
    }


def _sentence(group: str, version: str, kind: str) -> str:
    api_version = f"{group}/{version}" if group else version
    return f"{kind} of API version {api_version}, with the fields it has in Kubernetes."
