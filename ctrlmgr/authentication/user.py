"""Users, the groups to which every user belongs, and the results of authentication.

Source: apiserver `pkg/authentication/user/user.go`, `pkg/authentication/authenticator`, `pkg/authentication/group`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ctrlmgr.errors import Unauthorized

MASTERS = "system:masters"
MONITORING = "system:monitoring"
"""The group of all users that are allowed to make all requests."""

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
"""The key of the extra field that identifies a user's credential."""

Audiences: TypeAlias = Sequence[str]
"""Audiences of a token: those for which a token is valid, or those that a TokenReview requests."""

_NOTHING: Mapping[str, tuple[str, ...]] = {}


class User(NamedTuple):
    """The user of a request (authentication.k8s.io UserInfo)."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = _NOTHING


ANONYMOUS = User("system:anonymous", "", (UNAUTHENTICATED,))
"""The user of a request without credentials."""


API_SERVER = User("system:apiserver", "", (MASTERS,))
"""The user of the server's own requests (Kubernetes' loopback client)."""


class Authenticated(NamedTuple):
    """A user, and the requested audiences for which the credential is valid."""

    user: User
    audiences: tuple[str, ...] = ()


class CredentialsRefused(Unauthorized):
    """Unauthorized"""  # noqa: D400, D415  # the text for clients; the reasons are for reviews and the audit log

    def __init__(self, *reasons: str) -> None:
        """Store the reasons of a failed authentication, without duplicates; responses do not contain these reasons."""
        super().__init__()
        self.reasons: tuple[str, ...] = tuple(dict.fromkeys(reasons))

    @property
    def explanation(self) -> str:
        """The reasons for the failure in the form of apimachinery's aggregated errors.

        If there are several reasons, they are enclosed in brackets.
        """
        return self.reasons[0] if len(self.reasons) == 1 else f"[{', '.join(self.reasons)}]"


def known(user: User) -> User:
    """Return `user` with the group `system:authenticated` added, unless the user is anonymous or already has the group.

    As in apiserver's `AuthenticatedGroupAdder`, anonymous users and members of `system:unauthenticated` are not
    changed.
    """
    if AUTHENTICATED in user.groups or user.name == ANONYMOUS.name or UNAUTHENTICATED in user.groups:
        return user
    return User(user.name, user.uid, (*user.groups, AUTHENTICATED), user.extra)  # faster than _replace()


def common_audiences(expected: Audiences, given: Audiences) -> tuple[str, ...]:
    """Return the audiences that are in both `expected` and `given`, in the order of `expected`."""
    return tuple([each for each in expected if each in given])
