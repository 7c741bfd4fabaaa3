"""Sends inputs that are not single requests: bytes, frames of HTTP/2 and client certificates, each on a separate
connection.
"""

from __future__ import annotations

import json
import select
import ssl
import tempfile
import time
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.authentication.authorities import CertificateAndKey, make, subject
from tests.robustness.hostile.raw import PATIENCE, connect
from tests.robustness.serving import Site

PING = b"\0\0\x08\x06\0\0\0\0\0attacked"
PONG = b"\0\0\x08\x06\1\0\0\0\0attacked"
"""A PING frame that is sent last, and the acknowledgement that shows that the server has processed
all earlier frames.
"""

_PIECE = 1 << 16
_TAIL = len(PONG) - 1


def trust(site: Site, protocol: str) -> ssl.SSLContext:
    """Return a connection that negotiates a protocol with a server."""
    context = ssl.create_default_context(cadata=_authorities(site))
    context.set_alpn_protocols([protocol])
    return context


def _authorities(site: Site) -> bytes:
    return b"".join(site.trust.get_ca_certs(binary_form=True))


def converse(site: Site, protocol: str, data: bytes, *, stays: bool = True) -> str:
    """Send bytes while reading, and return how the connection ended: "closed" by the server, "answered", or "left" by
    the client.

    Raise TimeoutError if the server neither responds nor closes the connection.
    """
    with connect(site, trust(site, protocol)) as connection:
        connection.setblocking(False)
        return _converse(connection, memoryview(data), stays=stays)


def _converse(connection: ssl.SSLSocket, data: memoryview, *, stays: bool) -> str:
    ends_at, tail = time.monotonic() + PATIENCE, b""
    while time.monotonic() < ends_at:
        try:
            if data:
                data = data[connection.send(data[:_PIECE]) :]
            elif not stays:
                return "left"
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except (OSError, ssl.SSLError):
            return "closed"
        piece = _read(connection)
        if piece == b"":
            return "closed"
        tail = (tail + (piece or b""))[-_PIECE - _TAIL :]
        if PONG in tail:
            return "answered"
        tail = tail[-_TAIL:]
        if piece is None:
            select.select([connection], [connection] if data else [], [], 0.1)
    raise TimeoutError("the server neither answers nor closes the connection")


def _read(connection: ssl.SSLSocket) -> bytes | None:
    """Return the received bytes; None means that no bytes have arrived, and an empty string that the connection is
    closed.
    """
    try:
        return connection.recv(_PIECE)
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return None
    except (OSError, ssl.SSLError):
        return b""


@cache
def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def forged(shape: str, count: int) -> list[CertificateAndKey]:
    """Return this number of certificates; the first one is the client's own certificate.

    `self-issued` certificates have the same subject and key, so that each may have signed any other; a `chain` is
    valid; in a `circle`, two certificates sign each other; `copies` are equal certificates.
    """
    now = datetime.now(UTC)
    made = partial(make, begins=now - timedelta(days=1), ends=now + timedelta(days=1))
    root = made(subject("authority"), is_authority=True, key=_key())
    leaf = made(subject("mallory", ["system:masters"]), root)
    match shape:
        case "self-issued":
            return [leaf, *(made(subject("authority"), is_authority=True, key=_key()) for _ in range(count))]
        case "circle":
            first, second = (made(subject(name), root, is_authority=True) for name in ("one", "two"))
            pair = [made(subject("one"), second, is_authority=True, key=first.key)]
            pair.append(made(subject("two"), first, is_authority=True, key=second.key))
            return [made(subject("mallory"), first), *(pair * count)[:count]]
        case "copies":
            return [leaf, *[root] * count]
    above = [root]
    for at in range(count):
        above.append(made(subject(f"link-{at}"), above[-1], is_authority=True))
    return [made(subject("mallory"), above[-1]), *reversed(above[1:])]


def present(site: Site, shape: bytes) -> str:
    """Connect with the forged certificates that a JSON object describes, and return the response to a request."""
    made = forged(**json.loads(shape))
    context = trust(site, "http/1.1")
    with tempfile.TemporaryDirectory(prefix="ctrlmgr-forged-") as folder:
        file = Path(folder) / "client.pem"
        key = made[0].key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file.write_bytes(key + b"".join(each.pem for each in made))
        context.load_cert_chain(file)
    request = b"GET /api/v1/namespaces HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    try:
        with connect(site, context) as connection:
            connection.sendall(request)
            answer = connection.recv(100)
    except (OSError, ssl.SSLError):
        return "closed"
    assert answer[9:10] != b"2", f"certificates of nobody that is trusted are a right to read: {answer!r}"
    return answer[9:12].decode() or "closed"
