"""Tests of recorded responses of Kubernetes 1.36.2, written as scripts.

Each line of a script has a request, the expected status code, and parts of the response body. A line is (method, path
within the namespace, body or None, code, expected), optionally with a query and a media type. Paths that begin with a
slash are absolute URL paths. `expected` maps dotted paths in the response body to values. ABSENT means that the
response must not contain the field. NEW is a resourceVersion that no response contained before, and SAME is the
object's previous resourceVersion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from tests.engine.stage import Response, Stage

Line = tuple[Any, ...]

ABSENT: Final = object()
NEW: Final = object()
SAME: Final = object()
VERSION = "metadata.resourceVersion"
JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
GONE = {"kind": "Status", "status": "Success", "code": ABSENT}


def cm(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "1"}}


def service(**rest: Any) -> dict[str, Any]:
    spec = {"ports": [{"port": 80}], "selector": {"a": "b"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec, **rest}


def not_found(plural: str, name: str) -> dict[str, Any]:
    message = f'{plural} "{name}" not found'
    return {"message": message, "reason": "NotFound", "details": {"kind": plural, "name": name}}


def modified(name: str) -> dict[str, Any]:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on configmaps "{name}": {why}'
    return {"message": message, "reason": "Conflict", "details": {"kind": "configmaps", "name": name}}


def immutable(field: str, value: str) -> dict[str, Any]:
    what = f'Invalid value: "{value}": field is immutable'
    cause = {"reason": "FieldValueInvalid", "message": what, "field": field}
    return {"message": f'ConfigMap "c" is invalid: {field}: {what}', "details.causes": [cause, cause]}


CRUD: Sequence[Line] = (
    ("GET", "configmaps/one", None, 404, not_found("configmaps", "one")),
    ("POST", "configmaps", cm("one", labels={"l": "1"}), 201, {VERSION: NEW, "metadata.namespace": "shop"}),
    (
        "POST",
        "configmaps",
        cm("one"),
        409,
        {"reason": "AlreadyExists", "message": 'configmaps "one" already exists'},
    ),
    ("GET", "configmaps/one", None, 200, {VERSION: SAME}),
    ("PATCH", "configmaps/one", {"metadata": {"labels": {"l": "2"}}}, 200, {VERSION: NEW}, {}, MERGE),
    ("PATCH", "configmaps/one", {"metadata": {"labels": {"l": "2"}}}, 200, {VERSION: SAME}, {}, MERGE),
    ("PATCH", "configmaps/one", {"metadata": {"resourceVersion": "2"}}, 409, modified("one"), {}, MERGE),
    ("PUT", "configmaps/one", cm("one", resourceVersion="2"), 409, modified("one")),
    ("PUT", "configmaps/one", cm("one", labels={"l": "4"}), 200, {VERSION: NEW, "metadata.labels": {"l": "4"}}),
    (
        "PUT",
        "configmaps/one",
        cm("another"),
        400,
        {"message": "the name of the object (another) does not match the name on the URL (one)"},
    ),
    ("PUT", "configmaps/absent", cm("absent"), 404, not_found("configmaps", "absent")),
    ("DELETE", "configmaps/absent", None, 404, not_found("configmaps", "absent")),
    (
        "POST",
        "configmaps",
        {**cm("one"), "kind": "Wrong"},
        400,
        {
            "message": 'Wrong in version "v1" cannot be handled as a ConfigMap: no kind "Wrong" is registered for '
            'version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"'
        },
    ),
    ("GET", "/api/v1/namespaces/none/configmaps", None, 200, {"items": [], "kind": "ConfigMapList"}),
    ("POST", "/api/v1/namespaces/none/configmaps", cm("x"), 404, not_found("namespaces", "none")),
    ("DELETE", "configmaps/one", {"gracePeriodSeconds": 0}, 200, GONE | {"details.name": "one"}),
    ("GET", "configmaps/one", None, 404, {}),
    ("POST", "configmaps", cm("one"), 201, {VERSION: NEW}),
)

PATCHES: Sequence[Line] = (
    ("POST", "configmaps", cm("c"), 201, {}),
    ("PATCH", "configmaps/c", {"metadata": {"uid": "u"}}, 422, immutable("metadata.uid", "u"), {}, MERGE),
    (
        "PATCH",
        "configmaps/c",
        {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}},
        422,
        immutable("metadata.deletionTimestamp", "2001-01-01T00:00:00Z"),
        {},
        MERGE,
    ),
    ("PATCH", "configmaps/c", {"metadata": {"generation": 77}}, 200, {"metadata.generation": ABSENT}, {}, MERGE),
    (
        "PATCH",
        "configmaps/c",
        {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}},
        200,
        {VERSION: SAME},
        {},
        MERGE,
    ),
    ("PATCH", "configmaps/c", {"kind": "Secret"}, 422, {"details.causes.0.field": "patch"}, {}, MERGE),
    ("PATCH", "configmaps/c", {"data": None}, 200, {"data": ABSENT, VERSION: NEW}, {}, MERGE),
    ("PATCH", "configmaps/c", {}, 415, {"message": "415: Unsupported Media Type", "details": {}}, {}, JSON),
    (
        "PATCH",
        "configmaps/c",
        {},
        422,
        {
            "details.kind": "PatchOptions",
            "details.causes.0.message": "Forbidden: may not be specified for non-apply patch",
        },
        {"force": "true"},
        MERGE,
    ),
    ("POST", "services", service(), 201, {"spec.ports.0.targetPort": 80}),
    (
        "PATCH",
        "services/s",
        {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}},
        200,
        {"spec.ports": [{"protocol": "TCP", "port": 80, "targetPort": 8080}]},
        {},
        STRATEGIC,
    ),
)

FINALIZERS: Sequence[Line] = (
    ("POST", "configmaps", cm("f", finalizers=["example.com/a"]), 201, {}),
    ("DELETE", "configmaps/f", None, 200, {"metadata.deletionGracePeriodSeconds": 0, VERSION: NEW}),
    ("DELETE", "configmaps/f", {"gracePeriodSeconds": 0}, 200, {VERSION: SAME}),
    ("POST", "configmaps", cm("f"), 409, {"message": 'object is being deleted: configmaps "f" already exists'}),
    ("PATCH", "configmaps/f", {"data": {"b": "2"}}, 200, {VERSION: NEW}, {}, MERGE),
    ("PATCH", "configmaps/f", {"metadata": {"deletionTimestamp": None}}, 200, {VERSION: SAME}, {}, MERGE),
    (
        "PATCH",
        "configmaps/f",
        {"metadata": {"finalizers": ["example.com/a", "example.com/c"]}},
        422,
        {"details.causes.0.reason": "FieldValueForbidden", "details.causes.0.field": "metadata.finalizers"},
        {},
        MERGE,
    ),
    (
        "PATCH",
        "configmaps/f",
        {"metadata": {"finalizers": []}},
        200,
        {VERSION: SAME, "metadata.finalizers": ABSENT},
        {},
        MERGE,
    ),
    ("GET", "configmaps/f", None, 404, {}),
    ("POST", "configmaps", cm("g", finalizers=["example.com/a"]), 201, {}),
    ("PATCH", "configmaps/g", {"metadata": {"finalizers": None}}, 200, {VERSION: NEW}, {}, MERGE),
    ("GET", "configmaps/g", None, 200, {VERSION: SAME}),
)

DELETIONS: Sequence[Line] = (
    ("POST", "configmaps", cm("c0"), 201, {}),
    ("DELETE", "configmaps/c0", {"propagationPolicy": "Background"}, 200, GONE | {"details.kind": "configmaps"}),
    ("POST", "configmaps", cm("c1"), 201, {}),
    (
        "DELETE",
        "configmaps/c1",
        {"propagationPolicy": "Foreground"},
        200,
        {"metadata.finalizers": ["foregroundDeletion"], "metadata.deletionGracePeriodSeconds": 0},
    ),
    ("POST", "configmaps", cm("c2"), 201, {}),
    ("DELETE", "configmaps/c2", {"propagationPolicy": "Wrong"}, 422, {"details.causes.0.field": "propagationPolicy"}),
    ("DELETE", "configmaps/c2", None, 422, {"reason": "Invalid"}, {"dryRun": "Nope"}),
    ("DELETE", "configmaps/c2", None, 200, GONE, {"dryRun": "All"}),
    ("DELETE", "configmaps/c2", {"gracePeriodSeconds": -1}, 200, GONE),
    ("POST", "services", service(), 201, {}),
    ("DELETE", "services/s", None, 200, {"kind": "Service", VERSION: SAME}, {"dryRun": "All"}),
    ("DELETE", "services/s", None, 200, {"kind": "Service", VERSION: NEW}),
    ("GET", "services/s", None, 404, {}),
    ("DELETE", "/api/v1/namespaces", None, 405, {"reason": "MethodNotAllowed", "details": {}}),
)

TERMINATION: Sequence[Line] = (
    ("POST", "configmaps", cm("hold", finalizers=["example.com/x"]), 201, {}),
    (
        "DELETE",
        "/api/v1/namespaces/shop",
        None,
        200,
        {
            "status.phase": "Terminating",
            "metadata.deletionGracePeriodSeconds": ABSENT,
            "spec.finalizers": ["kubernetes"],
        },
    ),
    (
        "POST",
        "/api/v1/namespaces",
        {"metadata": {"name": "shop"}},
        409,
        {"message": 'object is being deleted: namespaces "shop" already exists'},
    ),
    ("POST", "services", service(), 403, {"details.causes.0.reason": "NamespaceTerminating", "details.name": "s"}),
    ("PATCH", "/api/v1/namespaces/shop", {"metadata": {"labels": {"e": "ok"}}}, 200, {VERSION: NEW}, {}, MERGE),
    ("DELETE", "/api/v1/namespaces/shop", None, 200, {VERSION: SAME}),
    (
        "PATCH",
        "configmaps/hold",
        {"metadata": {"finalizers": None}},
        200,
        {"metadata.deletionTimestamp": ABSENT},
        {},
        MERGE,
    ),
    ("PUT", "/api/v1/namespaces/shop/finalize", {"metadata": {"name": "shop"}}, 200, {}),
    ("GET", "/api/v1/namespaces/shop", None, 404, {}),
    ("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}}, 201, {"status.phase": "Active"}),
)

DRY_RUNS: Sequence[Line] = (
    ("POST", "services", service(), 201, {VERSION: ABSENT}, {"dryRun": "All"}),
    ("GET", "services/s", None, 404, {}),
    ("POST", "services", service(), 201, {VERSION: NEW}),
    ("POST", "services", service(), 409, {"reason": "AlreadyExists"}, {"dryRun": "All"}),
    ("PUT", "services/s", service(), 200, {VERSION: SAME}, {"dryRun": "All"}),
    ("PATCH", "services/s", {"metadata": {"labels": {"d": "1"}}}, 200, {VERSION: SAME}, {"dryRun": "All"}, MERGE),
    ("GET", "services/s", None, 200, {"metadata.labels": ABSENT, VERSION: SAME}),
    ("POST", "services", service(), 422, {"details.kind": "CreateOptions"}, {"dryRun": "Nope"}),
)


@pytest.mark.parametrize(
    "script",
    [CRUD, PATCHES, FINALIZERS, DELETIONS, TERMINATION, DRY_RUNS],
    ids=["crud", "patches", "finalizers", "deletions", "termination", "dry runs"],
)
def test_responses_equal_kubernetes(script: Sequence[Line]) -> None:
    stage = Stage()
    stage.namespace("shop")
    versions = _Versions()
    for number, (method, path, body, code, expected, *rest) in enumerate(script):
        query = rest[0] if rest else {}
        media_type = rest[1] if len(rest) > 1 else JSON
        path = path if path.startswith("/") else f"/api/v1/namespaces/shop/{path}"
        response = stage.send(method, path, body, query=query, media_type=media_type)
        where = f"line {number}: {method} {path} answered {response}"
        assert response.code == code, where
        versions.check(response, expected, where)


class _Versions:
    """Records the resourceVersions in responses, and the last resourceVersion of each object."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._last: dict[str, str] = {}

    def check(self, response: Response, expected: Mapping[str, Any], where: str) -> None:
        metadata = response.body.get("metadata") or {}
        version, uid = metadata.get("resourceVersion", ""), metadata.get("uid", "")
        for path, value in expected.items():
            found = _at(response.body, path)
            if value is NEW:
                assert found is not ABSENT, where
                assert found not in self._seen, where
            elif value is SAME:
                assert found == self._last[uid], where
            else:
                assert found == value, where
        self._seen.add(version)
        if uid and version:
            self._last[uid] = version


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(value, list):
            value = value[int(part)] if int(part) < len(value) else ABSENT
        else:
            value = value.get(part, ABSENT) if isinstance(value, dict) else ABSENT
    return value
