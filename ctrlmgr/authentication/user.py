"""Users, the groups that every user is in, and what authentication answers.

Rules: apiserver `pkg/authentication/user/user.go`, `pkg/authentication/authenticator`, `pkg/authentication/group`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ctrlmgr.errors import Unauthorized

MASTERS = "system:masters"
"""The group whose members may do everything."""

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
"""Where a user's extra says which credential was used."""

Audiences: TypeAlias = Sequence[str]
"""For whom a token is meant, or whom a review asks about."""

_NOTHING: Mapping[str, tuple[str, ...]] = {}


class User(NamedTuple):
    """Who sends a request (authentication.k8s.io UserInfo)."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = _NOTHING


ANONYMOUS = User("system:anonymous", "", (UNAUTHENTICATED,))
"""Who sends a request without credentials."""


API_SERVER = User("system:apiserver", "", (MASTERS,))
"""What every serving process does by itself, it does as this user (Kubernetes' loopback client)."""


class Authenticated(NamedTuple):
    """A user, and for which of the audiences that were asked about the credential is good."""

    user: User
    audiences: tuple[str, ...] = ()


class CredentialsRefused(Unauthorized):
    """Unauthorized"""  # noqa: D400, D415  # what a client is told; the reasons are for reviews and the audit log

    def __init__(self, *reasons: str) -> None:
        """Remember why, once for each reason; a client is only told that it was so."""
        super().__init__()
        self.reasons: tuple[str, ...] = tuple(dict.fromkeys(reasons))

    @property
    def explanation(self) -> str:
        """Say why, as apimachinery's aggregated errors do: one reason as it is, several in brackets."""
        return self.reasons[0] if len(self.reasons) == 1 else f"[{', '.join(self.reasons)}]"


def known(user: User) -> User:
    """Return `user` as a member of the group of all known users, unless the credential already says about that.

    That is apiserver's `AuthenticatedGroupAdder`: neither the anonymous nor who is said to be unauthenticated is added.
    """
    if AUTHENTICATED in user.groups or user.name == ANONYMOUS.name or UNAUTHENTICATED in user.groups:
        return user
    return User(user.name, user.uid, (*user.groups, AUTHENTICATED), user.extra)  # _replace() takes three times as long


def common_audiences(wanted: Audiences, given: Audiences) -> tuple[str, ...]:
    """Return those of the audiences `wanted` that a credential is `given` for, in the order wanted."""
    return tuple([each for each in wanted if each in given])
