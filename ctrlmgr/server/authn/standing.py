"""Whether a request that lasts would still be let in: watches end when their credentials do, or their rights.

Guarantees:
- A watch whose token or certificate is no longer good is cut off within a minute, and so is one whose credentials mean
  another user by now. Its client comes back, and is told why it may not.
- So is one that its user may no longer begin, if rights are looked at; Kubernetes looks at them when it begins, and
  never again.
- Each set of credentials is looked at once a round, and each question about its rights, however many watches were begun
  with it; what cannot be judged now, because its judge does not answer, stays as it is.
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
from ctrlmgr.server.authn.parts import RequestParts

EVERY = 20.0
"""Seconds between two rounds."""


_UNKNOWN: Final = User("")
"""Who cannot be judged now."""


class Lasting(Protocol):
    """A request that lasts."""

    def cut_off(self) -> None:
        """Drop its connection."""


class Rights(Protocol):
    """Knows who may do what, now."""

    async def may(self, sender: User, headers: Sequence[HeaderLine], attributes: Attributes) -> bool:
        """Whether the sender of a request with these headers may make it, or it cannot be told."""


class _Begun(NamedTuple):
    """A request that lasts, as it came."""

    parts: RequestParts
    attributes: Attributes


class _Credentials(NamedTuple):
    """What tells credentials apart: what was sent, and whom that meant."""

    token: bytes
    certificates: tuple[bytes, ...]
    user: str
    uid: str


class Standing:
    """Knows the requests that last; used on the event loop only."""

    def __init__(self, authenticator: Authenticator, rights: Rights | None = None) -> None:
        """Ask `authenticator` who would be let in, and `rights`, if there are any, what they may do."""
        self._authenticator = authenticator
        self._rights = rights
        self._held: dict[_Credentials, dict[Lasting, _Begun]] = {}

    @contextmanager
    def holding(self, request: Lasting, parts: RequestParts, user: User, attributes: Attributes) -> Iterator[None]:
        """Look after a request while it lasts; `user` is who its `parts` meant when it came, about `attributes`."""
        token = next((value for name, value in parts.headers if name == b"authorization"), b"")
        credentials = _Credentials(token, tuple(parts.certificates), user.name, user.uid)
        held = self._held.setdefault(credentials, {})
        held[request] = _Begun(parts, attributes)
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
        """Look at all credentials and rights once, and cut off what would not be let in."""
        for credentials, held in list(self._held.items()):
            begun = next(iter(held.values()), None)
            if begun is not None:
                user = await self._user(credentials, begun.parts)
                may = _Answers(user, self._rights)
                for request, each in list(held.items()):
                    if user is None or not await may.still(each):
                        request.cut_off()
            await asyncio.sleep(0)  # others are served in between

    async def _user(self, credentials: _Credentials, parts: RequestParts) -> User | None:
        """Return whom credentials mean, as far as that can be told; None if they are no longer good."""
        try:
            user = await self._authenticator.authenticate(RequestParts(parts.headers, parts.certificates, parts.path))
        except Unauthorized:
            return None
        except ApiError:
            return _UNKNOWN
        return user if (user.name, user.uid) == (credentials.user, credentials.uid) else None


class _Answers:
    """What one user may still do; each question is asked once."""

    def __init__(self, user: User | None, rights: Rights | None) -> None:
        self._user = user
        self._rights = rights
        self._known: dict[tuple[Attributes, tuple[HeaderLine, ...]], bool] = {}

    async def still(self, begun: _Begun) -> bool:
        if self._user is None or self._rights is None or self._user is _UNKNOWN:
            return True
        headers = tuple(line for line in begun.parts.headers if line[0].startswith(IMPERSONATION))
        question = begun.attributes, headers
        if (known := self._known.get(question)) is None:
            known = self._known[question] = await self._rights.may(self._user, headers, begun.attributes)
        return known
