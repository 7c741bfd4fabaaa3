"""Defines the interfaces of authenticators, and the types of their arguments and results.

An `Authenticator` authenticates a request, and a `TokenAuthenticator` authenticates a bearer token. Both types of
authenticators may wait for other processes. An authenticator returns None for credentials of a type that it does not
handle, and raises `CredentialsRefused` for invalid credentials.

Source: apiserver `pkg/authentication/authenticator/interfaces.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.authentication.user import Audiences, Authenticated, User


@dataclass(slots=True)
class AuthenticationNotes:
    """The warnings and annotations that an authentication produces in addition to the user."""

    warnings: list[str] = field(default_factory=list)
    """Warnings that are sent to the client."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations that are added to the audit event of the request."""


@dataclass(slots=True)
class RequestParts:
    """The parts of a request that can identify its sender."""

    headers: HeaderLines
    certificates: Sequence[bytes] = ()
    """The client's certificates (DER), beginning with the client's own.

    TLS has verified only that the client has the private key of its certificate.
    """
    path: str = ""
    notes: AuthenticationNotes = field(default_factory=AuthenticationNotes)


class Authenticator(Protocol):
    """Determines the user of a request from the request's credentials."""

    async def authenticate(self, parts: RequestParts) -> User | None:
        """Return the user of a request; None if the request has no credentials for this authenticator.

        Raises `CredentialsRefused`.
        """


class TokenAuthenticator(Protocol):
    """Determines the user that a bearer token identifies."""

    async def authenticate_token(
        self, token: str, audiences: Audiences, notes: AuthenticationNotes
    ) -> Authenticated | None:
        """Return the user of `token` for one of `audiences`.

        The method returns None if this authenticator does not handle tokens of this type.

        Raises `CredentialsRefused`.
        """
