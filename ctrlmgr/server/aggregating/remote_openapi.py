"""Stores the OpenAPI v3 documents of extension servers, for `kubectl explain` and validation by clients.

Guarantees: no request waits for an extension server. A document is downloaded again only if its digest in the server's
index has changed. If a server fails, its last document is kept; a server without OpenAPI v3 has no document.

Source: kube-aggregator `pkg/controllers/openapiv3`.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from ctrlmgr.engine.calls.remote_services import RemoteService
from ctrlmgr.http.framing import Header
from ctrlmgr.http.proxying.upstream_address import UpstreamFailed
from ctrlmgr.server.aggregating.extension_servers import ExtensionServers
from ctrlmgr.server.aggregating.fetching import Fetcher
from ctrlmgr.server.aggregating.remote_documents import RemoteDocuments, Version

TIMEOUT: Final = 30.0
"""Maximum seconds of a request for one document."""
_LONGEST: Final = 3600.0
"""Maximum seconds between retries of a failed request (`failedUpdateMaxExpDelay`)."""
_INDEX: Final = "/openapi/v3"
_JSON: Final[Header] = (b"accept", b"application/json")


class RemoteSchema(NamedTuple):
    """The OpenAPI v3 document of one version; empty if the server has none."""

    url: str = ""
    """The URL path of the document on the extension server; it contains the document's digest."""
    body: bytes = b""


class _Path(msgspec.Struct, rename={"url": "serverRelativeURL"}):
    url: str


class _Index(msgspec.Struct):
    paths: dict[str, _Path]


class RemoteOpenAPI(RemoteDocuments[RemoteSchema]):
    """The OpenAPI v3 documents of all extension servers."""

    def __init__(self, servers: ExtensionServers) -> None:
        """Ask `servers`."""
        super().__init__(servers, _LONGEST)

    def without_answer(self, before: RemoteSchema | None) -> RemoteSchema:
        """Return the OpenAPI document that was downloaded last."""
        return before or RemoteSchema()

    async def ask(self, key: Version, remote: RemoteService, fetcher: Fetcher) -> RemoteSchema:
        """Return the OpenAPI document of a version; it is downloaded only if its digest has changed."""
        answer = await fetcher.fetch(remote, _INDEX, [_JSON], TIMEOUT)
        if answer.code == 404:
            return RemoteSchema()
        entry = msgspec.json.decode(_ok(answer.code, answer.body), type=_Index).paths.get(remote.path.strip("/"))
        if entry is None:
            return RemoteSchema()
        before = self.versions.get(key)
        if before is not None and before.url == entry.url:
            return before
        return RemoteSchema(entry.url, await self._document(remote, entry.url, fetcher))

    async def _document(self, remote: RemoteService, url: str, fetcher: Fetcher) -> bytes:
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
