"""The address of a server to which a proxy passes requests on, and the errors that such requests raise."""

from __future__ import annotations

import ssl
from typing import NamedTuple

from ctrlmgr.errors import CtrlmgrError


class Upstream(NamedTuple):
    """A server to which requests are passed on. Requests to equal `Upstream`s share connections."""

    host: str
    """The host name or IP address to connect to."""
    port: int
    tls: ssl.SSLContext | None = None
    """The TLS context with the trusted authorities and the client certificate; None for a connection without TLS."""
    server_name: str = ""
    """The name that the server's certificate must have, if it differs from the host."""

    @property
    def authority(self) -> str:
        """The host and the port, as they appear in URLs."""
        return authority(self.host, self.port)


def authority(host: str, port: int) -> str:
    """Return a host and a port as they appear in URLs: an IPv6 address is in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class UpstreamFailed(CtrlmgrError):
    """Raised if a server cannot be reached, or its response is not HTTP; `__cause__` is the reason, if it is known."""

    default_message = "the server was not reached, or its response is not HTTP"


class UpstreamUnreachable(UpstreamFailed):
    """Raised if no connection to the server could be made."""

    default_message = "no connection to the server could be made"


class UpstreamRefused(UpstreamFailed):
    """Raised if the server refuses an upgrade."""

    default_message = "the server refused the upgrade"


class UpstreamClosed(UpstreamFailed):
    """Raised if the server closed the connection before its response was complete."""

    default_message = "the server closed the connection before its response was complete"


class UpstreamMalformed(UpstreamFailed):
    """Raised if the server's response is not valid HTTP/1."""

    default_message = "the server's response is not valid HTTP/1"


class UpstreamTimeout(UpstreamFailed):
    """Raised if the server did not respond in time."""

    default_message = "the server did not respond in time"
