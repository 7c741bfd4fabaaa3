"""Serves OpenAPI documents, for `kubectl explain`, client-side validation and code generators.

Guarantees:
- An OpenAPI document is derived from the bundled structure and the served kinds. The server creates a document at the
  first request for it, and caches the document until the kinds in the document change.
- The index of OpenAPI v3 contains the URL of each document with a digest of its content, so that clients can cache the
  document. A request with an outdated digest gets the current document; the client may not cache this response.

| path | answer |
|---|---|
| `/openapi/v3` | the index |
| `/openapi/v3/api/v1`, `/openapi/v3/apis/GROUP/VERSION`, … | a document, JSON |
| `/openapi/v2` | all kinds in one document with those of extension servers, JSON or gnostic's protobuf |
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.errors import NotAcceptable
from ctrlmgr.server.describe.document import JSON, Document, choose, document, in_pieces
from ctrlmgr.server.describe.openapi import gnostic
from ctrlmgr.server.describe.openapi.merging import merged
from ctrlmgr.server.describe.openapi.v2 import swagger
from ctrlmgr.server.describe.openapi.v3 import Sections

__all__ = ["OpenAPI"]

_V2, _V3 = "/openapi/v2", "/openapi/v3"

_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_OLD_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""The media type that kubectl accepts.

The response names this media type differently, because Go's mime package rejects an at sign.
"""


class RemoteSchemas(Protocol):
    """The OpenAPI v3 documents of extension servers."""

    @property
    def versions(self) -> Mapping[tuple[str, str], tuple[str, bytes]]:
        """The URL of each document and its JSON (empty without a document), by group and version."""


class OpenAPI:
    """Serves the OpenAPI documents of one registry of kinds."""

    def __init__(
        self,
        kinds: Kinds,
        remote: RemoteSchemas | None = None,
        swaggers: Callable[[], Sequence[Mapping[str, Any]]] = tuple,
        *,
        mounted_at: str = "",
    ) -> None:
        """Create the OpenAPI documents about `kinds`.

        `remote` contains the v3 documents of extension servers. `swaggers` returns their v2 documents, in the order in
        which these are merged. `mounted_at` is the start of the path in the links of the index.
        """
        self._kinds = kinds
        self._links = f"{mounted_at}{_V3}"
        self._swaggers = swaggers
        self._merged_swaggers: Sequence[Mapping[str, Any]] = ()
        self._remote = remote
        self._remote_made: dict[tuple[str, str], Document] = {}
        self._sections = Sections(kinds)
        self._made: dict[tuple[str, str], Document] = {}
        self._renewing = threading.Lock()
        self._epoch = kinds.epoch

    def answer(self, path: str, query: Mapping[str, Sequence[str]], accept: str) -> Document | None:
        """Return the OpenAPI document at a URL path; None if no document has this path.

        The format of the document depends on the Accept header. Raises `NotAcceptable` if the client accepts no
        available format.
        """
        self._renew()
        path = path.rstrip("/")
        if path == _V2:
            return self._v2(accept)
        if path != _V3 and not path.startswith(f"{_V3}/"):
            return None
        if choose(accept, (JSON,)) is None:
            raise NotAcceptable
        if path == _V3:
            return self._kept(_V3, JSON, self._index) if not (remote := self._of_servers()) else self._merged(remote)
        return self._section(path.removeprefix(f"{_V3}/"), query.get("hash", ("",))[-1])

    def _renew(self) -> None:
        """Drop the cached OpenAPI documents whose kinds, or documents of extension servers, have changed."""
        with self._renewing:
            epoch, swaggers = self._kinds.epoch, self._swaggers()
            gone = {_V2} if swaggers != self._merged_swaggers else set()
            if self._epoch != epoch:
                gone |= {*self._sections.renew(), _V2, _V3}
            if gone:
                self._made = {key: each for key, each in self._made.items() if key[0] not in gone}
            self._epoch, self._merged_swaggers = epoch, swaggers

    def _v2(self, accept: str) -> Document:
        chosen = choose(accept, (JSON, _OLD_PROTOBUF, _PROTOBUF))
        if chosen is None:
            raise NotAcceptable
        if chosen == JSON:
            return self._kept(_V2, JSON, self._encode_v2)
        return self._kept(_V2, _PROTOBUF, lambda: gnostic.encode(self._swagger()))

    def _swagger(self) -> dict[str, Any]:
        own, others = swagger(self._kinds), self._merged_swaggers
        return merged(own, others) if others else own

    def _encode_v2(self) -> bytes:
        whole = self._swagger()
        pieces = {name: in_pieces(whole[name]) for name in ("paths", "definitions")}
        return msgspec.json.encode({**whole, **pieces})

    def _section(self, name: str, digest: str) -> Document | None:
        found = self._of_servers().get(name)
        if found is None:
            if name not in self._sections.names:
                return None
            found = self._kept(name, JSON, lambda: self._sections.encode(name))
        return found._replace(immutable=found.etag == f'"{digest}"')

    def _of_servers(self) -> Mapping[str, Document]:
        """Return the OpenAPI documents of extension servers, by section."""
        if self._remote is None or not self._remote.versions:
            return {}
        found: dict[tuple[str, str], tuple[str, Document]] = {}
        for (group, version), (url, body) in self._remote.versions.items():
            if body:
                name = f"apis/{group}/{version}" if group else f"api/{version}"
                made = self._remote_made.get((name, url))
                found[name, url] = name, made if made is not None else document(JSON, body)
        self._remote_made = {key: each for key, (_, each) in found.items()}
        return dict(found.values())

    def _merged(self, remote: Mapping[str, Document]) -> Document:
        return document(JSON, self._index(remote))

    def _index(self, remote: Mapping[str, Document] | None = None) -> bytes:
        found = {name: self._section(name, "") for name in sorted({*self._sections.names, *(remote or ())})}
        urls = {name: f"{self._links}/{name}?hash={each.digest}" for name, each in found.items() if each}
        return msgspec.json.encode({"paths": {name: {"serverRelativeURL": url} for name, url in urls.items()}})

    def _kept(self, name: str, media_type: str, make: Callable[[], bytes]) -> Document:
        key = name, media_type
        made = self._made  # use a local name, because `_renew` replaces the attribute
        if key not in made:
            made[key] = document(media_type, make())
        return made[key]
