"""The limits that apply to every connection, in seconds, bytes and counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits that apply to a client.

    If kube-apiserver or Go's net/http has the same limit, the default is their value.
    """

    head_timeout: float = 32.0
    """Maximum seconds to receive the head of a request (ReadHeaderTimeout), and for a TLS handshake."""

    keep_alive: float = 90.0
    """Seconds for which a connection may be idle between requests (IdleTimeout)."""

    write_timeout: float = 30.0
    """Maximum seconds that a client may take to read at least a part of its pending response."""

    linger: float = 0.5
    """Maximum seconds that a client may take to read the rest of its response when the server closes the connection."""

    head_bytes: int = 1 << 20
    """Maximum bytes of the request line and headers together (MaxHeaderBytes)."""

    header_count: int = 1000
    """Maximum number of headers of one request.

    The number of headers is limited because a header needs more memory than its bytes.
    """

    framing_bytes: int = 16 * 1024
    """Maximum bytes of a chunked body's extensions and trailers, which are neither content nor necessary framing.

    Rule: net/http `internal/chunked.go`.
    """

    unread_bytes: int = 64 * 1024
    """Maximum bytes of a body that are read before the application asks for the body."""

    streams: int = 100
    """Maximum concurrent requests on one HTTP/2 connection (kube-apiserver's --http2-max-streams-per-connection)."""

    noise: int = 10_000
    """Maximum number of HTTP/2 frames within `head_timeout` that request nothing."""

    resets: int = 100
    """The maximum by which the number of requests that ended without a response may exceed that of completed requests.

    The limit applies to one HTTP/2 connection in a period of `head_timeout` seconds.
    """

    least_room: int = 1024
    """A WINDOW_UPDATE of fewer bytes than this counts as noise.

    The default does not affect Go's client, which sends at least 4,096 bytes (`inflowMinRefresh`).
    """

    heads_bytes: int = 64 << 20
    """Maximum bytes of all long heads of a server's running requests."""

    connection_heads_bytes: int = 4 << 20
    """Maximum bytes of all long heads of a connection's running requests."""

    short_head: int = 8 * 1024
    """Maximum bytes of a head that is always accepted and not counted against the budgets."""

    bodies_bytes: int = 256 << 20
    """Maximum bytes of all bodies that a server holds. If the limit is reached, the server accepts only short bodies.
    """

    peer_bodies_bytes: int = 64 << 20
    """Maximum bytes of all bodies that a server holds for one client address."""

    body_pause: float = 5.0
    """Seconds within which a client must send `body_progress` bytes of a counted body."""

    body_progress: int = 16 * 1024
    """The bytes of a counted body that a client must send within `body_pause` seconds."""

    short_body: int = 64 * 1024
    """Maximum bytes of a short body, which is not counted."""


DEFAULT = Bounds()
