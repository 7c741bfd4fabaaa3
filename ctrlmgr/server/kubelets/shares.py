"""Limits the number of concurrent tunnels of a process, and of each user.

Guarantees: a refused client receives 429 with Retry-After. The limit of each user does not apply to members of
`system:masters`, but their tunnels count towards the limit of the process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ctrlmgr.authentication.user import MASTERS, User
from ctrlmgr.errors import StatusDetails, TooManyRequests

MOST: Final = 4096
"""Maximum number of concurrent tunnels of the process."""
MOST_OF_USER: Final = 1024
"""Maximum number of concurrent tunnels of one user."""


class TunnelShares:
    """Counts tunnels. Used on the event loop's thread only."""

    def __init__(self, most: int = MOST, most_of_user: int = MOST_OF_USER) -> None:
        """Create limits: at most `most` concurrent tunnels, of which at most `most_of_user` belong to one user."""
        self._most = most
        self._most_of_user = most_of_user
        self._count = 0
        self._of: Counter[str] = Counter()

    @contextmanager
    def held(self, user: User) -> Iterator[None]:
        """Count a tunnel of a user while the context is open; raises `TooManyRequests` if a limit is reached."""
        has_share = MASTERS in user.groups or self._of[user.name] < self._most_of_user
        if self._count >= self._most or not has_share:
            raise TooManyRequests(
                "too many open streams, please try again later", details=StatusDetails(retry_after_seconds=1)
            )
        self._change(user.name, 1)
        try:
            yield
        finally:
            self._change(user.name, -1)

    def _change(self, user: str, count: int) -> None:
        self._count += count
        self._of[user] += count
        if not self._of[user]:
            del self._of[user]
