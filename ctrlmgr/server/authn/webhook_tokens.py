"""Authenticates bearer tokens by sending a TokenReview to another server.

Guarantees:
- This server caches the other server's verdict, positive or negative, for the configured time. This server does not
  cache failed calls.
- This server sends a token to the other server only if no other authenticator recognises the token. The cache contains
  digests of tokens, but not the tokens themselves.
- The other server decides for which of the requested audiences a token is valid.

Source: apiserver `plugin/pkg/authenticator/token/webhook/webhook.go`, `pkg/authentication/token/cache`.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from ctrlmgr.authentication.user import Audiences, Authenticated, CredentialsRefused, User, common_audiences
from ctrlmgr.caches import TTLCache
from ctrlmgr.clock import Clock
from ctrlmgr.server.authn.authenticator_interfaces import AuthenticationNotes
from ctrlmgr.server.review_client import ReviewFailed, ReviewServer

log = structlog.get_logger(__name__)

_PATIENCE: Final = 10.0
"""Maximum duration of a call of the other server, in seconds."""
_ENTRIES: Final = 4096
_SIZE: Final = 16 * 1024 * 1024
"""Maximum total size of the cached verdicts, in bytes."""


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class _Status(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()
    audiences: tuple[str, ...] | None = None
    error: str = ""


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


class WebhookTokens:
    """A `TokenAuthenticator` that sends tokens to another server in TokenReviews.

    An instance is used on one event loop.
    """

    def __init__(
        self, config: Path, own: Audiences, *, keep_for: float, version: str = "v1beta1", clock: Clock
    ) -> None:
        """Create an authenticator that calls the server in a kubeconfig.

        Raises `SettingsError` if the kubeconfig is unusable. The authenticator sends TokenReviews in the given
        `version` of `authentication.k8s.io`, and caches verdicts for `keep_for` seconds. If the other server's response
        contains no audiences, the token is valid for this server's own audiences `own`.
        """
        self._server = ReviewServer(config, patience=_PATIENCE, clock=clock)
        self._own = own
        self._keep_for = keep_for
        self._api_version = f"authentication.k8s.io/{version}"
        self._statuses: TTLCache[bytes, _Status] = TTLCache("token-webhook", entries=_ENTRIES, size=_SIZE, clock=clock)

    async def authenticate_token(
        self, token: str, audiences: Audiences, notes: AuthenticationNotes
    ) -> Authenticated | None:
        """Return the user of a token; None if the other server does not recognise the token.

        Raises `CredentialsRefused` if the call fails.
        """
        key = sha256("\0".join((token, *audiences)).encode("utf-8", "surrogateescape")).digest()
        status = self._statuses.get(key)
        if status is None:
            status = await self._ask(token, audiences)
            self._statuses.put(key, status, self._keep_for, len(key) + len(msgspec.json.encode(status)))
        return self._judge(status, audiences)

    def _judge(self, status: _Status, audiences: Audiences) -> Authenticated | None:
        if not status.authenticated:
            if status.error:
                raise CredentialsRefused(status.error)
            return None
        common = common_audiences(audiences, self._own if status.audiences is None else status.audiences)
        if audiences and not common:
            return None
        user = status.user
        return Authenticated(User(user.username, user.uid, user.groups or (), user.extra or {}), common)

    async def _ask(self, token: str, audiences: Audiences) -> _Status:
        """Return the other server's verdict on a token; raises `CredentialsRefused` if the call fails."""
        spec: dict[str, Any] = {"token": token, "audiences": list(audiences)}
        review = {"kind": "TokenReview", "apiVersion": self._api_version, "metadata": {}, "spec": spec}
        try:
            answer = await self._server.ask(msgspec.json.encode(review))
        except ReviewFailed as error:
            log.warning("token webhook unreachable", server=self._server.url, error=str(error))
            raise CredentialsRefused(f"the token webhook does not answer: {error}") from error
        try:
            return msgspec.json.decode(answer, type=_Review).status
        except (ValueError, msgspec.MsgspecError) as error:
            log.warning("token webhook response invalid", server=self._server.url, error=str(error))
            raise CredentialsRefused(f"the token webhook's response is invalid: {error}") from error

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()
