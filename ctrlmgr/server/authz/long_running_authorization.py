"""Checks whether a long-running request would still be authorized.

Guarantees: if the verdict depends on another server and this server does not respond, the request counts as authorized.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctrlmgr.authentication.header_lines import HeaderLine
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.authorization.impersonation import impersonate, wanted_user
from ctrlmgr.errors import ApiError, Forbidden


class RepeatedAuthorization:
    """Repeats the authorization of a request, including impersonation."""

    def __init__(self, authorizer: Authorizer) -> None:
        """Create an instance that calls `authorizer`."""
        self._authorizer = authorizer

    async def may(self, sender: User, headers: Sequence[HeaderLine], attributes: Attributes) -> bool:
        """Return whether the sender is allowed to make a request with these headers.

        The method also returns True if the permission cannot be determined.
        """
        try:
            user = await self._acting(sender, headers, attributes)
        except Forbidden:
            return False
        except ApiError:
            return True
        verdict = self._authorizer.authorize(user, attributes)
        if verdict is None:
            verdict = await self._authorizer.ask(user, attributes)
        return verdict.allows or bool(verdict.error)

    async def _acting(self, sender: User, headers: Sequence[HeaderLine], attributes: Attributes) -> User:
        requested = wanted_user(headers)
        return (
            sender if requested is None else (await impersonate(sender, requested, attributes, self._authorizer)).user
        )
