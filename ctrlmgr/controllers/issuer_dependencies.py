"""The additional dependencies of controllers that issue tokens and certificates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from ctrlmgr.authentication.jwt import PrivateKey
from ctrlmgr.authentication.user import User
from ctrlmgr.controllers.descriptor import ControllerContext


class AccessCheck(Protocol):
    """Checks a user's permissions, like a SubjectAccessReview."""

    def __call__(self, user: User, subresource: str) -> bool:
        """Return whether `user` may create a subresource of `certificatesigningrequests`.

        The method is thread-safe.
        """


class Identity(NamedTuple):
    """The keys with which this process signs tokens and certificates, and the AccessCheck for signing requests."""

    token_key: Callable[[], PrivateKey]
    """Returns the key that signs the tokens in Secrets; raises `SettingsError` if the key is unusable."""
    authority: Path
    """The certificate file of this server's certificate authority."""
    authority_key: Path
    may_ask: AccessCheck


class IdentityContext(ControllerContext, Protocol):
    """The dependencies of a controller that issues tokens or certificates."""

    @property
    def identity(self) -> Identity:
        """The signing keys of this process, and the AccessCheck for signing requests."""
