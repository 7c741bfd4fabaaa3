"""Authenticates tokens of the issuers in the file of `--authentication-config`; a changed file is reloaded.

Guarantees:
- The server fetches the signing keys of an issuer when the first token of the issuer arrives, and then keeps the keys.
  If a token names an unknown key, the server fetches the keys again, at most every `_BETWEEN` seconds. Only requests
  with tokens of an issuer wait for that issuer's keys.
- The signature of a token is verified only once, because the digests of verified tokens are cached until the issuer's
  keys change. The configured rules about claims are evaluated for each request.
- If the server cannot evaluate an expression in the configuration file for a token, the server refuses the token and
  logs the error.
- If the configuration file becomes invalid, the server logs and counts the error, and the previous configuration of
  issuers remains in force.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from ctrlmgr.authentication import jwt
from ctrlmgr.authentication.followed_files import FollowedFiles
from ctrlmgr.authentication.id_tokens import read_key_set, token_user
from ctrlmgr.authentication.jwt_configuration import Configuration, read_configuration
from ctrlmgr.authentication.trusted_issuer import TrustedIssuer
from ctrlmgr.authentication.user import Audiences, CredentialsRefused, User
from ctrlmgr.caches import BoundedCache
from ctrlmgr.clock import Clock
from ctrlmgr.engine.calls.call import Call
from ctrlmgr.engine.calls.replies import is_success
from ctrlmgr.engine.cel_functions import FUNCTIONS
from ctrlmgr.expressions.environment import NoValue
from ctrlmgr.metrics import CONFIGURATION_RELOADS
from ctrlmgr.server.authn.authenticator_interfaces import AuthenticationNotes
from ctrlmgr.server.authn.union_authenticator import ForAllAudiences
from ctrlmgr.server.outbound_calls import Caller

log = structlog.get_logger(__name__)

_BETWEEN: Final = 10.0
"""Minimum seconds between two fetches of an issuer's keys."""
_PATIENCE: Final = 10.0
"""Maximum duration of a fetch of keys, in seconds."""
_ENTRIES: Final = 1024
"""Maximum number of verified tokens of an issuer whose digests are cached."""
_UNINITIALIZED = "oidc: authenticator not initialized"


class _Issuer(msgspec.Struct, frozen=True):
    iss: str = ""


class _Discovery(msgspec.Struct, frozen=True):
    issuer: str
    jwks_uri: str


_decode_issuer = msgspec.json.Decoder(_Issuer).decode


class IssuerTokens:
    """Authenticates the tokens of one issuer. Used on the event loop's thread."""

    def __init__(self, issuer: TrustedIssuer, *, clock: Clock) -> None:
        """Create an authenticator that fetches the keys of `issuer` when its first token arrives."""
        self.issuer = issuer
        self._clock = clock
        self._keys: dict[str, list[jwt.PublicKey]] | None = None
        self._asked_at = float("-inf")
        self._asking = asyncio.Lock()
        self._verified: BoundedCache[bytes, bool] = BoundedCache("issuer-tokens", entries=_ENTRIES)

    async def authenticate(self, token: jwt.Compact) -> User:
        """Return the user of a token that names this issuer; raises `CredentialsRefused` if the token is invalid."""
        allowed = self.issuer.algorithms
        if allowed and token.algorithm not in allowed:
            expected = " ".join(f'"{each}"' for each in allowed)
            words = f'id token signed with unsupported algorithm, expected [{expected}] got "{token.algorithm}"'
            raise CredentialsRefused(f"oidc: verify token: oidc: {words}")
        candidates = await self._candidates(token.key_id)
        if not self._is_signed(token, candidates):
            words = "failed to verify signature: failed to verify id token signature"
            raise CredentialsRefused(f"oidc: verify token: {words}")
        try:
            return token_user(token.payload, self.issuer, self._clock.now())
        except NoValue as error:
            log.warning("token claims expression failed", issuer=self.issuer.url, error=str(error))
            raise CredentialsRefused(str(error)) from error

    def _is_signed(self, token: jwt.Compact, candidates: Sequence[jwt.PublicKey]) -> bool:
        digest = token.digest()
        if self._verified.get(digest):
            return True
        if not any(jwt.verifies(token, key) for key in candidates):
            return False
        self._verified.put(digest, True)
        return True

    async def _candidates(self, requested: str) -> Sequence[jwt.PublicKey]:
        """Return the keys that may have signed a token; raises `CredentialsRefused` if no keys could be fetched."""
        if (found := self._known(requested)) is not None:
            return found
        async with self._asking:
            if self._known(requested) is None and self._clock.monotonic() - self._asked_at >= _BETWEEN:
                self._asked_at = self._clock.monotonic()
                # the request may run without a task (`eager_coroutines`), but the fetch of keys needs a task
                await asyncio.create_task(self._ask())
        if self._keys is None:
            raise CredentialsRefused(_UNINITIALIZED)
        return self._known(requested) or ()

    def _known(self, requested: str) -> Sequence[jwt.PublicKey] | None:
        """Return the keys with the id in a token, or all keys if the token has no key id; None if no key has the id."""
        if self._keys is None:
            return None
        if not requested:
            return [key for keys in self._keys.values() for key in keys]
        return self._keys.get(requested)

    async def _ask(self) -> None:
        url, caller = self.issuer.discovery_url, Caller(self._clock)
        try:
            discovery = msgspec.json.decode(await self._get(caller, url), type=_Discovery)
            if discovery.issuer != self.issuer.url:
                raise ValueError(f"its discovery document names the issuer {discovery.issuer!r}")
            url = discovery.jwks_uri
            self._keys = read_key_set(await self._get(caller, url))
            self._verified.clear()
        except (ValueError, msgspec.MsgspecError) as error:
            log.warning("reading issuer's keys failed", issuer=self.issuer.url, url=url, error=str(error))
        finally:
            await caller.close()

    async def _get(self, caller: Caller, url: str) -> bytes:
        """Return the content at `url`; raises `ValueError` if the content cannot be fetched."""
        (reply,) = await caller.call([Call(url, b"", _PATIENCE, self.issuer.authorities.encode(), method="GET")])
        if reply.problem or not is_success(reply):
            raise ValueError(reply.problem or f"it responded with the status {reply.code}")
        return reply.body


class IssuersTokens(ForAllAudiences):
    """A `TokenAuthenticator` for the tokens of several issuers."""

    def __init__(self, audiences: Audiences, *, clock: Clock) -> None:
        """Create an authenticator without issuers.

        Tokens are valid for `audiences`, which are this server's own audiences.
        """
        super().__init__(audiences)
        self._clock = clock
        self._issuers: dict[str, IssuerTokens] = {}

    def trust(self, issuers: Sequence[TrustedIssuer]) -> None:
        """Replace the trusted issuers by the given issuers; an unchanged issuer keeps its fetched keys."""
        before = self._issuers
        self._issuers = {
            each.url: before[each.url]
            if each.url in before and before[each.url].issuer == each
            else IssuerTokens(each, clock=self._clock)
            for each in issuers
        }

    async def user_of(self, token: str, notes: AuthenticationNotes) -> User | None:
        """Return the user of a token; None if the token does not name a trusted issuer. Raises `CredentialsRefused`."""
        payload = jwt.untrusted_payload(token)
        try:
            issuer = self._issuers.get(_decode_issuer(payload or b"").iss)
        except (ValueError, msgspec.MsgspecError):
            return None
        if issuer is None:
            return None
        compact = jwt.parse(token)
        if compact is None:
            raise CredentialsRefused("oidc: verify token: oidc: malformed jwt")
        return await issuer.authenticate(compact)


class ConfiguredTokens(IssuersTokens):
    """Authenticates tokens of all issuers in a configuration file."""

    def __init__(
        self,
        file: Path,
        own_issuers: Sequence[str],
        audiences: Audiences,
        on_change: Callable[[Configuration], None],
        *,
        clock: Clock,
    ) -> None:
        """Read `file`, and call `on_change` with the configuration now and after each reload. Raises `SettingsError`.

        Authenticated tokens are valid for `audiences`, this server's own audiences. A token must contain one
        of the audiences in the configuration file.
        """
        super().__init__(audiences, clock=clock)
        self._file = file
        self._own_issuers = own_issuers
        self._on_change = on_change
        self._followed = FollowedFiles(
            "settings of authentication", [file], lambda status: CONFIGURATION_RELOADS.labels(status).inc()
        )
        self._take()

    def reload(self) -> bool:
        """Reload the configuration file if it has changed; return whether it was reloaded."""
        return self._followed.reload(self._take)

    def _take(self) -> bool:
        """Apply the current content of the configuration file; raises `SettingsError` if it is invalid."""
        configuration = read_configuration(self._file, self._own_issuers, FUNCTIONS)
        self.trust(configuration.issuers)
        self._on_change(configuration)
        return True
