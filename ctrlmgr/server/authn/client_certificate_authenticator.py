"""Authenticates requests by client certificates, and by the headers in which a front proxy names the user.

Guarantees:
- For each request, the server checks the certificate against the current authorities and the current time. If a
  certificate expires or its authority is removed, the server refuses later requests with the certificate, even on open
  connections.
- The server uses the headers of a front proxy only if the client presents a certificate of the proxy's authority with
  an allowed name.

The server caches verified certificate chains while the authorities stay the same, and refusals for `_REFUSED_FOR`
seconds.

Source: apiserver `pkg/authentication/request/{x509,headerrequest}`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, NamedTuple, Protocol

from cryptography import x509

from ctrlmgr.authentication.request_header import RequestHeaders
from ctrlmgr.authentication.user import CredentialsRefused, User
from ctrlmgr.authentication.x509_verification import Validity, certificate_user, check_name, vouch
from ctrlmgr.caches import BoundedCache
from ctrlmgr.clock import Clock
from ctrlmgr.server.authn.authenticator_interfaces import RequestParts

_ENTRIES: Final = 1024
"""Maximum number of cached certificate chains; a client keeps its certificate for hours."""
_SIZE: Final = 8 * 1024 * 1024
"""Maximum total size of the cached certificate chains, in bytes."""

_REFUSED_FOR = 10.0
"""Seconds for which the refusal of a certificate is cached. apiserver caches the refusal of a token for the same time.
"""


class Authorities(Protocol):
    """The certificate authorities for client certificates, which may change."""

    @property
    def certificates(self) -> Sequence[x509.Certificate]:
        """The certificates of the authorities; a change of the authorities replaces this object."""


class _ChainVerdict(NamedTuple):
    """The verdict on a certificate chain, and the period for which the verdict is valid (seconds since 1970)."""

    user: User | None
    validity: Validity
    refused: Sequence[str] = ()
    """The reason why the certificate chain was refused; empty if the chain was accepted."""


class CertificateVerifier:
    """Verifies certificate chains and determines their users.

    The verifier verifies a certificate chain only once while the authorities stay the same.
    """

    def __init__(
        self, authorities: Authorities, judge: Callable[[x509.Certificate], User | None], *, clock: Clock
    ) -> None:
        """Create a verifier that trusts `authorities`; `judge` determines the user of a verified certificate."""
        self._authorities = authorities
        self._judge = judge
        self._clock = clock
        self._seen: Sequence[x509.Certificate] = ()
        self._known: BoundedCache[bytes, _ChainVerdict] = BoundedCache(
            "client-certificates", entries=_ENTRIES, size=_SIZE
        )

    def user(self, presented: Sequence[bytes]) -> User | None:
        """Return the user of a client that presented these certificates.

        Raises `CredentialsRefused` if the certificates are not valid.
        """
        authorities = self._authorities.certificates
        if authorities is not self._seen:
            self._known.clear()
            self._seen = authorities
        key, now = _digest(presented), self._clock.now() / 1_000_000
        found = self._known.get(key)
        if found is None or not found.validity.covers(now):
            found = self._look(presented, authorities, now)
            self._known.put(key, found, sum(map(len, presented)))
        if found.refused:
            raise CredentialsRefused(*found.refused)
        return found.user

    def _look(self, presented: Sequence[bytes], authorities: Sequence[x509.Certificate], now: float) -> _ChainVerdict:
        try:
            leaf, validity = vouch(presented, authorities, now)
            return _ChainVerdict(self._judge(leaf), validity)
        except CredentialsRefused as refusal:
            return _ChainVerdict(None, Validity(now, now + _REFUSED_FOR), refusal.reasons)


def _digest(presented: Sequence[bytes]) -> bytes:
    """Return a cache key for certificates: the digests of the certificates, which are small."""
    return b"".join(sha256(each).digest() for each in presented)


class ClientCertificates:
    """An `Authenticator` for client certificates."""

    def __init__(self, authorities: Authorities, *, clock: Clock) -> None:
        """Create an authenticator that trusts certificates of `authorities`."""
        self._vouching = CertificateVerifier(authorities, certificate_user, clock=clock)

    async def authenticate(self, parts: RequestParts) -> User | None:
        """Return the user of the client's certificate.

        The method returns None if the client has no certificate, or if the client's certificate names no user.
        """
        return self._vouching.user(parts.certificates) if parts.certificates else None


class FrontProxies:
    """An `Authenticator` for users whose names trusted proxies send in headers."""

    def __init__(
        self, authorities: Authorities, names: Sequence[str], headers: RequestHeaders, *, clock: Clock
    ) -> None:
        """Create an authenticator that trusts `headers` if one of `authorities` has issued the client's certificate.

        The certificate must have one of the common names `names`; an empty list allows any name.
        """
        self._vouching = CertificateVerifier(authorities, lambda leaf: check_name(leaf, names), clock=clock)
        self._headers = headers

    async def authenticate(self, parts: RequestParts) -> User | None:
        """Return the user that a proxy names in headers; None if the client has no certificate.

        Raises `CredentialsRefused` if the client is not a trusted proxy.
        """
        if not parts.certificates:
            return None
        self._vouching.user(parts.certificates)
        return self._headers.user(parts.headers)
