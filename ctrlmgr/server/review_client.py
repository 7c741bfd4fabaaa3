"""Sends reviews to another server: TokenReviews and SubjectAccessReviews.

Guarantees:
- After a transient failure, the client sends the review again, in up to five attempts with increasing pauses. If the
  server is unreachable or rejects the review, the client does not send the review again.
- Errors contain the messages of Go's HTTP client.

Source: apiserver `pkg/util/webhook/webhook.go` (`WithExponentialBackoff`, `DefaultShouldRetry`).
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from ctrlmgr.clock import Clock
from ctrlmgr.engine.calls.call import Call, Credentials, Tries
from ctrlmgr.engine.calls.replies import is_success
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.server.outbound_calls import Caller
from ctrlmgr.settings.kubeconfig import load

_TRIES: Final = Tries(5, 0.5, 1.5)


class ReviewFailed(CtrlmgrError):
    """Raised if the other server's response is missing or cannot be used."""


class ReviewServer:
    """A client of the server in a kubeconfig's current context. An instance is used on one event loop."""

    def __init__(self, config: Path, *, patience: float, clock: Clock) -> None:
        """Create a client for the server in the kubeconfig `config`; an attempt takes at most `patience` seconds.

        Raises `SettingsError`.
        """
        self._access = load([config])
        self._patience = patience
        self._caller = Caller(clock)

    @property
    def url(self) -> str:
        """The URL to which the client sends reviews."""
        return self._access.server

    async def ask(self, review: bytes) -> bytes:
        """Return the response to a review, both in JSON; raises `ReviewFailed` if there is no valid response."""
        access = self._access
        call = Call(
            access.server,
            review,
            self._patience,
            access.authority,
            credentials=Credentials(access.headers(), access.certificate),
            server_name=access.server_name,
            is_checked=access.is_checked,
            tries=_TRIES,
        )
        # The request may run without a task (`eager_coroutines`), but the call of the server needs a task.
        (reply,) = await asyncio.create_task(self._caller.call([call]))
        if reply.problem:
            raise ReviewFailed(f'Post "{self.url}": {reply.problem}')
        if not is_success(reply):
            raise ReviewFailed(f'Post "{self.url}": it answered {reply.code}')
        return reply.body

    async def close(self) -> None:
        """Close the connections."""
        await self._caller.close()
