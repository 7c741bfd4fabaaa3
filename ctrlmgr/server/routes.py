"""Where a path leads: the URL space of the Kubernetes API, read by one parser.

Guarantees:
- A path is decoded once. One that would mean something else to a program that decodes it again or normalises it (`..`,
  `//`, an encoded slash or NUL) leads nowhere.
- What a path is about does not depend on what is served here, so that who may not ask learns nothing
  (apiserver `pkg/endpoints/request/requestinfo.go`).

| path | is |
|---|---|
| `/api/v1/…`, `/apis/GROUP/VERSION/…` | a resource, as follows |
| `…/RESOURCE`, `…/namespaces/NAMESPACE/RESOURCE` | a collection |
| `…/RESOURCE/NAME[/SUBRESOURCE[/REST]]` | an object, or a part of it |
| `…/watch/…` | the same to be watched, as one did before `?watch=true` |
| `…/proxy/…` | the same to be passed on to, as one did before `/proxy` at the end; nothing answers there |
| anything else | no resource |
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
"""What follows `namespaces/NAME` and belongs to the namespace itself, not to something in it."""

_PREFIXES = frozenset({"proxy", "watch"})
"""Segments that may precede a resource, and are the verb then (`specialVerbs`)."""

_AMBIGUOUS = re.compile(r"%(2f|00|25|5c)|\\", re.IGNORECASE)
"""A slash, NUL, percent sign or backslash that was encoded; and a backslash that was not."""

_NOWHERE = frozenset({"", ".", ".."})


class ResourcePath(NamedTuple):
    """What a path says about a resource; empty strings for what it does not."""

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    """What follows the subresource, for those that pass it on (`proxy`)."""
    prefix: str = ""
    """The `watch` or `proxy` of old that precedes the resource."""

    @property
    def watch(self) -> bool:
        """Whether it has the `watch/` of old."""
        return self.prefix == "watch"


class Location(NamedTuple):
    """Where a path leads."""

    path: str
    """The path, decoded."""
    parts: tuple[str, ...] | None
    """Its segments; None if it leads nowhere."""
    resource: ResourcePath | None
    """What they say about a resource; None if it is about none."""
    is_api: bool
    """Whether what is unknown here is answered with a `Status`."""
    problem: str = ""
    """Why the path cannot be read; empty if it can."""


def locate(raw_path: bytes) -> Location:
    """Return where a path leads, given as it stands in the request line (without the query)."""
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
    """Return the segments that follow a version of a group; None if there are none."""
    skipped = {"api": 2, "apis": 3}.get(parts[0], len(parts))
    return parts[skipped:] or None


def _resource_path(whole: list[str], parts: list[str]) -> ResourcePath:
    """Return what `parts`, which follow the version in `whole`, say about a resource."""
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
