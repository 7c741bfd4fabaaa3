"""Accepts any client certificate in the TLS handshake; the certificate is verified later, at each request.

Guarantees:
- A handshake never fails because a client's certificate is expired or from an unknown authority. As with
  kube-apiserver, such a client may still have a token; without a token, its requests get a 401 answer. The handshake
  proves that the client has the certificate's key.
- This module does not determine the certificate's user; see `authn.client_certificate_authenticator`.

Python's `ssl` either requests no certificate, or refuses the handshake. OpenSSL allows a callback for the verification
(`SSL_CTX_set_cert_verify_callback`). If OpenSSL's library cannot be found in the interpreter, the handshake verifies
certificates with the loaded authorities.
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
"""This callback is a global, because OpenSSL may call it until the process exits."""


def take_any_certificate(context: ssl.SSLContext) -> bool:
    """Configure `context` to request a certificate and to accept any certificate or none; return whether that worked.

    If it did not work, the context accepts only certificates of the loaded authorities.
    """
    context.verify_mode = ssl.CERT_OPTIONAL
    try:
        library = ctypes.CDLL(_ssl.__file__)  # finds the OpenSSL library to which the module is linked
        set_callback = library.SSL_CTX_set_cert_verify_callback
    except (AttributeError, OSError) as error:
        log.warning("TLS handshake rejects client certificates of unknown authorities", reason=str(error))
        return False
    set_callback.argtypes = [ctypes.c_void_p, _Callback, ctypes.c_void_p]
    set_callback.restype = None
    set_callback(_pointer(context), _take, None)
    return True


def presented_certificates(connection: ssl.SSLObject | None) -> Sequence[bytes]:
    """Return the client's certificates (DER), the client's own first; empty without TLS or without a certificate."""
    own = connection.getpeercert(binary_form=True) if connection is not None else None
    if connection is None or own is None:
        return ()
    chain = _chain(connection)
    return chain if chain and chain[0] == own else (own,)


def _pointer(context: ssl.SSLContext) -> int:
    """Return the SSL_CTX of a context, the first field of CPython's object (`Modules/_ssl.h`, PySSLContext)."""
    return int(ctypes.c_void_p.from_address(id(context) + object.__basicsize__).value or 0)


def _chain(connection: ssl.SSLObject) -> tuple[bytes, ...]:
    """Return the whole certificate chain. Before Python 3.13, only the private `_sslobj` provides the chain."""
    within: Any = connection if hasattr(connection, "get_unverified_chain") else getattr(connection, "_sslobj", None)
    found = within.get_unverified_chain() if within is not None else None
    return tuple(each if isinstance(each, bytes) else each.public_bytes(_ssl.ENCODING_DER) for each in found or ())
