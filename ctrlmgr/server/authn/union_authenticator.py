"""Combines several authenticators; the first authenticator that recognises the credentials determines the user.

Guarantees:
- If one authenticator succeeds, the refusals of earlier authenticators have no effect. If no authenticator succeeds and
  at least one has refused the credentials, the server refuses the request with all reasons. A request is anonymous only
  if it contains no credentials.
- Every authenticated user is in the group `system:authenticated`.

Source: apiserver `pkg/authentication/{request,token}/union`, `pkg/authentication/request/{bearertoken,anonymous}`,
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
from ctrlmgr.server.authn.authenticator_interfaces import (
    AuthenticationNotes,
    Authenticator,
    RequestParts,
    TokenAuthenticator,
)

_UNKNOWN = "invalid bearer token"


class BearerTokens:
    """An `Authenticator` for bearer tokens in the Authorization header or in a WebSocket's subprotocols."""

    def __init__(self, authenticators: Sequence[TokenAuthenticator], audiences: Audiences) -> None:
        """Create an authenticator that calls the token authenticators `authenticators` in this order.

        Tokens must be valid for one of `audiences`, which are this server's own audiences.
        """
        self._authenticators = authenticators
        self._audiences = audiences

    async def authenticate(self, parts: RequestParts) -> User | None:
        """Return the user of the bearer token; None if the request has no token."""
        token, warning = parts.headers.read(bearer_token)
        if warning:
            parts.notes.warnings.append(warning)
        if token is None:
            token = parts.headers.read(web_socket_token)
        if token is None:
            return None
        return (await self.review(token, self._audiences, parts.notes)).user

    async def review(self, token: str, audiences: Audiences, notes: AuthenticationNotes) -> Authenticated:
        """Return the user of a token for `audiences`, from the first authenticator that recognises the token.

        Raises `CredentialsRefused` with all reasons if no authenticator recognises the token and at least one
        authenticator refuses it.
        """
        reasons = [_UNKNOWN]
        for each in self._authenticators:
            try:
                found = await each.authenticate_token(token, audiences, notes)
            except CredentialsRefused as refusal:
                reasons += refusal.reasons
                continue
            if found is not None:
                return found
        raise CredentialsRefused(*reasons)


class Anonymous:
    """The configuration that decides which requests may be anonymous."""

    def __init__(self, *, enabled: bool = True, paths: Collection[str] = ()) -> None:
        """Allow anonymous requests if `enabled` is set; if `paths` is not empty, allow only requests for `paths`."""
        self.admit(enabled=enabled, paths=paths)

    def admit(self, *, enabled: bool, paths: Collection[str] = ()) -> None:
        """Replace the configuration of anonymous requests."""
        self._enabled = enabled
        self._paths = frozenset(paths)

    def admits(self, path: str) -> bool:
        """Return whether a request for a path may be anonymous."""
        return self._enabled and (not self._paths or path in self._paths)


class Authentication:
    """Authenticates requests and the tokens in TokenReviews with all configured authenticators."""

    def __init__(
        self,
        authenticators: Sequence[Authenticator],
        tokens: Sequence[TokenAuthenticator],
        *,
        audiences: Audiences,
        anonymous: Anonymous | None = None,
    ) -> None:
        """Create an authenticator that calls `authenticators`, and then `tokens` for bearer tokens with `audiences`.

        `anonymous` decides which requests may be anonymous; by default, all requests may be anonymous.
        """
        self._bearer = BearerTokens(tokens, audiences)
        self._authenticators = (*authenticators, self._bearer)
        self._audiences = audiences
        self._anonymous = anonymous or Anonymous()

    async def authenticate(self, parts: RequestParts) -> User:
        """Return the user of a request; raises `CredentialsRefused` if the credentials are wrong."""
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
        """Return the user of a token for `audiences`, by default this server's own audiences.

        Raises `CredentialsRefused` if the token is invalid.
        """
        found = await self._bearer.review(token, audiences or self._audiences, AuthenticationNotes())
        return found._replace(user=known(found.user))


class ForAllAudiences:
    """The base class of token authenticators whose tokens contain no audience.

    The tokens are valid for this server's own audiences.
    """

    def __init__(self, audiences: Audiences) -> None:
        """Create an authenticator whose tokens are valid for `audiences`."""
        self._own = tuple(audiences)

    async def authenticate_token(
        self, token: str, audiences: Audiences, notes: AuthenticationNotes
    ) -> Authenticated | None:
        """Return the user of a token; None if the token is not valid for one of `audiences`."""
        common = self._own if audiences is self._own else common_audiences(self._own, audiences)
        if not common:
            return None
        user = await self.user_of(token, notes)
        return None if user is None else Authenticated(user, common)

    async def user_of(self, token: str, notes: AuthenticationNotes) -> User | None:
        """Return the user of a token; None if this authenticator does not handle tokens of this type.

        Raises `CredentialsRefused`.
        """
        raise NotImplementedError
