"""Stores the OpenAPI v3 documents of extension servers, for `kubectl explain` and validation by clients.

Guarantees: no client's request waits for an extension server. A document is downloaded again only if its digest in the
server's index has changed. If a server fails, its last document is kept. If a server has no OpenAPI v3, its OpenAPI v2
document is downloaded, with its ETag, and converted to v3; if the server has neither, there is no document.

Source: kube-aggregator `pkg/controllers/openapiv3`, `pkg/controllers/openapi/aggregator/downloader.go`.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from ctrlmgr.engine.calls.remote_services import RemoteService
from ctrlmgr.http.framing import Header
from ctrlmgr.http.proxying.upstream_address import UpstreamFailed
from ctrlmgr.server.aggregating.extension_servers import ExtensionServers
from ctrlmgr.server.aggregating.fetching import Fetcher
from ctrlmgr.server.aggregating.openapi_conversion import as_v3
from ctrlmgr.server.aggregating.remote_documents import RemoteDocuments, Version

TIMEOUT: Final = 30.0
"""Maximum seconds of a request for one document."""
_LONGEST: Final = 3600.0
"""Maximum seconds between retries of a failed request (`failedUpdateMaxExpDelay`)."""
_INDEX: Final = "/openapi/v3"
_V2: Final = "/openapi/v2"
_ETAG: Final = f"{_V2}?etag="
"""The beginning of the URL under which a converted document is stored, before the ETag of the OpenAPI v2 document."""
_JSON: Final[Header] = (b"accept", b"application/json")


class RemoteSchema(NamedTuple):
    """The OpenAPI v3 document of one version; empty if the server has none."""

    url: str = ""
    """The URL path of the document on the extension server, with the document's digest or (OpenAPI v2) its ETag."""
    body: bytes = b""


class _Path(msgspec.Struct, rename={"url": "serverRelativeURL"}):
    url: str


class _Index(msgspec.Struct):
    paths: dict[str, _Path]


class RemoteOpenAPI(RemoteDocuments[RemoteService, RemoteSchema]):
    """The OpenAPI v3 documents of all extension servers."""

    def __init__(self, servers: ExtensionServers) -> None:
        """Create an instance that requests OpenAPI documents from `servers`."""
        super().__init__(servers, _LONGEST)

    def without_answer(self, before: RemoteSchema | None) -> RemoteSchema:
        """Return the OpenAPI document that was downloaded last."""
        return before or RemoteSchema()

    async def ask(self, key: Version, remote: RemoteService, fetcher: Fetcher[RemoteService]) -> RemoteSchema:
        """Return the OpenAPI document of a version; download the document only if its digest has changed."""
        answer = await fetcher.fetch(remote, _INDEX, [_JSON], TIMEOUT)
        if answer.code == 404:
            return await self._converted(remote, self.versions.get(key), fetcher)
        entry = msgspec.json.decode(_ok(answer.code, answer.body), type=_Index).paths.get(remote.path.strip("/"))
        if entry is None:
            return RemoteSchema()
        before = self.versions.get(key)
        if before is not None and before.url == entry.url:
            return before
        return RemoteSchema(entry.url, await self._document(remote, entry.url, fetcher))

    async def _converted(
        self, remote: RemoteService, before: RemoteSchema | None, fetcher: Fetcher[RemoteService]
    ) -> RemoteSchema:
        """Return the server's OpenAPI v2 document, converted to v3.

        If the document has not changed, return the stored one.
        """
        etag = before.url.removeprefix(_ETAG) if before is not None and before.url.startswith(_ETAG) else ""
        condition = [(b"if-none-match", etag.encode("latin-1"))] if etag else []
        answer = await fetcher.fetch(remote, _V2, [_JSON, *condition], TIMEOUT)
        if answer.code == 304 and before is not None and etag:
            return before
        if answer.code == 404:
            return RemoteSchema()
        body = _ok(answer.code, answer.body)
        found = answer.header(b"etag")
        url = f"{_ETAG}{found}" if found else f"{_V2}?hash={hashlib.sha256(body).hexdigest()}"
        if before is not None and before.url == url:
            return before
        # The conversion of a large document takes long; this server answers other requests during the conversion.
        return RemoteSchema(url, await asyncio.to_thread(_as_v3, remote, body))

    async def _document(self, remote: RemoteService, url: str, fetcher: Fetcher[RemoteService]) -> bytes:
        parts = urlsplit(url)
        if parts.netloc or not parts.path.startswith("/"):
            raise UpstreamFailed(f"the index of {remote.name} names {url}, which is on another server")
        answer = await fetcher.fetch(remote, f"{parts.path}?{parts.query}", [_JSON], TIMEOUT)
        body = _ok(answer.code, answer.body)
        msgspec.json.decode(body, type=dict[str, msgspec.Raw])  # only documents of versions that clients can read
        return body


def _ok(code: int, body: bytes) -> bytes:
    if code != 200:
        raise UpstreamFailed(f"the response to the request for the OpenAPI document has the status {code}")
    return body


def _as_v3(remote: RemoteService, body: bytes) -> bytes:
    """Return the JSON of an OpenAPI v2 document as JSON of an OpenAPI v3 document."""
    try:
        return msgspec.json.encode(as_v3(msgspec.json.decode(body, type=dict[str, Any])))
    except (TypeError, AttributeError, RecursionError) as error:
        raise UpstreamFailed(f"the OpenAPI v2 document of {remote.name} cannot be converted: {error}") from error
