"""A typed client for scripts and tests: it reads and writes objects of users' classes over HTTP.

Guarantees: results are the server's current state, decoded as instances of the given class. If the server refuses a
request, the client raises an error of `ctrlmgr`. Controllers do not use this client; their `Context` reads caches.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, overload

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import NotFound
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.framework.cached_objects import read
from ctrlmgr.framework.children import Child, declared, manifest
from ctrlmgr.framework.class_declaration import Declaration, declaration_of
from ctrlmgr.framework.remote.remote_api import Api, path_of
from ctrlmgr.framework.remote.throttle import Throttle
from ctrlmgr.framework.typed_kinds import Kind, Untyped
from ctrlmgr.recording.capture.cluster_client import Served
from ctrlmgr.settings import kubeconfig as kubeconfigs

K = TypeVar("K", bound=Kind)

_PAGE: Final = 500
_MERGE: Final = "application/merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"


class Client:
    """A client for one cluster, as one user; thread-safe.

    The default namespace is the namespace of the kubeconfig's context, or `default`.
    """

    def __init__(self, api: Api, *, namespace: str = "default", manager: str = "ctrlmgr") -> None:
        """Users call `connect` instead; `manager` is the field manager of the client's writes."""
        self._api = api
        self._namespace = namespace
        self._manager = manager

    @classmethod
    def connect(
        cls, kubeconfig: str | Path | None = None, *, context: str = "", qps: float = 0, manager: str = "ctrlmgr"
    ) -> Client:
        """Return a client for the cluster of a kubeconfig.

        Without a kubeconfig, the client uses the cluster that kubectl uses or, in a pod, the cluster of the pod. `qps`
        is the maximum number of requests per second; 0 means no limit. The constructor sends no request. Raises
        `SettingsError` if the kubeconfig is unusable.
        """
        files = [Path(kubeconfig)] if kubeconfig else kubeconfigs.default_files(os.environ, Path.home())
        inside = None if kubeconfig or any(each.exists() for each in files) else kubeconfigs.in_cluster(os.environ)
        access = inside or kubeconfigs.load(files, context)
        throttle = Throttle(qps, max(1, round(2 * qps)), clock=SystemClock())
        api = Api(access, throttle, program=manager)
        return cls(api, namespace=access.namespace or "default", manager=manager)

    @overload
    def get(self, kind: type[K], name: str, namespace: str = "") -> K | None: ...

    @overload
    def get(self, kind: str, name: str, namespace: str = "") -> Untyped | None: ...

    def get(self, kind: Any, name: str, namespace: str = "") -> Any:
        """Return an object's current state, None if there is none."""
        declaration = declaration_of(kind)
        try:
            return read(declaration, self._api.object("GET", self._path(declaration, namespace, name)))
        except NotFound:
            return None

    @overload
    def list(
        self, kind: type[K], namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Sequence[K]: ...

    @overload
    def list(
        self, kind: str, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Sequence[Untyped]: ...

    def list(self, kind: Any, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Any:
        """Return the objects of one namespace (None for all namespaces) that have all these labels.

        The client reads the list in pages.
        """
        declaration = declaration_of(kind)
        path = path_of(declaration.api_version, declaration.resource.plural, namespace or "")
        query = {"limit": str(_PAGE)} | ({"labelSelector": _selector(labels)} if labels else {})
        found: list[Any] = []
        while True:
            page = msgspec.json.decode(self._api.call("GET", path, query=query))
            head = {"apiVersion": declaration.api_version, "kind": declaration.kind}
            found += [read(declaration, Object.from_dict({**head, **item})) for item in page["items"] or ()]
            if not (token := page["metadata"].get("continue")):
                return found
            query["continue"] = token

    @overload
    def create(self, obj: K) -> K: ...

    @overload
    def create(self, obj: Untyped | Mapping[str, Any]) -> Untyped: ...

    def create(self, obj: Child) -> Any:
        """Create an object and return the stored object.

        Raises `ApiError` (such as `AlreadyExists` or `Invalid`) if the server refuses the object.
        """
        declaration, fields = declared(obj), manifest(obj)
        path = self._path(declaration, fields["metadata"].get("namespace", ""))
        return self._write(declaration, "POST", path, fields, {"fieldManager": self._manager})

    @overload
    def apply(self, obj: K, *, force: bool = False) -> K: ...

    @overload
    def apply(self, obj: Untyped | Mapping[str, Any], *, force: bool = False) -> Untyped: ...

    def apply(self, obj: Child, *, force: bool = False) -> Any:
        """Server-side apply an object and return the stored object.

        If `force` is set, take over fields that other field managers own; if not, raise `Conflict` if such a field
        would change. Raises `Invalid` if validation fails.
        """
        declaration, fields = declared(obj), manifest(obj)
        metadata = fields["metadata"]
        path = self._path(declaration, metadata.get("namespace", ""), metadata["name"])
        query = {"fieldManager": self._manager, "force": "true" if force else "false"}
        return self._write(declaration, "PATCH", path, fields, query, _APPLY)

    @overload
    def patch(self, kind: type[K], name: str, patch: Any, namespace: str = "", *, subresource: str = "") -> K: ...

    @overload
    def patch(self, kind: str, name: str, patch: Any, namespace: str = "", *, subresource: str = "") -> Untyped: ...

    def patch(
        self, kind: Any, name: str, patch: Mapping[str, Any], namespace: str = "", *, subresource: str = ""
    ) -> Any:
        """Apply a merge patch to an object, or to its `status`, and return the stored object.

        Raises `NotFound` if the object does not exist, and `Invalid` if validation fails.
        """
        declaration = declaration_of(kind)
        path = self._path(declaration, namespace, name, subresource)
        return self._write(declaration, "PATCH", path, patch, {"fieldManager": self._manager}, _MERGE)

    def delete(self, kind: type[Kind] | str, name: str, namespace: str = "") -> None:
        """Delete an object; an object with finalizers continues to exist until these are removed. Raises `NotFound`."""
        self._api.call(
            "DELETE", self._path(declaration_of(kind), namespace, name), b'{"propagationPolicy":"Background"}'
        )

    @overload
    def watch(self, kind: type[K], namespace: str = "", *, seconds: int = 300) -> Iterator[tuple[str, K]]: ...

    @overload
    def watch(self, kind: str, namespace: str = "", *, seconds: int = 300) -> Iterator[tuple[str, Untyped]]: ...

    def watch(self, kind: Any, namespace: str = "", *, seconds: int = 300) -> Iterator[tuple[str, Any]]:
        """Yield each existing object (as ADDED) and then each change (ADDED, MODIFIED or DELETED).

        The watch ends after `seconds`. `namespace` is by default the client's namespace. Raises `ServiceUnavailable` if
        the connection breaks; the caller must then watch again.
        """
        declaration = declaration_of(kind)
        prefix = path_of(declaration.api_version, "", "")
        served = Served(declaration.resource, prefix, declaration.namespaced)
        for line in self._api.lines(served, namespace or self._namespace, {}, seconds):
            event = msgspec.json.decode(line)
            if event["type"] in EventType.__members__:
                yield event["type"], read(declaration, Object.from_dict(event["object"]))

    def _path(self, declaration: Declaration, namespace: str, name: str = "", subresource: str = "") -> str:
        where = (namespace or self._namespace) if declaration.namespaced else ""
        return path_of(declaration.api_version, declaration.resource.plural, where, name, subresource)

    def _write(
        self,
        declaration: Declaration,
        method: str,
        path: str,
        fields: Mapping[str, Any],
        query: Mapping[str, str],
        media_type: str = "application/json",
    ) -> Any:
        body = msgspec.json.encode(fields)
        return read(declaration, self._api.object(method, path, body, query=query, media_type=media_type))


def _selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
