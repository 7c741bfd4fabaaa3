"""The bounds that every connection keeps, in seconds, bytes and counts: declared once, given to all that need them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a client may take; the defaults are those of net/http as kube-apiserver sets it up, where it sets any."""

    head_timeout: float = 32.0
    """Seconds for the head of a request (ReadHeaderTimeout), and for a TLS handshake."""

    keep_alive: float = 90.0
    """Seconds for which a connection may be idle between requests (IdleTimeout)."""

    write_timeout: float = 30.0
    """Seconds in which a client must have read something of what waits for it."""

    linger: float = 0.5
    """Seconds that a client has to read the last of its answer when the server closes its connection."""

    head_bytes: int = 1 << 20
    """Bytes of request line and headers together (MaxHeaderBytes)."""

    header_count: int = 1000
    """Headers of one request: a short one costs far more memory than its bytes."""

    framing_bytes: int = 16 * 1024
    """Bytes of a chunked body that are neither content nor the framing it needs: extensions, trailers
    (net/http `internal/chunked.go`)."""

    unread_bytes: int = 64 * 1024
    """Bytes of a body that are taken in before the application asks for it."""

    streams: int = 100
    """Requests under way at a time on one HTTP/2 connection (kube-apiserver's --http2-max-streams-per-connection)."""

    noise: int = 10_000
    """Frames of HTTP/2 that ask for nothing, within `head_timeout`."""

    resets: int = 100
    """Requests of an HTTP/2 connection that end before they are answered, within `head_timeout` and beyond those that
    are completed meanwhile."""

    least_room: int = 1024
    """Bytes of a WINDOW_UPDATE that is not noise. Go's client sends 4,096 or more (`inflowMinRefresh`)."""

    heads_bytes: int = 64 << 20
    """Bytes of all long heads of a server together, of requests under way."""

    connection_heads_bytes: int = 4 << 20
    """The same of one connection."""

    short_head: int = 8 * 1024
    """Bytes of a head that is always accepted, and not counted."""

    bodies_bytes: int = 256 << 20
    """Bytes of all bodies of a server together, beyond which only short ones are taken in."""

    peer_bodies_bytes: int = 64 << 20
    """The same of one client's address."""

    body_pause: float = 5.0
    """Seconds in which something must have come of a body that is counted."""

    body_progress: int = 16 * 1024
    """Bytes that must have come of it meanwhile."""

    short_body: int = 64 * 1024
    """Bytes of a body that is taken in nevertheless."""


DEFAULT = Bounds()
