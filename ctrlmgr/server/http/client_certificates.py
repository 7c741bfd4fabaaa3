"""What a client presents in its TLS handshake: taken as it comes, to be judged with each request.

Guarantees:
- A handshake never fails because of whose certificate a client presents, or when that ended: as with kube-apiserver,
  such a client may still have a token, and without one is answered 401. That it has the certificate's key is proven.
- Nothing here says whom a certificate is of; see `authn.client_certificates`.

Python's `ssl` can either not ask for a certificate or refuse the handshake. OpenSSL, which it wraps, lets the
application judge (`SSL_CTX_set_cert_verify_callback`). Where that cannot be reached, because OpenSSL is hidden in the
interpreter, the handshake judges by the authorities that were loaded.
"""

from __future__ import annotations

import _ssl
import ctypes
import ssl
from collections.abc import Sequence
from typing import Any

import structlog

log = structlog.get_logger(__name__)

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_GOOD = 1


def _accept(store: int | None, argument: int | None) -> int:
    return _GOOD


_take = _Callback(_accept)
"""Kept for as long as the process lives: OpenSSL calls it."""


def take_any_certificate(context: ssl.SSLContext) -> bool:
    """Have `context` ask clients for a certificate and take any, or none; return whether that could be done.

    If not, it asks for one and takes those of the authorities that it has loaded.
    """
    context.verify_mode = ssl.CERT_OPTIONAL
    try:
        library = ctypes.CDLL(_ssl.__file__)  # finds what the module is linked to
        set_callback = library.SSL_CTX_set_cert_verify_callback
    except (AttributeError, OSError) as error:
        log.warning("client certificates of unknown authorities end the handshake", reason=str(error))
        return False
    set_callback.argtypes = [ctypes.c_void_p, _Callback, ctypes.c_void_p]
    set_callback.restype = None
    set_callback(_pointer(context), _take, None)
    return True


def presented_certificates(connection: ssl.SSLObject | None) -> Sequence[bytes]:
    """Return what a client presented (DER), its own first; nothing without TLS or a certificate."""
    own = connection.getpeercert(binary_form=True) if connection is not None else None
    if connection is None or own is None:
        return ()
    chain = _chain(connection)
    return chain if chain and chain[0] == own else (own,)


def _pointer(context: ssl.SSLContext) -> int:
    """Return the SSL_CTX of a context: CPython has it first in the object (`Modules/_ssl.h`, PySSLContext)."""
    return int(ctypes.c_void_p.from_address(id(context) + object.__basicsize__).value or 0)


def _chain(connection: ssl.SSLObject) -> tuple[bytes, ...]:
    """Return the whole chain; before Python 3.13 only the object within gives it away."""
    within: Any = connection if hasattr(connection, "get_unverified_chain") else getattr(connection, "_sslobj", None)
    found = within.get_unverified_chain() if within is not None else None
    return tuple(each if isinstance(each, bytes) else each.public_bytes(_ssl.ENCODING_DER) for each in found or ())
