"""Returns the error messages of Go's HTTP client, which Kubernetes shows unchanged to callers of webhooks."""

from __future__ import annotations

import socket
import ssl
from typing import Final
from urllib.parse import urlsplit

from ctrlmgr.http.proxying.upstream_address import (
    Upstream,
    UpstreamClosed,
    UpstreamFailed,
    UpstreamTimeout,
    UpstreamUnreachable,
)

DEADLINE: Final = "context deadline exceeded"
EOF: Final = "EOF"
RESET: Final = "read: connection reset by peer"
TOO_MANY_REDIRECTS: Final = "stopped after 10 redirects"

_EXPIRED = "certificate has expired or is not yet valid"
_UNKNOWN = "certificate signed by unknown authority"
_X509 = {9: _EXPIRED, 10: _EXPIRED, 18: _UNKNOWN, 19: _UNKNOWN, 20: _UNKNOWN, 21: _UNKNOWN}
"""Go's error messages for OpenSSL's verification errors (`X509_V_ERR_…`)."""


def of_tls(cause: BaseException) -> str:
    """Return Go's message for a failed TLS handshake; empty if the error is not about TLS."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        words = _X509.get(cause.verify_code, cause.verify_message)
        return f"tls: failed to verify certificate: x509: {words}"
    return f"tls: {cause.reason or cause}" if isinstance(cause, ssl.SSLError) else ""


def malformed(error: Exception) -> str:
    """Return Go's message for a response that is not valid HTTP."""
    return f"malformed HTTP: {error}"


def unreachable(cause: BaseException, url: str, address: tuple[str, int] | None = None) -> str:
    """Return Go's message for a failed connection to `url`.

    If the host was not resolved with DNS, the message contains `address` instead of the URL's host.
    """
    parts = urlsplit(url)
    host, port = address or (parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443))
    if isinstance(cause, socket.gaierror):
        return f"dial tcp: lookup {host}: no such host"
    words = "connection refused"
    if isinstance(cause, OSError) and cause.errno is not None:
        message = (cause.strerror or str(cause)).lower()
        words = words if "connect call failed" in message else message
    return f"dial tcp {host}:{port}: connect: {words}"


def failure_words(error: UpstreamFailed, host: str, port: int) -> str:
    """Return Go's message for a request that was forwarded to `host` and failed."""
    cause = root(error)
    match error:
        case UpstreamTimeout():
            return DEADLINE
        case UpstreamUnreachable() if isinstance(error.__cause__, TimeoutError):
            return f"dial tcp {host}:{port}: i/o timeout"
        case UpstreamUnreachable():
            return of_tls(cause) or unreachable(cause, "", (host, port))
        case UpstreamClosed():
            return RESET if isinstance(cause, ConnectionResetError) else EOF
    return str(error)


def proxy_failure_words(error: UpstreamFailed, upstream: Upstream, *, upgrades: bool) -> str:
    """Return the message of apimachinery's proxy for a failed request (`pkg/util/proxy/upgradeaware.go`)."""
    words = failure_words(error, upstream.host, upstream.port)
    if not upgrades:
        return f"error trying to reach service: {words}"
    return f"error dialing backend: {words}" if isinstance(error, UpstreamUnreachable) else words


def root(error: BaseException) -> BaseException:
    """Return the first error in a chain of causes."""
    seen = error
    while (below := seen.__cause__ or seen.__context__) is not None:
        seen = below
    return seen
