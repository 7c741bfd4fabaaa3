"""Creates the authorizers in the file of `--authorization-config`; a changed file is reloaded.

Guarantees:
- Each decision uses one configuration: the configuration that is in force when the decision begins.
- If the configuration file becomes invalid, the server logs and counts the error, and the previous configuration of
  authorizers remains in force. The types Node and RBAC can be added or removed only by a restart, as in Kubernetes. If
  a changed file adds or removes one of these types, the previous configuration remains in force.

Source: Kubernetes' `pkg/kubeapiserver/authorizer/reload.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ctrlmgr.authentication.followed_files import FollowedFiles
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorization_configuration import WEBHOOK, ConfiguredAuthorizer, read_configuration
from ctrlmgr.authorization.authorizer import Authorizer, RuleListing, Verdict
from ctrlmgr.engine.cel_functions import FUNCTIONS
from ctrlmgr.errors import SettingsError
from ctrlmgr.metrics import AUTHORIZATION_RELOADS

_AT_START_ONLY: Final = frozenset({"Node", "RBAC"})


class ConfiguredAuthorizers:
    """An `Authorizer` that follows a configuration file."""

    def __init__(self, file: Path, make: Callable[[Sequence[ConfiguredAuthorizer]], Authorizer]) -> None:
        """Read `file`, and create an authorizer from its content now and after each change.

        Raises `SettingsError` if the content is invalid.
        """
        self._file = file
        self._make = make
        self._followed = FollowedFiles(
            "settings of authorization", [file], lambda status: AUTHORIZATION_RELOADS.labels(status).inc()
        )
        self.asked = read_configuration(file, FUNCTIONS)
        """The configured authorizers in force."""
        self._now = make(self.asked)
        self._types = _decided_here(self.asked)

    def authorize(self, user: User, attributes: Attributes) -> Verdict | None:
        """Return the verdict on a request; None if the authorizer must call another process for the verdict."""
        return self._now.authorize(user, attributes)

    async def ask(self, user: User, attributes: Attributes) -> Verdict:
        """Return the verdict on a request, calling another process if necessary."""
        return await self._now.ask(user, attributes)

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return the authorization rules for `user`."""
        return self._now.rules(user, namespace)

    def reload(self) -> bool:
        """Reload the configuration file if it has changed; return whether it was reloaded."""
        return self._followed.reload(self._take)

    def _take(self) -> bool:
        configured = read_configuration(self._file, FUNCTIONS)
        if configured == self.asked:
            return False
        self._check(configured)
        self._now = self._make(configured)
        self.asked = configured
        return True

    def _check(self, configured: Sequence[ConfiguredAuthorizer]) -> None:
        """Raise `SettingsError` if an authorizer type was removed, or if a type was added that needs a restart."""
        types = _decided_here(configured)
        if missing := sorted(self._types - types):
            raise SettingsError(f"{self._file}: {', '.join(missing)} cannot be removed while the server runs")
        if added := sorted((types - self._types) & _AT_START_ONLY):
            raise SettingsError(f"{self._file}: {', '.join(added)} cannot be added while the server runs")


def _decided_here(configured: Sequence[ConfiguredAuthorizer]) -> frozenset[str]:
    return frozenset(each.type for each in configured if each.type != WEBHOOK)
