"""Creates the paths of this server in the OpenAPI v2 document.

The paths are taken from Kubernetes' own document with all versions. Paths that this server does not serve are left out.
Every operation also has a response for failures, a `Status`. The media types of responses are JSON and YAML; those of
request bodies also include protobuf.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.schema import published_schema
from ctrlmgr.server.describe.document import JSON

Node: TypeAlias = Mapping[str, Any]

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"

_PROTOBUF = "application/vnd.kubernetes.protobuf"
_BODY_TYPES = [JSON, "application/yaml", _PROTOBUF]
_PHRASES = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}
_FAILURE: Node = {"description": "Failure", "schema": {"$ref": f"#/definitions/{STATUS}"}}

_ALWAYS = frozenset({"/api/", "/apis/", "/version/"})
"""URL paths that do not belong to a kind."""

_RESOURCE = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/watch)?(?:/namespaces/\{namespace\})?"
    r"/(?P<plural>[^/{]+)(?:/\{name\}(?:/(?P<subresource>[^/{]+)(?:/\{path\})?)?)?"
)
_VERBS = {"post": "create", "put": "update", "watchlist": "watch"}
"""The values of OpenAPI's `x-kubernetes-action` by verb, for the verbs of discovery with a different name in OpenAPI.
"""
_CONNECT_VERBS = {"post": "create", "put": "update", "patch": "patch", "delete": "delete"}
"""The verbs of connect requests (such as `proxy`) by HTTP method; the verb of all other methods is `get`."""


def served_paths(kinds: Kinds) -> dict[str, dict[str, Any]]:
    """Return the path items of an OpenAPI v2 document, by path."""
    roots = _ALWAYS.union(*(_roots(kind) for kind in kinds))
    found = {}
    for path, item in _published().items():
        resource = _RESOURCE.fullmatch(path)
        verbs = _verbs(kinds, **resource.groupdict()) if resource else ("get",) * (path in roots)
        operations = {method: each for method, each in item.items() if method in METHODS}
        served = {method: _completed(each) for method, each in operations.items() if _verb(method, each) in verbs}
        if served:
            others = {key: each for key, each in item.items() if key not in METHODS}
            found[path] = {**served, **others}
    return found


def _published() -> Mapping[str, Any]:
    """Return Kubernetes' path items, including the paths of optional versions."""
    optional = (version.paths for version in published_schema.optional().values())
    return {path: item for paths in (published_schema.openapi()["paths"], *optional) for path, item in paths.items()}


def section(path: str) -> str:
    """Return the name of the OpenAPI v3 document that contains a path: `api/v1`, `apis/apps`, `version`."""
    parts = path.strip("/").split("/")
    return "/".join(parts[: {"api": 2, "apis": 3}.get(parts[0], 1)])


def _roots(kind: Kind) -> set[str]:
    """Return the discovery paths of a kind's group and version."""
    group, version, _ = kind.gvk
    return {f"/apis/{group}/", f"/apis/{group}/{version}/"} if group else {f"/api/{version}/"}


def _verbs(kinds: Kinds, group: str | None, version: str, plural: str, subresource: str | None) -> Collection[str]:
    kind = kinds.find(group or "", version, plural)
    if kind is None or subresource is None:
        return kind.verbs if kind else ()
    return kind.subresources[subresource].verbs if subresource in kind.subresources else ()


def _verb(method: str, operation: Node) -> str:
    action: str = operation.get("x-kubernetes-action", method)
    return _CONNECT_VERBS.get(method, "get") if action == "connect" else _VERBS.get(action, action)


def _completed(operation: Node) -> dict[str, Any]:
    """Return an operation with the media types that it accepts and all its possible responses."""
    responses = {
        code: {"description": _PHRASES.get(code, code), **response} for code, response in operation["responses"].items()
    }
    completed = {
        **operation,
        "produces": [each for each in operation["produces"] if not each.startswith(_PROTOBUF)],
        "responses": {**responses, "default": _FAILURE},
    }
    if operation.get("consumes") == ["*/*"]:
        completed["consumes"] = _BODY_TYPES
    return completed
