"""Who sends a request, and the rule of servers without roles: known users may do everything.

Guarantees:
- A verified client certificate or a valid bearer token names the user; neither makes it `system:anonymous`.
- Credentials that were given and are wrong are refused (401): nobody with a mistyped token is taken for anonymous.
- The anonymous may read the health paths, `/version` and the page at `/ui`, which holds no data (that is below
  `/ui/api`), nothing else (403). Known users may do everything; acting for another user and the process's own inside
  are for `system:masters` alone.

Rules: apiserver `pkg/authentication/request/{bearertoken,x509,anonymous}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ctrlmgr.authentication.user import ANONYMOUS, AUTHENTICATED, MASTERS, User, known
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, AlwaysAllow, Immediate, RuleListing, Verdict
from ctrlmgr.errors import Unauthorized

_PRIVATE_PATHS = ("/debug", "/configz", "/play")
_PUBLIC_PATHS = ("/healthz", "/livez", "/readyz", "/version", "/ui")
_DATA_PATH = "/ui/api"

Headers = Sequence[tuple[bytes, bytes]]


class TokenSource(Protocol):
    """Something that knows tokens."""

    def user(self, token: str) -> User | None:
        """Return who `token` stands for, None if this source does not know it."""


class RequestAuthenticator:
    """Reads the credentials of a request: `access.Authenticator`."""

    def __init__(self, *sources: TokenSource) -> None:
        """Ask `sources` about tokens, in this order."""
        self._sources = sources

    def authenticate(self, headers: Headers, certificate: Mapping[str, Any] | None) -> User:
        """Return who sends a request; raises `Unauthorized` for a wrong token.

        `headers` have lower-case names; `certificate` is what `ssl` says of the verified client certificate.
        """
        token = None
        for name, value in headers:
            if name == b"authorization":
                token = _bearer(value)
        if certificate:
            return known(certificate_user(certificate))
        return ANONYMOUS if token is None else self._by_token(token)

    def token_user(self, token: str) -> User | None:
        """Return who a token stands for, for a TokenReview."""
        for source in self._sources:
            if user := source.user(token):
                return known(user)
        return None

    def _by_token(self, token: str) -> User:
        user = self.token_user(token)
        if user is None:
            raise Unauthorized
        return user


class KnownUsersAuthorizer(Immediate):
    """Lets all known users do everything: an `Authorizer` for what has no roles."""

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return whether `user` may do what `attributes` describe."""
        return ALLOWED if _may(user, attributes) else NO_OPINION

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return everything for a known user."""
        return AlwaysAllow().rules(user, namespace) if AUTHENTICATED in user.groups else RuleListing()


def _may(user: User, attributes: Attributes) -> bool:
    if attributes.path.startswith(_PRIVATE_PATHS) or attributes.verb.startswith("impersonate"):
        return MASTERS in user.groups
    if AUTHENTICATED in user.groups:
        return True
    return attributes.verb in ("get", "head") and _is_public(attributes.path)


def certificate_user(certificate: Mapping[str, Any]) -> User:
    """Read a client certificate's subject: the common name is the user, the organizations are the groups."""
    subject = [pair for names in certificate.get("subject", ()) for pair in names]
    name = next((value for key, value in subject if key == "commonName"), "")
    return User(name, "", tuple(value for key, value in subject if key == "organizationName"))


def _is_public(path: str) -> bool:
    return any(_is_below(path, public) for public in _PUBLIC_PATHS) and not _is_below(path, _DATA_PATH)


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


def _bearer(value: bytes) -> str | None:
    """Return the token of an Authorization header, None when it is another scheme's."""
    scheme, _, token = value.partition(b" ")
    return token.strip().decode("latin-1") if scheme.lower() == b"bearer" else None
