"""Accepts any client certificate in the TLS handshake; each request verifies the certificate later.

Guarantees:
- A handshake does not fail if the client's certificate is expired or signed by an unknown authority. As in
  kube-apiserver, a client with an invalid certificate may authenticate with a token; without a token, the client's
  requests get a 401 response. The handshake proves that the client has the certificate's key.
- `authn.client_certificate_authenticator` determines the user of a client certificate.

Python's `ssl` module has only two modes: it requests no certificate, or a handshake fails if the client's certificate
is not trusted. Therefore this module sets OpenSSL's callback for the verification (`SSL_CTX_set_cert_verify_callback`).
If OpenSSL's library cannot be found in the interpreter, the handshake verifies certificates with the loaded
authorities.
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
"""The callback that accepts certificates.

A global variable keeps it, because OpenSSL may call it until the process exits.
"""


def take_any_certificate(context: ssl.SSLContext) -> bool:
    """Make `context` request a client certificate, and accept any certificate or none; return False if this fails.

    If the callback cannot be set, the context accepts only certificates of the loaded authorities.
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
    """Return the certificate chain of the client (DER), beginning with the client's certificate.

    The result is empty if the connection has no TLS or the client has no certificate.
    """
    own = connection.getpeercert(binary_form=True) if connection is not None else None
    if connection is None or own is None:
        return ()
    chain = _chain(connection)
    return chain if chain and chain[0] == own else (own,)


def _pointer(context: ssl.SSLContext) -> int:
    """Return the SSL_CTX of a context, the first field of CPython's object (`Modules/_ssl.h`, PySSLContext)."""
    return int(ctypes.c_void_p.from_address(id(context) + object.__basicsize__).value or 0)


def _chain(connection: ssl.SSLObject) -> tuple[bytes, ...]:
    """Return the client's whole certificate chain.

    Before Python 3.13, only the private attribute `_sslobj` provides the certificate chain.

    """
    within: Any = connection if hasattr(connection, "get_unverified_chain") else getattr(connection, "_sslobj", None)
    found = within.get_unverified_chain() if within is not None else None
    return tuple(each if isinstance(each, bytes) else each.public_bytes(_ssl.ENCODING_DER) for each in found or ())
