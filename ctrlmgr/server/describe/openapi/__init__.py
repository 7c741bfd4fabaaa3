"""OpenAPI: what this API is, for clients that read it (`kubectl explain`, server-side validation, code generators).

Guarantees:
- Documents are derived from the shipped structure and the kinds that are served; each is made when it is first asked
  for, and kept until the kinds in it change.
- The index of v3 names each document with a digest of its content, so a client that has it need not ask again; asking
  with an old digest is answered with the current document, not to be kept for good.

| path | answer |
|---|---|
| `/openapi/v3` | the index |
| `/openapi/v3/api/v1`, `/openapi/v3/apis/GROUP/VERSION`, … | a document, JSON |
| `/openapi/v2` | everything in one, JSON or gnostic's protobuf |
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ctrlmgr.engine.kinds import Kinds
from ctrlmgr.errors import NotAcceptable
from ctrlmgr.server.describe.document import JSON, Document, choose, document, in_pieces
from ctrlmgr.server.describe.openapi import gnostic
from ctrlmgr.server.describe.openapi.v2 import swagger
from ctrlmgr.server.describe.openapi.v3 import Sections

__all__ = ["OpenAPI"]

_V2, _V3 = "/openapi/v2", "/openapi/v3"

_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_OLD_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""What kubectl asks for; it is answered under the other name, since Go's mime package refuses an at sign."""


class OpenAPI:
    """Answers requests for OpenAPI documents of one set of kinds."""

    def __init__(self, kinds: Kinds) -> None:
        """Tell of `kinds`."""
        self._kinds = kinds
        self._sections = Sections(kinds)
        self._made: dict[tuple[str, str], Document] = {}
        self._renewing = threading.Lock()
        self._epoch = kinds.epoch

    def answer(self, path: str, query: Mapping[str, Sequence[str]], accept: str) -> Document | None:
        """Return the document at a path, None if there is none. It varies with the Accept header.

        Raises `NotAcceptable`.
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
            return self._kept(_V3, JSON, self._index)
        return self._section(path.removeprefix(f"{_V3}/"), query.get("hash", ("",))[-1])

    def _renew(self) -> None:
        """Forget the documents that kinds are in which have changed."""
        with self._renewing:
            epoch = self._kinds.epoch
            if self._epoch == epoch:
                return
            gone = {*self._sections.renew(), _V2, _V3}
            self._made = {key: each for key, each in self._made.items() if key[0] not in gone}
            self._epoch = epoch

    def _v2(self, accept: str) -> Document:
        chosen = choose(accept, (JSON, _OLD_PROTOBUF, _PROTOBUF))
        if chosen is None:
            raise NotAcceptable
        if chosen == JSON:
            return self._kept(_V2, JSON, self._encode_v2)
        return self._kept(_V2, _PROTOBUF, lambda: gnostic.encode(swagger(self._kinds)))

    def _encode_v2(self) -> bytes:
        whole = swagger(self._kinds)
        pieces = {name: in_pieces(whole[name]) for name in ("paths", "definitions")}
        return msgspec.json.encode({**whole, **pieces})

    def _section(self, name: str, digest: str) -> Document | None:
        if name not in self._sections.names:
            return None
        found = self._kept(name, JSON, lambda: self._sections.encode(name))
        return found._replace(immutable=found.etag == f'"{digest}"')

    def _index(self) -> bytes:
        found = {name: self._section(name, "") for name in self._sections.names}
        urls = {name: f"{_V3}/{name}?hash={each.digest}" for name, each in found.items() if each}
        return msgspec.json.encode({"paths": {name: {"serverRelativeURL": url} for name, url in urls.items()}})

    def _kept(self, name: str, media_type: str, make: Callable[[], bytes]) -> Document:
        key = name, media_type
        made = self._made  # `_renew` puts another one in its place
        if key not in made:
            made[key] = document(media_type, make())
        return made[key]
