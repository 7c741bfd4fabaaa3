"""Asks another server with reviews: whose a token is, who may do what.

Guarantees:
- A server that stumbles is asked again, five times in all and longer apart each time; one that cannot be reached, or
  says that the question was wrong, is not.
- What went wrong is told in the words of Go's HTTP client.

Rules: apiserver `pkg/util/webhook/webhook.go` (`WithExponentialBackoff`, `DefaultShouldRetry`).
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final, NamedTuple

import httpx

from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.server.go_words import in_go_words
from ctrlmgr.settings.kubeconfig import load

_TRIES: Final = 5
_PAUSE: Final = 0.5
_FACTOR: Final = 1.5
"""Seconds before the second attempt, and by how much each further wait is longer."""
_STUMBLES: Final = frozenset((429, 500, 504))
"""Answers after which a server is asked again, as after any that says when to (`Retry-After`)."""


class NoAnswer(CtrlmgrError):
    """The other server gave no answer that can be used."""


class _Failure(NamedTuple):
    problem: str
    is_passing: bool
    """Whether another attempt may do better."""


class ReviewServer:
    """The server of a kubeconfig's current context; used on one event loop."""

    def __init__(self, config: Path, *, patience: float) -> None:
        """Read `config`; an attempt takes `patience` seconds at most. Raises `SettingsError`."""
        self._access = load([config])
        self._patience = patience
        self._client: httpx.AsyncClient | None = None

    @property
    def url(self) -> str:
        """Where it is asked."""
        return self._access.server

    async def ask(self, review: bytes) -> bytes:
        """Return the answer to a review in JSON; raises `NoAnswer`."""
        return await asyncio.create_task(self._asked(review))  # a request may be answered without a task (`eager`)

    async def _asked(self, review: bytes) -> bytes:
        pause, left = _PAUSE, _TRIES
        while isinstance(answer := await self._try(review), _Failure):
            left -= 1
            if not answer.is_passing or not left:
                raise NoAnswer(answer.problem)
            await asyncio.sleep(pause)
            pause *= _FACTOR
        return answer

    async def _try(self, review: bytes) -> bytes | _Failure:
        if self._client is None:
            context = self._access.context
            verify = context if context is not None else True
            self._client = httpx.AsyncClient(verify=verify, timeout=self._patience, trust_env=False)
        headers = {"content-type": "application/json", "accept": "application/json", **self._access.headers()}
        try:
            answer = await self._client.post(self.url, content=review, headers=headers)
        except httpx.HTTPError as error:
            return _Failure(f'Post "{self.url}": {in_go_words(error, self.url)}', _is_passing(error))
        if answer.is_success:
            return answer.content
        passes = answer.status_code in _STUMBLES or "retry-after" in answer.headers
        return _Failure(f'Post "{self.url}": it answered {answer.status_code}', passes)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None


def _is_passing(error: httpx.HTTPError) -> bool:
    """Whether a connection was lost, rather than never made."""
    return isinstance(error, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError)
