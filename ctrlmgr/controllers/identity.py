"""What the identity controllers are built from besides what every controller is."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

from ctrlmgr.authentication.jwt import PrivateKey
from ctrlmgr.authentication.user import User
from ctrlmgr.controllers.descriptor import ControllerContext


class MayAsk(Protocol):
    """Says who may ask for what, as a SubjectAccessReview does."""

    def __call__(self, user: User, subresource: str) -> bool:
        """Whether `user` may create a subresource of `certificatesigningrequests`; called on any thread."""


class Identity(NamedTuple):
    """What signs in the name of this process, and who may ask for it."""

    token_key: PrivateKey
    """Signs tokens that are kept in Secrets."""
    authority: Path
    """The certificate of our own authority."""
    authority_key: Path
    may_ask: MayAsk


class IdentityContext(ControllerContext, Protocol):
    """What an identity controller is built from."""

    @property
    def identity(self) -> Identity:
        """What signs, and who may ask for it."""
