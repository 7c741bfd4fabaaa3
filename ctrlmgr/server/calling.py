"""Calls other processes over HTTPS: what the engine's `CallOut` asks for.

Guarantees:
- A call ends within its timeout, from connecting to the last byte; an answer of more than `MAX_ANSWER` bytes is none.
- Connections are kept and used again, apart for each set of authorities and each certificate that is shown; what a
  connection was trusted for is not trusted by another configuration.
- Nothing is raised: what goes wrong is told in the words that Go's HTTP client has for it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import httpx

from ctrlmgr import __version__
from ctrlmgr.clock import Clock
from ctrlmgr.engine.calls.call import Call, Reply
from ctrlmgr.engine.calls.replies import is_passing
from ctrlmgr.settings.kubeconfig import show

MAX_ANSWER: Final = 16 * 1024 * 1024
"""Bytes of an answer that are read."""
_CLIENTS = 64
"""Sets of authorities for which connections are kept."""
_KEPT = 25
"""Idle connections to keep for each of them."""
_IDLE = 90.0
"""Seconds for which an idle connection is kept."""


_EXPIRED = "certificate has expired or is not yet valid"
_UNKNOWN = "certificate signed by unknown authority"
_X509 = {9: _EXPIRED, 10: _EXPIRED, 18: _UNKNOWN, 19: _UNKNOWN, 20: _UNKNOWN, 21: _UNKNOWN}
"""Go's words for what OpenSSL finds (`X509_V_ERR_…`)."""


class Caller:
    """Makes calls; used on one event loop."""

    def __init__(self, clock: Clock) -> None:
        """Start without connections; `clock` measures calls."""
        self._clock = clock
        self._clients: OrderedDict[tuple[bytes, bytes, bool], httpx.AsyncClient] = OrderedDict()

    async def call(self, calls: Sequence[Call]) -> list[Reply]:
        """Make calls, all at the same time, and return their replies in the same order."""
        tasks = [asyncio.ensure_future(self._call(each)) for each in calls]
        try:
            await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
        return [task.result() for task in tasks]

    async def close(self) -> None:
        """Close all connections."""
        while self._clients:
            _, client = self._clients.popitem()
            await client.aclose()

    async def _call(self, call: Call) -> Reply:
        tries = call.tries
        pause = tries.pause
        for _ in range(tries.most - 1):
            reply = await self._try(call)
            if not is_passing(reply):
                return reply
            await asyncio.sleep(pause)
            pause *= tries.factor
        return await self._try(call)

    async def _try(self, call: Call) -> Reply:
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(call.timeout):
                reply = await self._answered(call)
        except TimeoutError:
            reply = Reply(problem="context deadline exceeded")
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ssl.SSLError, ValueError) as error:
            reply = Reply(problem=in_go_words(error, call.url, call.address))
        return reply._replace(seconds=self._clock.monotonic() - began)

    async def _answered(self, call: Call) -> Reply:
        client = await self._client(call)
        request = _request(client, call)
        response = await client.send(request, stream=True, follow_redirects=True)
        try:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_ANSWER:
                    return Reply(problem=f"http: response body of more than {MAX_ANSWER} bytes")
        finally:
            await response.aclose()
        media_type = response.headers.get("content-type", "").partition(";")[0].strip()
        return Reply(response.status_code, media_type, bytes(body))

    async def _client(self, call: Call) -> httpx.AsyncClient:
        """Return the client that trusts the authorities of a call, and shows its certificate."""
        key = (call.ca_bundle, call.credentials.certificate, call.is_checked)
        client = self._clients.get(key)
        if client is None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT, keepalive_expiry=_IDLE)
            client = httpx.AsyncClient(
                verify=_trusting(*key), limits=limits, timeout=None, trust_env=False, http2=False
            )
            self._clients[key] = client
            if len(self._clients) > _CLIENTS:
                _, oldest = self._clients.popitem(last=False)
                await oldest.aclose()
        self._clients.move_to_end(key)
        return client


def _request(client: httpx.AsyncClient, call: Call) -> httpx.Request:
    url = httpx.URL(call.url)
    headers = {
        "content-type": "application/json",
        "accept": "application/json, */*",
        "user-agent": f"ctrlmgr/{__version__}",
        **call.credentials.headers,
    }
    extensions = {}
    if call.server_name:
        extensions["sni_hostname"] = call.server_name
    if call.address is not None:
        host, port = call.address
        headers["host"] = url.netloc.decode()
        extensions.setdefault("sni_hostname", url.host)
        url = url.copy_with(host=host, port=port)
    return client.build_request("POST", url, content=call.body, headers=headers, extensions=extensions)


def _trusting(ca_bundle: bytes, certificate: bytes, is_checked: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca_bundle.decode("ascii") if ca_bundle else None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not is_checked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        show(context, certificate)
    return context


def in_go_words(error: Exception, url: str, address: tuple[str, int] | None = None) -> str:
    """Say what went wrong as Go's client would; what it has no words for is told as it is.

    `url` was called, at `address` if its host was looked up by other means.
    """
    cause = _root(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        words = _X509.get(cause.verify_code, cause.verify_message)
        return f"tls: failed to verify certificate: x509: {words}"
    if isinstance(cause, ssl.SSLError):
        return f"tls: {cause.reason or cause}"
    if isinstance(error, httpx.RemoteProtocolError):
        return "EOF" if "without sending" in str(error) or "disconnected" in str(error) else f"malformed HTTP: {error}"
    if isinstance(error, httpx.ReadError | httpx.WriteError):
        return "read: connection reset by peer" if isinstance(cause, ConnectionResetError) else "EOF"
    if isinstance(error, httpx.ConnectError):
        return _unreachable(cause, url, address)
    if isinstance(error, httpx.TooManyRedirects):
        return "stopped after 10 redirects"
    if isinstance(error, httpx.TimeoutException):
        return "context deadline exceeded"
    return str(error) or type(error).__name__


def _unreachable(cause: BaseException, called: str, address: tuple[str, int] | None) -> str:
    url = httpx.URL(called)
    host, port = address or (url.host, url.port or (80 if url.scheme == "http" else 443))
    if isinstance(cause, socket.gaierror):
        return f"dial tcp: lookup {host}: no such host"
    if isinstance(cause, OSError) and cause.errno is not None:
        words = (cause.strerror or str(cause)).lower()
        with suppress(ValueError):
            words = words[words.index("connect call failed") :] and "connection refused"
        return f"dial tcp {host}:{port}: connect: {words}"
    return f"dial tcp {host}:{port}: connect: connection refused"


def _root(error: BaseException) -> BaseException:
    """Return what an error was raised for, as far down as that is known."""
    seen = error
    while (below := seen.__cause__ or seen.__context__) is not None:
        seen = below
    return seen
