"""Whether who sent a request that lasts would still be let in: watches end when their credentials do.

Guarantees:
- A watch whose token or certificate is no longer good is cut off within a minute, and so is one whose credentials mean
  another user by now. Its client comes back, and is told why it may not.
- Each set of credentials is looked at once a round, however many watches were begun with it; what cannot be judged now,
  because its judge does not answer, stays as it is.
- What rights its user has is not looked at: as in Kubernetes, a watch was allowed when it began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from ctrlmgr.authentication.user import User
from ctrlmgr.errors import ApiError, Unauthorized
from ctrlmgr.server.authn.access import Authenticator
from ctrlmgr.server.authn.parts import RequestParts

EVERY = 20.0
"""Seconds between two rounds."""


class Lasting(Protocol):
    """A request that lasts."""

    def cut_off(self) -> None:
        """Drop its connection."""


class _Credentials(NamedTuple):
    """What tells credentials apart: what was sent, and whom that meant."""

    token: bytes
    certificates: tuple[bytes, ...]
    user: str
    uid: str


class Standing:
    """Knows the requests that last; used on the event loop only."""

    def __init__(self, authenticator: Authenticator) -> None:
        """Ask `authenticator` who would be let in."""
        self._authenticator = authenticator
        self._held: dict[_Credentials, dict[Lasting, RequestParts]] = {}

    @contextmanager
    def holding(self, request: Lasting, parts: RequestParts, user: User) -> Iterator[None]:
        """Look after a request while it lasts; `user` is who its `parts` meant when it came."""
        token = next((value for name, value in parts.headers if name == b"authorization"), b"")
        credentials = _Credentials(token, tuple(parts.certificates), user.name, user.uid)
        held = self._held.setdefault(credentials, {})
        held[request] = parts
        try:
            yield
        finally:
            held.pop(request, None)
            if not held and self._held.get(credentials) is held:
                del self._held[credentials]

    async def run(self) -> None:
        """Look again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            await self.look()

    async def look(self) -> None:
        """Look at all credentials once, and cut off those that are no longer good."""
        for credentials, held in list(self._held.items()):
            parts = next(iter(held.values()), None)
            if parts is not None and not await self._is_good(credentials, parts):
                for request in list(held):
                    request.cut_off()
            await asyncio.sleep(0)  # others are served in between

    async def _is_good(self, credentials: _Credentials, parts: RequestParts) -> bool:
        try:
            user = await self._authenticator.authenticate(RequestParts(parts.headers, parts.certificates, parts.path))
        except Unauthorized:
            return False
        except ApiError:
            return True
        return (user.name, user.uid) == (credentials.user, credentials.uid)
