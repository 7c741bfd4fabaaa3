"""Requests of the operator, their parts, and the answers to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from ctrlmgr.api.resource import EVENTS, EVENTS_V1, LEASES, Resource

_WRITES = {"POST": "create", "PUT": "update", "PATCH": "patch"}
WRITES = frozenset({*_WRITES.values(), "delete", "deletecollection"})
_REVIEWS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
_UNTRACKED = frozenset({EVENTS, EVENTS_V1, LEASES})
_SERVED_UNDER = {"api": 2, "apis": 3}
"""The number of path segments before the resource, by the path's first segment."""


class Call(NamedTuple):
    """The name of a request: what it does to which object. A plan finds the request by this name.

    `resource` is `plural.group/subresource`. `key` is `namespace/name`, or `namespace/prefix*` for generated names.
    """

    verb: str
    resource: str
    key: str = ""

    def __str__(self) -> str:
        """Return the form of plans, such as `create configmaps shop/web`."""
        return " ".join(part for part in self if part)

    @classmethod
    def parse(cls, text: str) -> Call:
        """Parse the form of plans; raises ValueError if the text has another form."""
        verb, resource, key, *more = [*text.split(" "), "", ""]
        if verb not in WRITES or not resource or any(more):
            raise ValueError(text)
        return cls(verb, resource, key)


class Request(NamedTuple):
    """One request of the operator; `resource` is None for requests that concern no resource, such as discovery."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    query: Mapping[str, str]
    resource: Resource | None = None
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def path(self) -> str:
        """The path without the query."""
        return self.target.partition("?")[0]

    @property
    def verb(self) -> str:
        """The verb of the request as authorization names it."""
        if self.method == "GET":
            watches = self.query.get("watch", "") in ("1", "true", "True")
            return "watch" if watches else "get" if self.name else "list"
        if self.method == "DELETE":
            return "delete" if self.name else "deletecollection"
        return _WRITES.get(self.method, self.method.lower())

    @property
    def right(self) -> str:
        """The right that the request needs: `verb plural.group/subresource`."""
        return f"{self.verb} {self._resource}"

    @property
    def call(self) -> Call:
        """The name of the request in plans."""
        name = self.name or self._name_in_body()
        return Call(self.verb, self._resource, f"{self.namespace}/{name}" if self.namespace else name)

    @property
    def is_tracked_write(self) -> bool:
        """Whether the request changes objects that matter for the end state: no Leases, Events and reviews."""
        if self.resource is None or self.verb not in WRITES or "dryRun" in self.query:
            return False
        return self.resource not in _UNTRACKED and self.resource.group not in _REVIEWS

    @property
    def fields(self) -> Mapping[str, Any]:
        """The body, if it is a JSON object; otherwise an empty mapping."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def is_conditional(self) -> bool:
        """Whether the server refuses the write if the object has changed since the operator read it."""
        metadata = self.fields.get("metadata")
        return isinstance(metadata, dict) and bool(metadata.get("resourceVersion"))

    @property
    def _resource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else str(self.resource)

    def _name_in_body(self) -> str:
        metadata = self.fields.get("metadata")
        if self.verb != "create" or not isinstance(metadata, dict):
            return ""
        return str(metadata.get("name") or f"{metadata.get('generateName', '')}*")


class Answer(NamedTuple):
    """A whole answer to a request."""

    code: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionDropped(Exception):
    """Raised to close the operator's connection without an answer."""


def read_request(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Request:
    """Return the request with the parts of its path."""
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    request = Request(method, target, headers, body, query)
    segments = parts.path.strip("/").split("/")
    before = _SERVED_UNDER.get(segments[0], len(segments))
    rest = segments[before:]
    if not rest:
        return request
    group = segments[1] if before == _SERVED_UNDER["apis"] else ""
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = [*rest, "", ""][:3]
    return request._replace(resource=Resource(group, plural), namespace=namespace, name=name, subresource=subresource)


def refusal(code: int, reason: str, message: str, **headers: str) -> Answer:
    """Return an answer with a Status object, as a server sends it."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    body = json.dumps({**status, "reason": reason, "code": code}).encode()
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(code, {"Content-Type": "application/json", **more}, body)
