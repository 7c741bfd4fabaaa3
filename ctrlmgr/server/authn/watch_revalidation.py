"""Ends watches whose credentials or permissions are no longer valid.

Guarantees:
- The server ends a watch within a minute after the watch's token or certificate has become invalid, or identifies
  another user. The client then connects again, and the server refuses the request with the reason.
- If `rights` is given, the server also ends a watch whose user is no longer allowed to start the watch. (Kubernetes
  checks permissions only when a watch starts.)
- In each round, the server authenticates each set of credentials once and checks each permission once, even if many
  watches share credentials or permissions. While an authenticator or authorizer does not respond, watches stay open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

from ctrlmgr.authentication.header_lines import HeaderLine
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.impersonation import PREFIX as IMPERSONATION
from ctrlmgr.errors import ApiError, Unauthorized
from ctrlmgr.server.authn.access import Authenticator
from ctrlmgr.server.authn.authenticator_interfaces import RequestParts

EVERY = 20.0
"""Seconds between two rounds of revalidation."""


_UNKNOWN: Final = User("")
"""The value that replaces the user while the credentials cannot be checked."""


class LongRunningRequest(Protocol):
    """A long-running request that the server can end."""

    def cut_off(self) -> None:
        """Close the connection of the request."""


class Rights(Protocol):
    """Checks the current permissions of a user."""

    async def may(self, sender: User, headers: Sequence[HeaderLine], attributes: Attributes) -> bool:
        """Return whether the sender is allowed to make a request with these headers.

        The method also returns True if the permission cannot be determined.
        """


class _TrackedRequest(NamedTuple):
    """A long-running request, with its parts and its attributes."""

    parts: RequestParts
    attributes: Attributes


class _Credentials(NamedTuple):
    """The identity of credentials: the token, the certificates, and their user when the request started."""

    token: bytes
    certificates: tuple[bytes, ...]
    user: str
    uid: str


class WatchRevalidation:
    """The watches and other long-running requests in progress; used on the event loop's thread only."""

    def __init__(self, authenticator: Authenticator, rights: Rights | None = None) -> None:
        """Create an instance that authenticates with `authenticator`, and checks permissions with `rights`."""
        self._authenticator = authenticator
        self._rights = rights
        self._held: dict[_Credentials, dict[LongRunningRequest, _TrackedRequest]] = {}

    @contextmanager
    def holding(
        self, request: LongRunningRequest, parts: RequestParts, user: User, attributes: Attributes
    ) -> Iterator[None]:
        """Return a context manager; while the context is open, each round checks the request.

        `user` is the user of `parts` when the request started.
        """
        token = next((value for name, value in parts.headers if name == b"authorization"), b"")
        credentials = _Credentials(token, tuple(parts.certificates), user.name, user.uid)
        held = self._held.setdefault(credentials, {})
        held[request] = _TrackedRequest(parts, attributes)
        try:
            yield
        finally:
            held.pop(request, None)
            if not held and self._held.get(credentials) is held:
                del self._held[credentials]

    async def run(self) -> None:
        """Revalidate all requests every `EVERY` seconds, until this coroutine is cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            await self.revalidate()

    async def revalidate(self) -> None:
        """Check all credentials and permissions once, and end the requests that the server would refuse now."""
        for credentials, held in list(self._held.items()):
            begun = next(iter(held.values()), None)
            if begun is not None:
                user = await self._user(credentials, begun.parts)
                may = _Answers(user, self._rights)
                for request, each in list(held.items()):
                    if user is None or not await may.still(each):
                        request.cut_off()
            await asyncio.sleep(0)  # other requests are answered in between

    async def _user(self, credentials: _Credentials, parts: RequestParts) -> User | None:
        """Return the user of the credentials.

        The method returns None if the credentials are invalid, and `_UNKNOWN` if their validity cannot be determined.
        """
        try:
            user = await self._authenticator.authenticate(RequestParts(parts.headers, parts.certificates, parts.path))
        except Unauthorized:
            return None
        except ApiError:
            return _UNKNOWN
        return user if (user.name, user.uid) == (credentials.user, credentials.uid) else None


class _Answers:
    """Checks the permissions of one user, each permission at most once."""

    def __init__(self, user: User | None, rights: Rights | None) -> None:
        self._user = user
        self._rights = rights
        self._known: dict[tuple[Attributes, tuple[HeaderLine, ...]], bool] = {}

    async def still(self, begun: _TrackedRequest) -> bool:
        if self._user is None or self._rights is None or self._user is _UNKNOWN:
            return True
        headers = tuple(line for line in begun.parts.headers if line[0].startswith(IMPERSONATION))
        question = begun.attributes, headers
        if (known := self._known.get(question)) is None:
            known = self._known[question] = await self._rights.may(self._user, headers, begun.attributes)
        return known
