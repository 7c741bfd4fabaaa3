"""Redacts recorded objects: replaces the data of Secrets, and the values of other fields that the user names.

Guarantees: a value is replaced and never removed, so the object keeps its structure. If a field of an object is
redacted, the annotation in which `kubectl apply` stores a copy of the object is also redacted. All other fields stay
unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.errors import SettingsError

REDACTED = "REDACTED"
_BASE64 = "UkVEQUNURUQ="
"""The value `REDACTED` in base64, which replaces fields that contain bytes."""

_BYTES = {("secrets", "data"), ("configmaps", "binaryData")}
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

DEFAULT = ("secrets:data", "secrets:stringData")

Path = tuple[str, ...]


class Redaction:
    """The fields to redact, by the resource that has them."""

    def __init__(self, rules: Iterable[str]) -> None:
        """Parse rules such as `RESOURCE:FIELD.FIELD`.

        The path in a rule applies to all items of a list, and to all values of a map.

        Raises `SettingsError` for an invalid rule.
        """
        self._paths: dict[Resource, list[Path]] = {}
        for rule in rules:
            resource, colon, path = rule.partition(":")
            if not (resource and colon and path) or "" in path.split("."):
                raise SettingsError(f"--redact: {rule!r} is not a rule; write pods:spec.containers.env.value")
            self._paths.setdefault(Resource.parse(resource), []).append(tuple(path.split(".")))

    def applied(self, obj: Object) -> Object:
        """Return an object with its fields redacted."""
        paths = self._paths.get(obj.resource)
        if not paths:
            return obj
        fields = msgspec.json.decode(obj.wire())
        for path in paths:
            mark = _BASE64 if (obj.resource.plural, path[0]) in _BYTES else REDACTED
            _replace(fields, path, mark)
        annotations = fields["metadata"].get("annotations") or {}
        if _LAST_APPLIED in annotations:
            annotations[_LAST_APPLIED] = REDACTED
        return Object.from_wire(msgspec.json.encode(fields)).at(obj.revision)


def _replace(value: Any, path: Sequence[str], mark: str) -> None:
    """Replace the values at `path` below `value`, in place."""
    if isinstance(value, list):
        for each in value:
            _replace(each, path, mark)
    elif isinstance(value, dict) and path[0] in value:
        if len(path) > 1:
            _replace(value[path[0]], path[1:], mark)
        else:
            value[path[0]] = _marked(value[path[0]], mark)


def _marked(value: Any, mark: str) -> Any:
    if isinstance(value, dict):
        return {name: _marked(each, mark) for name, each in value.items()}
    if isinstance(value, list):
        return [_marked(each, mark) for each in value]
    return value if value is None else mark
