"""Authenticates requests with bootstrap tokens.

Source: Kubernetes' `plugin/pkg/auth/authenticator/token/bootstrap`, which `--enable-bootstrap-token-auth` enables.
"""

from __future__ import annotations

from ctrlmgr.authentication.bootstrap_tokens import token_user
from ctrlmgr.authentication.service_account_claims import Find
from ctrlmgr.authentication.user import Audiences, User
from ctrlmgr.clock import Clock
from ctrlmgr.server.authn.authenticator_interfaces import AuthenticationNotes
from ctrlmgr.server.authn.union_authenticator import ForAllAudiences


class BootstrapTokens(ForAllAudiences):
    """A `TokenAuthenticator` for bootstrap tokens."""

    def __init__(self, find: Find, audiences: Audiences, *, clock: Clock) -> None:
        """Create an authenticator that reads Secrets with `find`; tokens are valid for `audiences`."""
        super().__init__(audiences)
        self._find = find
        self._clock = clock

    async def user_of(self, token: str, notes: AuthenticationNotes) -> User | None:
        """Return the user of a bootstrap token; None if the token is not a bootstrap token or is invalid."""
        return token_user(token, self._find, self._clock.now())
