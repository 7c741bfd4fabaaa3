"""The client with which controllers write over HTTP; each write is one request.

Guarantees: this client has the same methods, and raises the same errors, as the client inside the control plane. A
request is sent only while this process holds the Lease for certain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.client import EngineClient, Fencing
from ctrlmgr.client.engine_client import binding
from ctrlmgr.client.fencing import pinned
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.engine.write_engine import WriteEngine
from ctrlmgr.errors import NotFound, OutcomeUnknown, RequestTimeout
from ctrlmgr.eventlog.event import Cause
from ctrlmgr.framework.remote.api_server_log import RemoteLog
from ctrlmgr.framework.remote.remote_api import Api, path_of

_APPLY = "application/apply-patch+yaml"
_STRATEGIC = "application/strategic-merge-patch+json"


class _TypeMeta(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str


class RemoteClient(EngineClient):
    """A client that writes objects over HTTP; thread-safe."""

    def __init__(
        self, api: Api, log: RemoteLog, engine: WriteEngine, *, manager: str, fence: Fencing | None = None
    ) -> None:
        """Create a client that writes through `api` with the field manager `manager`.

        `engine` is used only to find kinds.
        """
        super().__init__(engine, _no_runner, Requester(manager), fence=fence, manager=manager)
        self._api = api
        self._log = log

    def for_reconcile(self, cause: Cause) -> RemoteClient:
        """Return this client for one reconcile; raises `Fenced` if this process is not the leader."""
        return RemoteClient(self._api, self._log, self.engine, manager=self._manager, fence=pinned(self._fence))

    def of_canonical_objects(self) -> RemoteClient:
        """Return this client unchanged, because the API server canonicalizes objects."""
        return self

    def list_all(self, resource: Resource) -> Sequence[Object]:
        """Return the current objects of a resource."""
        return self._log.snapshot(resource).objects

    def list(self, kind: Kind, namespace: str) -> Sequence[Object]:
        """Return the current objects of a kind in one namespace."""
        return self._log.snapshot(kind.resource, namespace=namespace).objects

    def create(self, obj: Object) -> Object:
        """Create an object and return the stored object; see `EngineClient`."""
        path = path_of(_version(obj), obj.resource.plural, obj.namespace)
        return self._send("POST", path, obj.resource, obj.at(0).wire())

    def update(self, obj: Object, subresource: str = "") -> Object:
        """Replace the object that was read at `obj.revision`, or one of its subresources; see `EngineClient`."""
        return self._send("PUT", _path(obj, subresource), obj.resource, obj.wire())

    def apply(self, obj: Object, manager: str, *, force: bool = False, subresource: str = "") -> Object:
        """Server-side apply; see `EngineClient`."""
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        return self._send("PATCH", _path(obj, subresource), obj.resource, obj.at(0).wire(), query, _APPLY)

    def patch(self, obj: Object, patch: Mapping[str, Any], subresource: str = "") -> Object:
        """Apply a strategic merge patch; see `EngineClient`."""
        body = msgspec.json.encode(patch)
        return self._send("PATCH", _path(obj, subresource), obj.resource, body, media_type=_STRATEGIC)

    def scale(self, kind: Kind, namespace: str, name: str) -> Object:
        """Return an object's current Scale; see `EngineClient`."""
        return self._api.object("GET", path_of(kind.gvk.api_version, kind.resource.plural, namespace, name, "scale"))

    def rescale(self, kind: Kind, scale: Object) -> Object:
        """Replace a Scale; see `EngineClient`."""
        path = path_of(kind.gvk.api_version, kind.resource.plural, scale.namespace, scale.name, "scale")
        stored: Object = self._sent(lambda: self._api.object("PUT", path, scale.wire()))
        self._log.consistency.wrote(kind.resource, scale.key, stored.revision)
        return stored

    def bind(self, pod: Object, node: str) -> None:
        """Bind a pod to a node, with its uid as a precondition; see `EngineClient`."""
        body = msgspec.json.encode(binding(pod, node))
        self._sent(lambda: self._api.call("POST", _path(pod, "binding"), body))

    def delete(self, obj: Object, propagation: str | None = None, *, grace: int | None = None) -> None:
        """Delete an object, with its uid as a precondition; see `EngineClient`."""
        conditions = {"uid": obj.uid} | ({"resourceVersion": str(obj.revision)} if propagation is not None else {})
        options: dict[str, Any] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": conditions,
            "propagationPolicy": propagation or "Background",
        }
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        self._sent(lambda: self._api.call("DELETE", _path(obj), msgspec.json.encode(options)))
        self._log.consistency.deleted(obj)

    def expire(self, objects: Sequence[Object]) -> None:
        """Delete these objects one by one; ignore objects that do not exist."""
        for each in objects:
            try:
                self.delete(each)
            except NotFound:
                continue

    def _send(
        self,
        method: str,
        path: str,
        resource: Resource,
        body: bytes,
        query: Mapping[str, str] | None = None,
        media_type: str = "application/json",
    ) -> Object:
        parameters = {"fieldManager": self._manager} if query is None else query
        found = self._sent(lambda: self._api.object(method, path, body, query=parameters, media_type=media_type))
        stored = found if found.resource == resource else Object(resource, found.body, found.revision)
        self._log.wrote(stored)
        return stored

    def _sent(self, send: Callable[[], Any]) -> Any:
        if self._fence is not None:
            self._fence()
        try:
            answer = send()
        except (OutcomeUnknown, RequestTimeout):
            self.wrote = True
            raise
        self.wrote = True
        return answer


def _version(obj: Object) -> str:
    return obj.view(_TypeMeta).api_version


def _path(obj: Object, subresource: str = "") -> str:
    return path_of(_version(obj), obj.resource.plural, obj.namespace, obj.name, subresource)


def _no_runner(operation: Any, cause: Any = None, fence: Any = None) -> Any:
    raise AssertionError("a remote client sends requests, and runs no operations")
