"""Stores the OpenAPI v2 documents of extension servers, which become part of `/openapi/v2`.

Guarantees: no request waits for an extension server. A document is downloaded again only if its ETag has changed; the
last document of a server that fails is kept. A document that cannot be encoded as protobuf counts as a failure, so that
it harms no other document. The documents are decoded and checked on a thread, one at a time.

Source: kube-aggregator `pkg/controllers/openapi/aggregator`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.authentication.user import User
from ctrlmgr.engine.calls.remote_services import RemoteService
from ctrlmgr.http.framing import Header
from ctrlmgr.http.proxying.upstream_address import UpstreamFailed
from ctrlmgr.server.aggregating.extension_servers import ExtensionServers
from ctrlmgr.server.aggregating.fetching import Fetcher
from ctrlmgr.server.aggregating.remote_documents import RemoteDocuments, Version
from ctrlmgr.server.describe.openapi import gnostic
from ctrlmgr.server.describe.openapi.merging import without_other_paths

TIMEOUT: Final = 60.0
"""Maximum seconds of a request for a document (`specDownloadTimeout`)."""
_LONGEST: Final = 3600.0
"""Maximum seconds between retries of a failed request (`failedUpdateMaxExpDelay`)."""
_PATH: Final = "/openapi/v2"
_JSON: Final[Header] = (b"accept", b"application/json")
_USER: Final = User("system:aggregator")
"""The user as which documents are requested (`aggregatorUser`)."""
_MALFORMED: Final = (TypeError, AttributeError, KeyError, IndexError, ValueError, RecursionError)


class RemoteSwagger(NamedTuple):
    """The OpenAPI v2 document of one version; None if the server has none."""

    etag: str = ""
    """The server's ETag; a digest if the server sends none."""
    document: Mapping[str, Any] | None = None
    """The document's `paths` below the version's path, its `definitions` and `parameters`."""


class _Parts(msgspec.Struct):
    paths: dict[str, msgspec.Raw] | None = None
    definitions: dict[str, msgspec.Raw] | None = None
    parameters: dict[str, msgspec.Raw] | None = None


class RemoteSwaggers(RemoteDocuments[RemoteService, RemoteSwagger]):
    """The OpenAPI v2 documents of all extension servers."""

    def __init__(self, servers: ExtensionServers) -> None:
        """Ask `servers`."""
        self._checking = asyncio.Lock()
        super().__init__(servers, _LONGEST)

    def in_order(self) -> Sequence[Mapping[str, Any]]:
        """Return the documents by descending priority of their groups, then by name of their APIServices."""
        services, documents = self.servers.services, self.versions
        priorities: dict[str, int] = {}
        for each in services.values():
            priorities[each.group] = max(each.group_priority, priorities.get(each.group, each.group_priority))
        ordered = sorted(services.items(), key=lambda item: (-priorities[item[1].group], item[1].name))
        found = (documents.get(key, RemoteSwagger()).document for key, _ in ordered)
        return tuple(each for each in found if each is not None)

    def without_answer(self, before: RemoteSwagger | None) -> RemoteSwagger:
        """Return the OpenAPI document that was downloaded last."""
        return before or RemoteSwagger()

    async def ask(self, key: Version, remote: RemoteService, fetcher: Fetcher[RemoteService]) -> RemoteSwagger:
        """Return the OpenAPI document of a version; it is downloaded only if its ETag has changed."""
        before = self.without_answer(self.versions.get(key))
        condition = [(b"if-none-match", before.etag.encode("latin-1"))] if before.etag.endswith('"') else []
        answer = await fetcher.fetch(remote, _PATH, [_JSON, *condition], TIMEOUT, _USER)
        if answer.code == 404 or (answer.code == 304 and condition):
            return before
        if answer.code != 200:
            raise UpstreamFailed(f"the response to the request for the OpenAPI document has the status {answer.code}")
        etag = answer.header(b"etag") or hashlib.sha256(answer.body).hexdigest()
        if etag == before.etag:
            return before
        async with self._checking:
            return RemoteSwagger(etag, await asyncio.to_thread(_checked, remote, answer.body))


def _checked(remote: RemoteService, body: bytes) -> Mapping[str, Any] | None:
    """Return the part of a document that belongs to the version; None if the document has no paths."""
    try:
        document = _decoded(msgspec.json.decode(body, type=_Parts))
        prefix = f"/apis/{remote.group}/{remote.version}/"
        found = without_other_paths(document, lambda path: path.startswith(prefix))
        gnostic.encode(found)
    except _MALFORMED as error:
        raise UpstreamFailed(f"the OpenAPI v2 document of {remote.name} cannot be read: {error}") from error
    return found if found["paths"] else None


def _decoded(parts: _Parts) -> Mapping[str, Mapping[str, Any]]:
    """Decode each path, definition and parameter separately, so that other threads can run in between."""
    fields = {"paths": parts.paths, "definitions": parts.definitions, "parameters": parts.parameters}
    return {
        field: {name: msgspec.json.decode(each, type=dict[str, Any]) for name, each in (found or {}).items()}
        for field, found in fields.items()
    }
