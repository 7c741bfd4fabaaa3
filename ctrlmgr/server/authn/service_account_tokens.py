"""Issues and verifies tokens of service accounts.

Guarantees:
- The server accepts a token only if the token names one of this server's issuers, and if one of the server's keys
  verifies the token's signature. The audience of the token must match, and the objects to which the token is bound must
  exist at every request.
- The header of a token can select one of the server's keys, but no other key.
- The server accepts a token in a Secret while the Secret contains the token, and calls `on_use` for each use. If
  `lookup` is not set, the server does not read Secrets, and always accepts a token in a Secret.

The server caches only the results of signature checks, by the digest of the whole token.

Source: Kubernetes' `pkg/serviceaccount/jwt.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from random import Random
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.authentication import jwt
from ctrlmgr.authentication.legacy_claims import ISSUER as LEGACY_ISSUER
from ctrlmgr.authentication.legacy_claims import LegacyClaims, judge_claims, judge_legacy
from ctrlmgr.authentication.service_account_claims import Bound, Claims, Find, ValidatedToken, bound_claims, judge
from ctrlmgr.authentication.token_keys import VerificationKeys, key_id
from ctrlmgr.authentication.user import Audiences, Authenticated, CredentialsRefused, common_audiences
from ctrlmgr.caches import BoundedCache
from ctrlmgr.clock import Clock
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.golang.go_text import quote
from ctrlmgr.server.authn.authenticator_interfaces import AuthenticationNotes

DEFAULT_ISSUER = "https://kubernetes.default.svc.cluster.local"

LEGACY = "authentication.k8s.io/legacy-token"
"""The key of the audit annotation for requests whose token contains no audience."""

_ENTRIES: Final = 1024
_SIZE: Final = 8 * 1024 * 1024
"""Maximum total size of the verified tokens that are cached, in bytes."""
_UNVERIFIED = "go-jose/go-jose: error in cryptographic primitive"

_AnyClaims: TypeAlias = Claims | LegacyClaims


class IssuedToken(NamedTuple):
    """A new token, with the token's id."""

    token: str
    id: str


class TokenIssuer(Protocol):
    """Issues tokens."""

    @property
    def audiences(self) -> Audiences:
        """The own audiences of this server, for which tokens without audiences are valid."""

    def issue(
        self, account: Object, audiences: Sequence[str], seconds: int, warn_after: int, bound: Bound, *, now: int
    ) -> IssuedToken:
        """Return a new token for a service account; the arguments are those of `bound_claims`."""


class _Issuer(msgspec.Struct, frozen=True, gc=False):
    iss: str = ""


_decode_issuer = msgspec.json.Decoder(_Issuer).decode
_decode_claims = msgspec.json.Decoder(Claims).decode
_decode_legacy = msgspec.json.Decoder(LegacyClaims).decode


class ServiceAccountTokens:
    """A `TokenIssuer` and `TokenAuthenticator` for tokens of service accounts."""

    def __init__(
        self,
        signing: jwt.PrivateKey,
        keys: VerificationKeys,
        find: Find,
        *,
        clock: Clock,
        random: Random,
        issuers: Sequence[str] = (DEFAULT_ISSUER,),
        audiences: Audiences = (),
        on_use: Callable[[Object], None] = lambda secret: None,
        lookup: bool = True,
    ) -> None:
        """Create an issuer that signs with the key `signing`, and names the first of `issuers` in tokens.

        Tokens of all `issuers` are accepted if one of `keys` verifies the signature. `audiences` are this server's own
        audiences, by default its issuers. `find` reads objects, and `random` generates token ids. `on_use` is called
        with the Secret of each used token, if Secrets are read (`lookup`).
        """
        self._signing = signing
        self._signing_id = key_id(signing.public_key())
        self._keys = keys
        self._find = find
        self._clock = clock
        self._random = random
        self._issuers = tuple(issuers)
        self.audiences: Audiences = tuple(audiences) or self._issuers
        self._on_use = on_use
        self._lookup = lookup
        self._verified: BoundedCache[bytes, _AnyClaims] = BoundedCache(
            "service-account-tokens", entries=_ENTRIES, size=_SIZE
        )

    def issue(
        self, account: Object, audiences: Sequence[str], seconds: int, warn_after: int, bound: Bound, *, now: int
    ) -> IssuedToken:
        """Return a new token for a service account; the arguments are those of `bound_claims`."""
        token_id = new_uid(self._random)
        claims = bound_claims(account, audiences, seconds, warn_after, bound, now=now, token_id=token_id)
        claims.iss = self._issuers[0]
        return IssuedToken(jwt.sign(msgspec.json.encode(claims), self._signing, self._signing_id), token_id)

    async def authenticate_token(
        self, token: str, audiences: Audiences, notes: AuthenticationNotes
    ) -> Authenticated | None:
        """Return the user of a token; None if the token is from another issuer. Raises `CredentialsRefused`."""
        claims = self._claims(token)
        if claims is None:
            return None
        given: Audiences = claims.audiences if isinstance(claims, Claims) else ()
        if not given:
            notes.annotations[LEGACY] = claims.sub
            given = self.audiences
        common = common_audiences(audiences, given)
        if not common:
            words = f"token audiences {_quoted(given)} is invalid for the target audiences {_quoted(audiences)}"
            raise CredentialsRefused(words)
        judged = self._judge(claims, token)
        notes.annotations.update(judged.annotations)
        notes.warnings += judged.warnings
        if judged.used is not None:
            self._on_use(judged.used)
        return Authenticated(judged.user, common)

    def _judge(self, claims: _AnyClaims, token: str) -> ValidatedToken:
        if isinstance(claims, Claims):
            return judge(claims, self._find, self._clock.now())
        return judge_legacy(claims, token, self._find) if self._lookup else judge_claims(claims)

    def _claims(self, token: str) -> _AnyClaims | None:
        """Return the claims of a token if this server signed it.

        Raises `CredentialsRefused` if the token's signature is wrong.
        """
        digest = sha256(token.encode("utf-8", "surrogateescape")).digest()
        claims = self._verified.get(digest)
        if claims is None and (claims := self._verify(token)) is not None:
            self._verified.put(digest, claims, len(token))
        return claims

    def _verify(self, token: str) -> _AnyClaims | None:
        if not self._is_ours(jwt.untrusted_payload(token)) or (parsed := jwt.parse(token)) is None:
            return None
        candidates = self._keys.candidates(parsed.key_id)
        if not candidates:
            raise CredentialsRefused("invalid signature, no keys found")
        if not any(jwt.verifies(parsed, key) for key in candidates):
            raise CredentialsRefused(_UNVERIFIED)
        try:
            is_legacy = _decode_issuer(parsed.payload).iss == LEGACY_ISSUER
            return _decode_legacy(parsed.payload) if is_legacy else _decode_claims(parsed.payload)
        except (ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise CredentialsRefused(f"the token's claims cannot be read: {error}") from error

    def _is_ours(self, payload: bytes | None) -> bool:
        """Return whether a token names one of this server's issuers."""
        try:
            issuer = _decode_issuer(payload or b"").iss
        except (ValueError, RecursionError, msgspec.MsgspecError):
            return False
        return issuer == LEGACY_ISSUER or issuer in self._issuers


def _quoted(audiences: Audiences) -> str:
    return f"[{' '.join(map(quote, audiences))}]"
