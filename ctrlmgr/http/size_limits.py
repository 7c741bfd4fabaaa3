"""The limits of every connection, in seconds, bytes and counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of a client. Defaults are those of net/http as kube-apiserver configures it, where it sets any."""

    head_timeout: float = 32.0
    """Seconds to receive the head of a request (ReadHeaderTimeout), and for a TLS handshake."""

    keep_alive: float = 90.0
    """Seconds for which a connection may be idle between requests (IdleTimeout)."""

    write_timeout: float = 30.0
    """Seconds in which a client must read at least a part of its pending answer."""

    linger: float = 0.5
    """Seconds in which a client must read the rest of its answer when the server closes the connection."""

    head_bytes: int = 1 << 20
    """Bytes of the request line and headers together (MaxHeaderBytes)."""

    header_count: int = 1000
    """Headers of one request; each costs more memory than its bytes."""

    framing_bytes: int = 16 * 1024
    """Bytes of a chunked body that are neither content nor required framing: extensions, trailers.

    Rule: net/http `internal/chunked.go`.
    """

    unread_bytes: int = 64 * 1024
    """Bytes of a body that are read before the application asks for it."""

    streams: int = 100
    """Concurrent requests on one HTTP/2 connection (kube-apiserver's --http2-max-streams-per-connection)."""

    noise: int = 10_000
    """HTTP/2 frames within `head_timeout` that request nothing."""

    resets: int = 100
    """Requests of an HTTP/2 connection within `head_timeout` that end before their answer, beyond completed ones."""

    least_room: int = 1024
    """Bytes from which a WINDOW_UPDATE does not count as noise.

    Go's client sends at least 4,096 (`inflowMinRefresh`).
    """

    heads_bytes: int = 64 << 20
    """Bytes of all long heads of running requests of a server."""

    connection_heads_bytes: int = 4 << 20
    """Bytes of all long heads of running requests of a connection."""

    short_head: int = 8 * 1024
    """Bytes of a head that is always accepted and not counted."""

    bodies_bytes: int = 256 << 20
    """Bytes of all bodies of a server; beyond it, only short bodies are accepted."""

    peer_bodies_bytes: int = 64 << 20
    """Bytes of all bodies of one client address."""

    body_pause: float = 5.0
    """Seconds in which a counted body must make progress."""

    body_progress: int = 16 * 1024
    """Bytes of progress in that time."""

    short_body: int = 64 * 1024
    """Bytes of a short body, which is not counted."""


DEFAULT = Bounds()
