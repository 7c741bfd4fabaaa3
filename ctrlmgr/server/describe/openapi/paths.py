"""The paths that this server answers, as an OpenAPI v2 document has them.

They are the recorded ones of Kubernetes, less what is not served here, and with what every answer may be: a failure,
told by a `Status`, in JSON or YAML. Answers in protobuf are not promised; bodies are taken in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kinds import Kinds
from ctrlmgr.schema import structure
from ctrlmgr.server.describe.document import JSON

Node: TypeAlias = Mapping[str, Any]

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"

_PROTOBUF = "application/vnd.kubernetes.protobuf"
_BODY_TYPES = [JSON, "application/yaml", _PROTOBUF]
_PHRASES = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}
_FAILURE: Node = {"description": "Failure", "schema": {"$ref": f"#/definitions/{STATUS}"}}

_ALWAYS = frozenset({"/api/", "/apis/", "/version/"})
"""What can be read without any kind."""

_RESOURCE = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/watch)?(?:/namespaces/\{namespace\})?"
    r"/(?P<plural>[^/{]+)(?:/\{name\}(?:/(?P<subresource>[^/{]+)(?:/\{path\})?)?)?"
)
_VERBS = {"post": "create", "put": "update", "watchlist": "watch"}
"""The verbs of discovery, by the names that OpenAPI's `x-kubernetes-action` has for them, where these differ."""
_CONNECT_VERBS = {"post": "create", "put": "update", "patch": "patch", "delete": "delete"}
"""The verbs of what is connected to (`proxy`), by method; all else is a `get`."""


def served_paths(kinds: Kinds) -> dict[str, dict[str, Any]]:
    """Return the path items of an OpenAPI v2 document, by path."""
    roots = _ALWAYS.union(*(_roots(kind) for kind in kinds))
    found = {}
    for path, item in structure.openapi()["paths"].items():
        resource = _RESOURCE.fullmatch(path)
        verbs = _verbs(kinds, **resource.groupdict()) if resource else ("get",) * (path in roots)
        operations = {method: each for method, each in item.items() if method in METHODS}
        served = {method: _completed(each) for method, each in operations.items() if _verb(method, each) in verbs}
        if served:
            others = {key: each for key, each in item.items() if key not in METHODS}
            found[path] = {**served, **others}
    return found


def section(path: str) -> str:
    """Return the name of the OpenAPI v3 document that a path is in: `api/v1`, `apis/apps`, `version`."""
    parts = path.strip("/").split("/")
    return "/".join(parts[: {"api": 2, "apis": 3}.get(parts[0], 1)])


def _roots(kind: Kind) -> set[str]:
    """Return the paths of a kind's group and of its version, where discovery is."""
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
    """Return an operation that says what it takes and what it may answer."""
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
