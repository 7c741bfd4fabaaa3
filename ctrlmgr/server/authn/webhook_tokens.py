"""Bearer tokens that another server knows: it is asked with a TokenReview.

Guarantees:
- An answer is believed for a while, as settings say, yes or no alike; a question that got no answer is asked again.
- A token is sent to that server only if none of the others know it, and is kept by its digest alone.
- The other server decides for which audiences a token is good, among those that were asked about.

Rules: apiserver `plugin/pkg/authenticator/token/webhook/webhook.go`, `pkg/authentication/token/cache`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import msgspec
import structlog

from ctrlmgr.authentication.user import Audiences, Authenticated, CredentialsRefused, User, common_audiences
from ctrlmgr.clock import Clock
from ctrlmgr.server.authn.parts import Told
from ctrlmgr.settings.kubeconfig import load

log = structlog.get_logger(__name__)

_TRIES: Final = 5
_PAUSE: Final = 0.5
_FACTOR: Final = 1.5
"""Seconds before the second attempt, and by how much each further wait is longer."""
_PATIENCE: Final = 10.0
"""Seconds that the other server may take to answer."""
_REMEMBERED: Final = 4096


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


class _Said(NamedTuple):
    status: _Status
    until: float


class WebhookTokens:
    """Asks another server about tokens: a `TokenAuthenticator`; used on one event loop."""

    def __init__(self, config: Path, own: Audiences, *, keep_for: float, clock: Clock) -> None:
        """Ask the server of a kubeconfig, and believe it for `keep_for` seconds; raises `SettingsError`.

        A server that says nothing of audiences means `own`, which are this server.
        """
        self._access = load([config])
        self._own = own
        self._keep_for = keep_for
        self._clock = clock
        self._said: OrderedDict[bytes, _Said] = OrderedDict()
        self._client: httpx.AsyncClient | None = None

    async def authenticate_token(self, token: str, audiences: Audiences, told: Told) -> Authenticated | None:
        """Return whom a token stands for, None if the other server does not know it; raises `CredentialsRefused`."""
        key = sha256("\0".join((token, *audiences)).encode("utf-8", "surrogateescape")).digest()
        said = self._said.get(key)
        if said is None or said.until <= self._clock.monotonic():
            status = await self._ask(token, audiences)
            said = self._said[key] = _Said(status, self._clock.monotonic() + self._keep_for)
            if len(self._said) > _REMEMBERED:
                self._said.popitem(last=False)
        return self._judge(said.status, audiences)

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
        """Return the other server's answer; raises `CredentialsRefused` if it gives none."""
        spec: dict[str, Any] = {"token": token, "audiences": list(audiences)}
        review = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {}, "spec": spec}
        body, pause = msgspec.json.encode(review), _PAUSE
        for attempt in range(1, _TRIES + 1):
            answer = await self._try(body)
            if isinstance(answer, _Status):
                return answer
            if attempt < _TRIES:
                await asyncio.sleep(pause)
                pause *= _FACTOR
        log.warning("the token webhook does not answer", server=self._access.server, error=answer)
        raise CredentialsRefused(f"the token webhook does not answer: {answer}")

    async def _try(self, body: bytes) -> _Status | str:
        """Return the answer, or why there is none but there may be one later; raises `CredentialsRefused`."""
        if self._client is None:
            context = self._access.context
            verify = context if context is not None else True
            self._client = httpx.AsyncClient(verify=verify, timeout=_PATIENCE, trust_env=False)
        headers = {"content-type": "application/json", "accept": "application/json", **self._access.headers()}
        try:
            answer = await self._client.post(self._access.server, content=body, headers=headers)
        except httpx.HTTPError as error:
            return str(error) or type(error).__name__
        if answer.status_code >= 500 or answer.status_code == 429:
            return f"it answered {answer.status_code}"
        try:
            answer.raise_for_status()
            return msgspec.json.decode(answer.content, type=_Review).status
        except (httpx.HTTPStatusError, ValueError, msgspec.MsgspecError) as error:
            log.warning("the token webhook cannot be understood", server=self._access.server, error=str(error))
            raise CredentialsRefused(f"the token webhook cannot be understood: {error}") from error

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None
