"""Parses URL paths of the Kubernetes API.

Guarantees:
- The server decodes a URL path only once. A path is invalid if it contains `..`, `//`, or an encoded slash or NUL. The
  reason is that another program, which decodes or normalises such a path again, would get a different path.
- The result does not depend on the served kinds, so the result reveals nothing about the kinds to unauthorized clients
  (apiserver `pkg/endpoints/request/requestinfo.go`).

| path | meaning |
|---|---|
| `/api/v1/…`, `/apis/GROUP/VERSION/…` | a resource, as follows |
| `…/RESOURCE`, `…/namespaces/NAMESPACE/RESOURCE` | a collection |
| `…/RESOURCE/NAME[/SUBRESOURCE[/REST]]` | an object, or a subresource of it |
| `…/watch/…` | a watch of the same; the form before `?watch=true` |
| `…/proxy/…` | a proxy request; the form before the subresource `/proxy`, always answered with 404 |
| anything else | not a resource |
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
"""Segments after `namespaces/NAME` that are subresources of the namespace, and not resources in the namespace."""

_PREFIXES = frozenset({"proxy", "watch"})
"""Path segments that may precede a resource; such a segment is the verb of the request (`specialVerbs`)."""

_AMBIGUOUS = re.compile(r"%(2f|00|25|5c)|\\", re.IGNORECASE)
"""Matches an encoded slash, NUL, percent sign or backslash, or a literal backslash."""

_NOWHERE = frozenset({"", ".", ".."})


class ResourcePath(NamedTuple):
    """The resource in a path; absent parts are empty strings."""

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    """The path after the subresource, which the subresource `proxy` forwards."""
    prefix: str = ""
    """The deprecated prefix `watch` or `proxy` before the resource."""

    @property
    def watch(self) -> bool:
        """Return whether the path has the deprecated prefix `watch/`."""
        return self.prefix == "watch"


class Location(NamedTuple):
    """A parsed URL path of the API."""

    path: str
    """The URL path after decoding."""
    parts: tuple[str, ...] | None
    """The segments of the decoded path; None for an invalid path."""
    resource: ResourcePath | None
    """The resource in the path; None if the path does not address a resource."""
    is_api: bool
    """Whether an error response for an unknown path is a `Status`."""
    problem: str = ""
    """The reason why the path cannot be parsed; empty if the path was parsed."""


def locate(raw_path: bytes) -> Location:
    """Return the parsed URL path; `raw_path` is the path in the request line, without the query."""
    path = raw_path.decode("latin-1")
    is_api = path.startswith(("/api/", "/apis/"))
    ambiguous = _AMBIGUOUS.search(path) is not None
    if "%" in path:
        path = unquote(path)
    parts = path.removeprefix("/").removesuffix("/").split("/")
    if path == "/":
        return Location(path, (), None, is_api)
    if ambiguous or not path.startswith("/") or not _NOWHERE.isdisjoint(parts):
        return Location(path, None, None, is_api)
    below = _below_version(parts)
    if below is None:
        return Location(path, tuple(parts), None, is_api)
    if len(below) == 1 and below[0] in _PREFIXES:
        return Location(path, tuple(parts), None, is_api, "unable to determine kind and namespace from url")
    return Location(path, tuple(parts), _resource_path(parts, below), is_api)


def _below_version(parts: list[str]) -> list[str] | None:
    """Return the path segments after the group and version; None if the path has no such segments."""
    skipped = {"api": 2, "apis": 3}.get(parts[0], len(parts))
    return parts[skipped:] or None


def _resource_path(whole: list[str], parts: list[str]) -> ResourcePath:
    """Return the resource in `parts`, which are the segments after the API version in the segments `whole`."""
    group, version = ("", whole[1]) if whole[0] == "api" else (whole[1], whole[2])
    prefix = parts[0] if parts[0] in _PREFIXES else ""
    if prefix:
        parts = parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    count = len(parts)
    name = parts[1] if count > 1 else ""
    subresource = parts[2] if count > 2 and prefix != "proxy" else ""
    rest = "/".join(parts[3:]) if count > 3 else ""
    return ResourcePath(group, version, parts[0], namespace, name, subresource, rest, prefix)
