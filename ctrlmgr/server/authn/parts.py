"""What authenticators are asked with, and what they answer.

An `Authenticator` looks at a request's parts, a `TokenAuthenticator` at a bearer token wherever it was found. Both may
await; both answer None for what they know nothing of, and raise `CredentialsRefused` for credentials that are theirs to
judge and no good.

Rules: apiserver `pkg/authentication/authenticator/interfaces.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.authentication.user import Audiences, Authenticated, User


@dataclass(slots=True)
class Told:
    """What authenticators have to say besides who it is."""

    warnings: list[str] = field(default_factory=list)
    """For the client."""
    annotations: dict[str, str] = field(default_factory=dict)
    """For the audit log."""


@dataclass(slots=True)
class RequestParts:
    """What of a request says who sends it."""

    headers: HeaderLines
    certificates: Sequence[bytes] = ()
    """What the client presented (DER), its own first; only that it has the key has been checked."""
    path: str = ""
    told: Told = field(default_factory=Told)


class Authenticator(Protocol):
    """Tells who sends a request."""

    async def authenticate(self, parts: RequestParts) -> User | None:
        """Return who sends a request, None if this authenticator finds nothing; raises `CredentialsRefused`."""


class TokenAuthenticator(Protocol):
    """Tells whom a bearer token stands for."""

    async def authenticate_token(self, token: str, audiences: Audiences, told: Told) -> Authenticated | None:
        """Return whom `token` stands for towards one of `audiences`, None if it is none of this authenticator's.

        Raises `CredentialsRefused`.
        """
