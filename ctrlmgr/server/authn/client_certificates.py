"""Client certificates, and users named by a proxy that has one.

Guarantees:
- Every request is judged by the authorities as they are then and by the time it is then, so a certificate that
  expires, or whose authority is taken away, is worth nothing from that moment on, also on a connection that is open.
- A proxy's headers count only for a client that presents a certificate of the proxy's authority under an allowed name.

Verdicts on chains are cached for as long as the authorities stay, refusals for `_REFUSED_FOR` seconds.

Rules: apiserver `pkg/authentication/request/{x509,headerrequest}`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, NamedTuple, Protocol

from cryptography import x509

from ctrlmgr.authentication.certificates import Validity, certificate_user, check_name, vouch
from ctrlmgr.authentication.request_header import RequestHeaders
from ctrlmgr.authentication.user import CredentialsRefused, User
from ctrlmgr.caches import BoundedCache
from ctrlmgr.clock import Clock
from ctrlmgr.server.authn.parts import RequestParts

_ENTRIES: Final = 1024
"""Chains; a client has one for hours, and there are not many more clients at a time."""
_SIZE: Final = 8 * 1024 * 1024
"""Bytes of those chains."""

_REFUSED_FOR = 10.0
"""Seconds for which a refusal is cached, as apiserver caches a token that failed."""


class Authorities(Protocol):
    """The authorities that vouch for clients; they may change."""

    @property
    def certificates(self) -> Sequence[x509.Certificate]:
        """Their certificates; another object when they are others."""


class _Judged(NamedTuple):
    """The verdict on a chain, and when it holds (seconds since 1970)."""

    user: User | None
    validity: Validity
    refused: Sequence[str] = ()
    """Why the chain was refused, if it was."""


class Vouching:
    """Verifies chains and judges whom they are of, each once while the authorities stay."""

    def __init__(
        self, authorities: Authorities, judge: Callable[[x509.Certificate], User | None], *, clock: Clock
    ) -> None:
        """Believe `authorities`; `judge` tells whom a certificate is of that they vouch for."""
        self._authorities = authorities
        self._judge = judge
        self._clock = clock
        self._seen: Sequence[x509.Certificate] = ()
        self._known: BoundedCache[bytes, _Judged] = BoundedCache("client-certificates", entries=_ENTRIES, size=_SIZE)

    def user(self, presented: Sequence[bytes]) -> User | None:
        """Return what is known of a client that presented these certificates; raises `CredentialsRefused`."""
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

    def _look(self, presented: Sequence[bytes], authorities: Sequence[x509.Certificate], now: float) -> _Judged:
        try:
            leaf, validity = vouch(presented, authorities, now)
            return _Judged(self._judge(leaf), validity)
        except CredentialsRefused as refusal:
            return _Judged(None, Validity(now, now + _REFUSED_FOR), refusal.reasons)


def _digest(presented: Sequence[bytes]) -> bytes:
    """Return a key for a list of certificates: their digests, so that a cached entry is small."""
    return b"".join(sha256(each).digest() for each in presented)


class ClientCertificates:
    """Names the users of client certificates: an `Authenticator`."""

    def __init__(self, authorities: Authorities, *, clock: Clock) -> None:
        """Believe `authorities`."""
        self._vouching = Vouching(authorities, certificate_user, clock=clock)

    async def authenticate(self, parts: RequestParts) -> User | None:
        """Return whom the client's certificate names, None without one, or if it names no user."""
        return self._vouching.user(parts.certificates) if parts.certificates else None


class FrontProxies:
    """Names the users of trusted proxies: an `Authenticator`."""

    def __init__(
        self, authorities: Authorities, names: Sequence[str], headers: RequestHeaders, *, clock: Clock
    ) -> None:
        """Believe the `headers` of those for whom `authorities` vouch and whose names are among `names` (none: all)."""
        self._vouching = Vouching(authorities, lambda leaf: check_name(leaf, names), clock=clock)
        self._headers = headers

    async def authenticate(self, parts: RequestParts) -> User | None:
        """Return whom a proxy names, None without a certificate; raises `CredentialsRefused` for who is no proxy."""
        if not parts.certificates:
            return None
        self._vouching.user(parts.certificates)
        return self._headers.user(parts.headers)
