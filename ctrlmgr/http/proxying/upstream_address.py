"""The address of a server that requests are passed on to, and the errors of reaching it."""

from __future__ import annotations

import ssl
from typing import NamedTuple

from ctrlmgr.errors import CtrlmgrError


class Upstream(NamedTuple):
    """A server that requests are passed on to. Connections are shared by all requests to an equal `Upstream`."""

    host: str
    """The host name or address to connect to."""
    port: int
    tls: ssl.SSLContext | None = None
    """The trusted authorities and the client certificate; None for a connection without TLS."""
    server_name: str = ""
    """The name that the server's certificate must have, if it is not the host."""


class UpstreamFailed(CtrlmgrError):
    """The other server was not reached, or its answer is no HTTP; `__cause__` is the reason, if there is one."""


class UpstreamUnreachable(UpstreamFailed):
    """No connection to the other server could be made."""


class UpstreamRefused(UpstreamFailed):
    """The other server does not grant the upgrade."""


class UpstreamClosed(UpstreamFailed):
    """The other server closed the connection before its answer was complete."""


class UpstreamMalformed(UpstreamFailed):
    """The other server's answer is no valid HTTP/1."""


class UpstreamTimeout(UpstreamFailed):
    """The other server did not answer in time."""
