"""Who asks and for what: the questions that every request is put before it is answered.

The server asks an `Authenticator` who sends a request and an `Authorizer` whether they may; the answers live
elsewhere (`auth`). `AllowEverything` answers yes to everybody, for tests and for whoever puts the server behind a
door of their own.

Rules: apiserver `pkg/authorization/authorizer/interfaces.go`, `pkg/endpoints/filters/authorization.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ctrlmgr.errors import Forbidden, StatusDetails

_NOTHING: Mapping[str, tuple[str, ...]] = {}


class User(NamedTuple):
    """Who sends a request (authentication.k8s.io UserInfo)."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = _NOTHING


class Attributes(NamedTuple):
    """What a request is about; one that is about no resource has nothing but its verb (`get`) and its path."""

    verb: str
    """`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; an HTTP method in lower case
    where no resource is meant."""
    path: str = ""
    """The decoded path; empty when somebody asks about a resource without requesting it (SubjectAccessReview)."""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class Authenticator(Protocol):
    """Tells who sends a request."""

    def authenticate(self, headers: Sequence[tuple[bytes, bytes]], certificate: Mapping[str, Any] | None) -> User:
        """Return who sends a request with these headers (names in lower case) and verified client certificate.

        Raises `Unauthorized` for credentials that are wrong, `Forbidden` for who may not act as somebody else.
        """

    def token_user(self, token: str) -> User | None:
        """Return who a bearer token stands for, None if nobody (TokenReview)."""


class Authorizer(Protocol):
    """Tells what they may do."""

    def authorize(self, user: User, attributes: Attributes) -> bool:
        """Say whether `user` may do what `attributes` describe."""

    def reason(self, user: User, attributes: Attributes) -> str:
        """Say why they may not; empty where nothing can be added to that."""


class AllowEverything:
    """An `Authenticator` and `Authorizer` that knows one user, who may do everything."""

    def __init__(self, user: User | None = None) -> None:
        """Take everybody for `user`; by default the administrator."""
        self._user = user or User("admin", "admin", ("system:masters", "system:authenticated"))

    def authenticate(self, headers: Sequence[tuple[bytes, bytes]], certificate: Mapping[str, Any] | None) -> User:
        """Return the one user."""
        return self._user

    def token_user(self, token: str) -> User | None:
        """Return the one user."""
        return self._user

    def authorize(self, user: User, attributes: Attributes) -> bool:
        """Return True."""
        return True

    def reason(self, user: User, attributes: Attributes) -> str:
        """Return nothing: nobody is refused."""
        return ""


def refusal(user: User, attributes: Attributes, reason: str = "") -> Forbidden:
    """Return the 403 for a request that may not be made, in the words of apiserver's `responsewriters/errors.go`."""
    why = f": {reason}" if reason else ""
    if not attributes.resource:
        words = f'forbidden: User "{user.name}" cannot {attributes.verb} path "{attributes.path}"{why}'
        return Forbidden(words, details=StatusDetails())
    group, resource, name = attributes.group, attributes.resource, attributes.name
    what = f"{resource}/{attributes.subresource}" if attributes.subresource else resource
    place = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    qualified = f"{resource}.{group}" if group else resource
    subject = f'{qualified} "{name}"' if name else qualified
    return Forbidden(
        f'{subject} is forbidden: User "{user.name}" cannot {attributes.verb} resource "{what}" '
        f'in API group "{group}" {place}{why}',
        details=StatusDetails(name=name, group=group, kind=resource),
    )
