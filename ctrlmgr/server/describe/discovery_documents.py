"""Serves the discovery documents, which are created from the registry of kinds.

Guarantees:
- The registered kinds determine the documents; the documents about all kinds also contain the kinds of extension
  servers. API groups and versions have the registry's order, and resources are sorted by name.
- The server creates a document at the first request for it, and caches the document until a kind or an extension server
  changes. A document about all kinds consists of one piece per version; after a change, only the pieces of changed
  versions are created again.
- Any thread may call the functions of this module. The method `made` returns a document only if the document is cached.

| path | answer |
|---|---|
| `/api`, `/apis` | APIVersions, APIGroupList; or all kinds as APIGroupDiscoveryList, if the client accepts it |
| `/apis/GROUP` | APIGroup |
| `/api/v1`, `/apis/GROUP/VERSION` | APIResourceList |

The forms of the documents are those of apimachinery `meta/v1/types.go` and of `apidiscovery/v2/types.go`, with fields
in Go's order.
"""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

import msgspec

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.kind import GroupVersionKind, Kind, Subresource
from ctrlmgr.engine.kind_registry import Group, Kinds
from ctrlmgr.server.describe.document import JSON, Document, json_document, preferred

_AGGREGATED = {("APIGroupDiscoveryList", "apidiscovery.k8s.io", version) for version in ("v2", "v2beta1")}
"""The values of the media type parameters `as`, `g` and `v` that select aggregated discovery."""
_MERGED = "+peers"
"""The suffix of the form of aggregated discovery that contains the groups of peers."""
_WITHOUT_PEERS = "nopeer"


class _Piece(NamedTuple):
    """One version of an API group in the documents about all kinds."""

    of: Sequence[tuple[Kind, Sequence[str]]]
    """The kinds of the version with their verbs. Only the verbs of a kind can change."""
    encoded: msgspec.Raw


class RemoteVersions(Protocol):
    """The versions of API groups that extension servers serve."""

    @property
    def epoch(self) -> int:
        """A number that increases with each change."""

    @property
    def versions(self) -> Mapping[tuple[str, str], tuple[Sequence[Unstructured], bool]]:
        """The resources of each group and version, and whether they are up to date."""


class PeerGroups(Protocol):
    """The API groups of other processes that serve the same log."""

    @property
    def epoch(self) -> int:
        """A number that increases with each change."""

    def merged(self, groups: Sequence[Unstructured]) -> Sequence[Unstructured]:
        """Return `groups` (APIGroupDiscovery) merged with the groups of the other processes."""


class _CachedDocuments:
    """The documents that were created from one state of the registry."""

    def __init__(self, kinds: Kinds, remote: RemoteVersions | None, peers: PeerGroups | None) -> None:
        # read the epoch first; kinds that are added while this constructor runs belong to the next epoch
        self.epoch = _epoch(kinds, remote, peers)
        self.remote = remote.versions if remote is not None else {}
        self.groups = kinds.groups
        self.documents: dict[tuple[str, str], Document] = {}
        self.kinds: dict[tuple[str, str], list[Kind]] = {}
        for kind in kinds:
            self.kinds.setdefault(kind.gvk[:2], []).append(kind)


class Discovery:
    """Serves the discovery documents of one registry of kinds."""

    def __init__(
        self,
        kinds: Kinds,
        server_address: str = "",
        remote: RemoteVersions | None = None,
        peers: PeerGroups | None = None,
    ) -> None:
        """Create the documents about `kinds`, and about the versions that extension servers serve (`remote`).

        `server_address` (host:port) is the address in the document APIVersions, which old clients read. The groups of
        `peers` are in aggregated discovery (v2), unless the client asks for the profile `nopeer`.
        """
        self._kinds = kinds
        self._remote = remote
        self._server_address = server_address
        self._peers = peers
        self._made = _CachedDocuments(kinds, remote, peers)
        self._pieces: dict[tuple[str, str], _Piece] = {}
        self._making = threading.Lock()

    def made(self, path: str, accept: str) -> Document | None:
        """Return the document at a URL path if the document is cached."""
        made = self._made
        is_current = made.epoch == _epoch(self._kinds, self._remote, self._peers)
        return made.documents.get(self._key(path, accept)) if is_current else None

    def answer(self, path: str, accept: str) -> Document | None:
        """Return the document at a URL path; None if no document has this path.

        The media type of the document depends on the Accept header.
        """
        key = parts, form = self._key(path, accept)
        with self._making:
            if self._made.epoch != _epoch(self._kinds, self._remote, self._peers):
                self._made = _CachedDocuments(self._kinds, self._remote, self._peers)
                self._pieces = {version: each for version, each in self._pieces.items() if version in self._made.kinds}
            made = self._made.documents.get(key)
            if made is None:
                made = self._document(parts.split("/"), form)
                if made is not None:  # a client can request any number of unknown paths, so these are not cached
                    self._made.documents[key] = made
            return made

    def _key(self, path: str, accept: str) -> tuple[str, str]:
        """Return the cache key of a document: its path, and the form of aggregated discovery or ""."""
        path = path.strip("/")
        form, profile = _aggregated(accept) if path in ("api", "apis") else ("", "")
        merges = self._peers is not None and (path, form) == ("apis", "v2") and profile != _WITHOUT_PEERS
        return path, form + _MERGED if merges else form

    def _document(self, parts: Sequence[str], form: str) -> Document | None:
        if form:
            version = form.removesuffix(_MERGED)
            media_type = f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            listed = self._everything(parts[0], version)
            if self._peers is not None and form.endswith(_MERGED):
                items = msgspec.json.decode(msgspec.json.encode(listed["items"]), type=list[dict[str, Any]])
                listed = {**listed, "items": self._peers.merged(items)}
            return json_document(listed, media_type)
        fields = self._fields(parts)
        return None if fields is None else json_document(fields)

    def _fields(self, parts: Sequence[str]) -> dict[str, Any] | None:
        match parts:
            case ["api"]:
                return self._core_versions()
            case ["apis"]:
                groups = [_group(group) for group in self._groups("apis")]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case ["api", version]:
                return self._resources("", version)
            case ["apis", name]:
                found = [group for group in self._groups("apis") if group.name == name]
                return {"kind": "APIGroup", "apiVersion": "v1", **_group(found[0])} if found else None
            case ["apis", name, version] if name:
                return self._resources(name, version)
        return None

    def _groups(self, root: str) -> list[Group]:
        """Return the API groups below `/api` (the core group) or `/apis` (all other groups)."""
        return [group for group in self._made.groups if (group.name == "") == (root == "api")]

    def _kinds_of(self, group: str, version: str) -> list[Kind]:
        return sorted(self._made.kinds.get((group, version), ()), key=lambda kind: kind.resource.plural)

    def _core_versions(self) -> dict[str, Any]:
        versions = [version for group in self._groups("api") for version in group.versions]
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": self._server_address}
        return {"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": [address]}

    def _resources(self, group: str, version: str) -> dict[str, Any] | None:
        kinds = self._kinds_of(group, version)
        if not kinds:
            return None
        head = {"kind": "APIResourceList", "apiVersion": "v1"} if group else {"kind": "APIResourceList"}
        resources = [entry for kind in kinds for entry in self._entries(kind)]
        return {**head, "groupVersion": f"{group}/{version}" if group else version, "resources": resources}

    def _entries(self, kind: Kind) -> Iterator[dict[str, Any]]:
        plural = kind.resource.plural
        yield {
            "name": plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.gvk.kind,
            "verbs": _verbs(kind),
            **_names(kind),
            **self._storage_version(kind),
        }
        for part in _subresources(kind):
            other = {} if _is_own(part, kind) else {"group": part.kind.group, "version": part.kind.version}
            yield {
                "name": f"{plural}/{part.name}",
                "singularName": "",
                "namespaced": kind.namespaced,
                **other,
                "kind": part.kind.kind,
                "verbs": sorted(part.verbs),
            }

    @staticmethod
    def _storage_version(kind: Kind) -> dict[str, str]:
        """Return the hash of the kind's storage version (see apiserver's `discovery/storageversionhash.go`)."""
        if not {"create", "get"} <= kind.verbs:
            return {}
        digest = sha256(f"{kind.storage.group}/{kind.stored_version}/{kind.name}".encode()).digest()
        return {"storageVersionHash": b64encode(digest[:8]).decode("ascii")}

    def _everything(self, root: str, version: str) -> dict[str, Any]:
        items = [
            {"metadata": {"name": group.name} if group.name else {}, "versions": versions}
            for group in self._groups(root)
            if (versions := [*self._versions(group)])
        ]
        head = {"kind": "APIGroupDiscoveryList", "apiVersion": f"apidiscovery.k8s.io/{version}", "metadata": {}}
        return {**head, "items": items}

    def _versions(self, group: Group) -> Iterator[msgspec.Raw | dict[str, Any]]:
        for version in group.versions:
            key = group.name, version
            if key in self._made.remote:
                resources, is_current = self._made.remote[key]
                listed = {"resources": resources} if resources else {}
                yield {"version": version, **listed, "freshness": "Current" if is_current else "Stale"}
            elif key in self._made.kinds:
                yield self._discovered(*key)

    def _discovered(self, group: str, version: str) -> msgspec.Raw:
        kinds = self._kinds_of(group, version)
        of = [(kind, kind.listed_verbs) for kind in kinds]
        piece = self._pieces.get((group, version))
        if piece is None or piece.of != of:
            fields = {"version": version, "resources": [_resource(kind) for kind in kinds], "freshness": "Current"}
            piece = self._pieces[group, version] = _Piece(of, msgspec.Raw(msgspec.json.encode(fields)))
        return piece.encoded


def _epoch(kinds: Kinds, remote: RemoteVersions | None, peers: PeerGroups | None) -> tuple[int, int, int]:
    return kinds.epoch, remote.epoch if remote is not None else 0, peers.epoch if peers is not None else 0


def _aggregated(accept: str) -> tuple[str, str]:
    """Return the version and the profile of aggregated discovery that the client prefers.

    The version is empty if the client prefers unaggregated discovery.
    """
    for clause in preferred(accept):
        if clause.allows(JSON):
            kind, group, version = (clause.parameters.get(name, "") for name in ("as", "g", "v"))
            if not (kind or group or version):
                return "", ""
            if (kind, group, version) in _AGGREGATED:
                return version, clause.parameters.get("profile", "")
    return "", ""


def _group(group: Group) -> dict[str, Any]:
    versions = [{"groupVersion": f"{group.name}/{version}", "version": version} for version in group.versions]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def _resource(kind: Kind) -> dict[str, Any]:
    parts = [
        {
            "subresource": part.name,
            "responseKind": _response_kind(part.kind, own=_is_own(part, kind) and kind.document is None),
            "verbs": sorted(part.verbs),
        }
        for part in _subresources(kind)
    ]
    return {
        "resource": kind.resource.plural,
        "responseKind": _response_kind(kind.gvk, own=kind.document is None),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
        **_names(kind),
        **({"subresources": parts} if parts or kind.document is not None else {}),
    }


def _verbs(kind: Kind) -> list[str]:
    return list(kind.listed_verbs) or sorted(kind.verbs)


def _response_kind(gvk: GroupVersionKind, *, own: bool) -> dict[str, str]:
    """Return the kind of a resource's response.

    If `own` is set, leave out group and version, which the enclosing list contains.
    """
    return {"group": "" if own else gvk.group, "version": "" if own else gvk.version, "kind": gvk.kind}


def _is_own(part: Subresource, kind: Kind) -> bool:
    return part.kind[:2] == kind.gvk[:2]


def _subresources(kind: Kind) -> list[Subresource]:
    return [part for _, part in sorted(kind.subresources.items())]


def _names(kind: Kind) -> dict[str, list[str]]:
    names = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
    return {key: each for key, each in names.items() if each}
