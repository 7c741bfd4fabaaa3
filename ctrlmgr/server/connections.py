"""Keeps HTTP connections to other processes, sends calls on them, and reads the responses.

Guarantees:
- Only calls with the same authorities, client certificate and verification setting share a connection.
- A response of more than `MAX_ANSWER` bytes is an error.
- A failed call raises no error except cancellation; its reply contains the error message of Go's HTTP client.
"""

from __future__ import annotations

import re
import ssl
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from ctrlmgr import __version__
from ctrlmgr.caches import BoundedCache
from ctrlmgr.engine.calls.call import Call, Reply
from ctrlmgr.server.go_http_errors import EOF, RESET, TOO_MANY_REDIRECTS, malformed, of_tls, root, unreachable
from ctrlmgr.settings.kubeconfig import trusting
from ctrlmgr.tracing import spans

MAX_ANSWER: Final = 16 * 1024 * 1024
"""Maximum size of a response, in bytes."""
_CONTEXTS: Final = 64
"""Maximum number of cached TLS contexts.

Each combination of authorities and client certificate has its own TLS context.
"""
_CONTEXT_BYTES: Final = 16 * 1024 * 1024
"""Maximum total size of the cached authorities and client certificates, in bytes."""
_IDLE = 90.0
"""Seconds after which an idle connection to another process is closed."""
_REDIRECTS = 10
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json, */*",
    "Accept-Encoding": "identity",
    "User-Agent": f"ctrlmgr/{__version__}",
}

_Trust = tuple[bytes, bytes, bool]


class Connections:
    """Keeps HTTP connections; only the event loop on which an instance was created may use the instance."""

    def __init__(self) -> None:
        """Create an object without connections."""
        self._contexts: BoundedCache[_Trust, ssl.SSLContext] = BoundedCache(
            "tls-contexts", entries=_CONTEXTS, size=_CONTEXT_BYTES
        )
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),
            auto_decompress=False,
        )

    async def answer(self, call: Call) -> Reply:
        """Return the response to a call; if the call fails, return a reply with the problem.

        The caller must limit the duration of the call.
        """
        try:
            return await self._answered(call)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Reply(problem=_in_go_words(error, call))

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def _answered(self, call: Call) -> Reply:
        url, name, headers = URL(call.url), call.server_name, {**_HEADERS, **call.credentials.headers}
        if context := spans.current():
            headers["Traceparent"] = context
        if call.address is not None:
            host, port = call.address
            headers["Host"] = urlsplit(call.url).netloc
            name = name or url.host or ""
            url = url.with_host(host).with_port(port)
        async with self._session.request(
            call.method,
            url,
            data=call.body,
            headers=headers,
            ssl=self._context(call),
            server_hostname=name or None,
            max_redirects=_REDIRECTS,
            allow_redirects=not call.is_plain,
        ) as response:
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > MAX_ANSWER:
                    response.close()
                    return Reply(problem=f"http: response body of more than {MAX_ANSWER} bytes")
            media_type = response.headers.get("Content-Type", "").partition(";")[0].strip()
            later = response.headers.get("Retry-After", "")
            seconds = int(later) if _INTEGER.fullmatch(later) else None
            return Reply(response.status, media_type, bytes(body), retry_after=seconds)

    def _context(self, call: Call) -> ssl.SSLContext:
        """Return a TLS context that trusts the call's authorities and presents the call's client certificate."""
        key = (call.ca_bundle, call.credentials.certificate, call.is_checked)
        context = self._contexts.get(key)
        if context is None:
            context = trusting(*key)
            self._contexts.put(key, context, len(call.ca_bundle) + len(call.credentials.certificate))
        return context


def _in_go_words(error: Exception, call: Call) -> str:
    cause = root(error)
    if words := of_tls(cause):
        return words
    match error:
        case aiohttp.ClientConnectorError():
            return unreachable(cause, call.url, call.address)
        case aiohttp.TooManyRedirects():
            return TOO_MANY_REDIRECTS
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            return EOF
        case aiohttp.ClientResponseError():
            return malformed(error)
        case ConnectionResetError() | aiohttp.ClientOSError():
            return RESET if isinstance(cause, ConnectionResetError) else EOF
    return str(error) or type(error).__name__
