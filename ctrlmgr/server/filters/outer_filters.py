"""Implements the filters before authentication: CORS, HSTS, GOAWAY, and refusals while the server stops.

Guarantees:
- A web page of an allowed origin may read responses (CORS, the Fetch standard). The preflight request of such a page
  gets a 204 response at once, without authentication.
- If HSTS directives are configured, every response has the header Strict-Transport-Security (RFC 6797).
- If a probability for GOAWAY is configured, the server requests some HTTP/2 clients to open a new connection, so that a
  load balancer can choose another server. After a GOAWAY, the server still answers the running requests of the old
  connection.
- If the settings say so, a stopping server answers new requests with 429 and Retry-After, and asks the client to close
  the connection. Health checks, metrics and requests of kube-apiserver are still served.

Source: apiserver `pkg/server/filters/{cors,hsts,goaway,with_retry_after}.go`; for the values
`pkg/server/options/server_run_options.go`.
"""

from __future__ import annotations

from random import Random
from typing import Final

from ctrlmgr import regexp
from ctrlmgr.errors import SettingsError
from ctrlmgr.http.framing import Header
from ctrlmgr.server.presenting.responses import NO_SNIFFING, TEXT_TYPE, Response
from ctrlmgr.server.request import Request
from ctrlmgr.settings.server_settings import ServerSettings

_CORS: Final = (
    (b"access-control-allow-methods", b"POST, GET, OPTIONS, PUT, DELETE, PATCH"),
    (
        b"access-control-allow-headers",
        b"Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, "
        b"If-Modified-Since",
    ),
    (b"access-control-expose-headers", b"Date"),
    (b"access-control-allow-credentials", b"true"),
)
_PREFLIGHT_ANSWER: Final = Response(204, b"", ())
_STOPPING_ANSWER: Final = Response(
    429,
    b"The apiserver is shutting down, please try again later.\n",
    (TEXT_TYPE, NO_SNIFFING, (b"retry-after", b"5")),
)
_SERVED_TO_THE_END: Final = ("/readyz", "/livez", "/healthz", "/metrics")
"""The beginnings of paths that a stopping server still serves."""
_API_SERVERS: Final = b"kube-apiserver/"
_DIRECTIVES: Final = ("includeSubDomains", "preload")
_LONGEST_ORIGIN: Final = 1024
"""Maximum length in bytes of an Origin header that is compared with the patterns; host names have at most 253 bytes."""


class OuterFilters:
    """The filters that the server's settings configure. Used on the event loop's thread only."""

    def __init__(self, settings: ServerSettings, *, random: Random) -> None:
        """Create the filters that `settings` configure; raises `SettingsError` if a pattern or directive is invalid."""
        self._origins = [_pattern(each) for each in settings.cors_allowed_origins]
        directives = "; ".join(_directive(each) for each in settings.strict_transport_security_directives)
        self._always: tuple[Header, ...] = ((b"strict-transport-security", directives.encode()),) if directives else ()
        self._goaway_chance = settings.goaway_chance
        self._random = random
        self.refuses_at_the_end = settings.shutdown_send_retry_after
        """Whether the server refuses new requests with 429 while it stops."""
        self._is_stopping = False
        self.is_active = bool(self._origins or directives or self._goaway_chance or self.refuses_at_the_end)
        """Whether any of the filters is configured."""

    def stop(self) -> None:
        """Refuse new requests from now on, if the settings require this from a stopping server."""
        self._is_stopping = self.refuses_at_the_end

    def begin(self, request: Request) -> Response | None:
        """Add the filters' headers to the request's response.

        Return the response to a preflight request and to a request that a stopping server refuses, otherwise None.
        """
        if self._is_stopping and not _is_served_to_the_end(request):
            request.exchange.keep_alive = False
            request.exchange.retire()
            return _STOPPING_ANSWER
        if self._goaway_chance and self._random.random() < self._goaway_chance:
            request.exchange.retire()
        request.headers = (*request.headers, *self._always)
        origin = request.header(b"origin")
        if not self._origins or not self._is_allowed(origin):
            return None
        request.headers = (*request.headers, (b"access-control-allow-origin", origin), *_CORS)
        return _PREFLIGHT_ANSWER if request.method == "OPTIONS" else None

    def _is_allowed(self, origin: bytes) -> bool:
        if not origin or len(origin) > _LONGEST_ORIGIN:
            return False
        text = origin.decode("utf-8", "replace")
        return any(pattern.search(text) for pattern in self._origins)


def _is_served_to_the_end(request: Request) -> bool:
    is_exempt = request.location.path.startswith(_SERVED_TO_THE_END)
    return is_exempt or request.header(b"user-agent").startswith(_API_SERVERS)


def _pattern(text: str) -> regexp.Regexp:
    """Compile the pattern of an origin.

    The pattern must match the whole host; otherwise other hosts could match too (CVE-2022-1996).
    """
    try:
        pattern = regexp.compiled(text)
    except regexp.PatternError as error:
        raise SettingsError(f"server.cors_allowed_origins has an invalid regular expression: {error}") from error
    if not any(start in text for start in ("^", "//")) or not any(end in text for end in ("$", ":")):
        raise SettingsError(
            f"server.cors_allowed_origins: {text!r} does not match the host's start and end; write ^https://HOST$"
        )
    return pattern


def _directive(text: str) -> str:
    name, _, age = text.partition("=")
    if text not in _DIRECTIVES and (name != "max-age" or not age or "=" in age):
        raise SettingsError(
            f"server.strict_transport_security_directives: {text!r} is not one of max-age=SECONDS, includeSubDomains, "
            "preload"
        )
    return text
