"""Authenticators, one after the other until one knows.

Guarantees:
- The first that knows decides; what others have refused does not matter then. If none knows, what was refused is
  refused, for all the reasons there are; only without any credential a request is anonymous.
- Every known user is in `system:authenticated`.

Rules: apiserver `pkg/authentication/{request,token}/union`, `pkg/authentication/request/{bearertoken,anonymous}`,
`pkg/authentication/authenticator/audagnostic.go`, Kubernetes' `pkg/kubeapiserver/authenticator/config.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ctrlmgr.authentication.bearer import bearer_token, web_socket_token
from ctrlmgr.authentication.user import (
    ANONYMOUS,
    Audiences,
    Authenticated,
    CredentialsRefused,
    User,
    common_audiences,
    known,
)
from ctrlmgr.server.authn.parts import Authenticator, RequestParts, TokenAuthenticator, Told

_UNKNOWN = "invalid bearer token"


class BearerTokens:
    """Finds tokens in headers and among the protocols of web sockets: an `Authenticator`."""

    def __init__(self, authenticators: Sequence[TokenAuthenticator], audiences: Audiences) -> None:
        """Ask `authenticators` in this order; requests are for one of `audiences`, which are this server's own."""
        self._authenticators = authenticators
        self._audiences = audiences

    async def authenticate(self, parts: RequestParts) -> User | None:
        """Return whom the token stands for, None without one."""
        token, warning = parts.headers.read(bearer_token)
        if warning:
            parts.told.warnings.append(warning)
        if token is None:
            token = parts.headers.read(web_socket_token)
        if token is None:
            return None
        return (await self.review(token, self._audiences, parts.told)).user

    async def review(self, token: str, audiences: Audiences, told: Told) -> Authenticated:
        """Return whom a token stands for towards `audiences`, as the first says who knows it.

        Raises `CredentialsRefused` for one that nobody knows, for all the reasons there are.
        """
        reasons = [_UNKNOWN]
        for each in self._authenticators:
            try:
                found = await each.authenticate_token(token, audiences, told)
            except CredentialsRefused as refusal:
                reasons += refusal.reasons
                continue
            if found is not None:
                return found
        raise CredentialsRefused(*reasons)


class Anonymous:
    """Says who may come without credentials."""

    def __init__(self, *, enabled: bool = True, paths: Collection[str] = ()) -> None:
        """Let anonymous requests in if `enabled`, or only to `paths` if there are any."""
        self.admit(enabled=enabled, paths=paths)

    def admit(self, *, enabled: bool, paths: Collection[str] = ()) -> None:
        """Do so from now on."""
        self._enabled = enabled
        self._paths = frozenset(paths)

    def admits(self, path: str) -> bool:
        """Say whether a request for a path needs no credentials."""
        return self._enabled and (not self._paths or path in self._paths)


class Authentication:
    """All that tells who sends a request: what the chain asks, and what a TokenReview does."""

    def __init__(
        self,
        authenticators: Sequence[Authenticator],
        tokens: Sequence[TokenAuthenticator],
        *,
        audiences: Audiences,
        anonymous: Anonymous | None = None,
    ) -> None:
        """Ask `authenticators`, then `tokens` about tokens for one of `audiences`; by default all may be anonymous."""
        self._bearer = BearerTokens(tokens, audiences)
        self._authenticators = (*authenticators, self._bearer)
        self._audiences = audiences
        self._anonymous = anonymous or Anonymous()

    async def authenticate(self, parts: RequestParts) -> User:
        """Return who sends a request; raises `CredentialsRefused` for credentials that are wrong."""
        reasons: list[str] = []
        for each in self._authenticators:
            try:
                user = await each.authenticate(parts)
            except CredentialsRefused as refusal:
                reasons += refusal.reasons
                continue
            if user is not None:
                return known(user)
        if reasons or not self._anonymous.admits(parts.path):
            raise CredentialsRefused(*reasons)
        return ANONYMOUS

    async def review(self, token: str, audiences: Audiences) -> Authenticated:
        """Return whom a token stands for towards `audiences` (none: this server); raises `CredentialsRefused`."""
        found = await self._bearer.review(token, audiences or self._audiences, Told())
        return found._replace(user=known(found.user))


class ForAllAudiences:
    """Makes a `TokenAuthenticator` of what knows nothing of audiences: its tokens are for this server's own."""

    def __init__(self, audiences: Audiences) -> None:
        """Have tokens be good for `audiences`."""
        self._own = tuple(audiences)

    async def authenticate_token(self, token: str, audiences: Audiences, told: Told) -> Authenticated | None:
        """Return whom a token stands for, None unless it is for one of `audiences`."""
        common = self._own if audiences is self._own else common_audiences(self._own, audiences)
        if not common:
            return None
        user = await self.user_of(token, told)
        return None if user is None else Authenticated(user, common)

    async def user_of(self, token: str, told: Told) -> User | None:
        """Return whom a token stands for, None if it is none of this authenticator's; raises `CredentialsRefused`."""
        raise NotImplementedError
