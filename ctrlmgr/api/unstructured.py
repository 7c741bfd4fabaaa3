"""The mutable form of an object, for code that changes one: plain dicts and lists as JSON decodes to.

`api.object.Object` is what is stored and shared, and never changes; an `Unstructured` is private to one request.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Unstructured: TypeAlias = dict[str, Any]
"""A decoded API object: str keys; values are str, int, float, bool, None, list and dict."""


def metadata_of(fields: Unstructured) -> dict[str, Any]:
    """Return the `metadata` of `fields`, made if it is missing, so that it can be written to."""
    metadata: dict[str, Any] = fields.setdefault("metadata", {})
    return metadata
