"""Who sends a request, and whether they may.

Guarantees:
- A verified client certificate or a valid bearer token names the user; neither makes it `system:anonymous`.
- Credentials that were given and are wrong are refused (401): nobody with a mistyped token is taken for anonymous.
- The anonymous may read the health paths, `/version` and the page at `/ui`, which holds no data (that is below
  `/ui/api`), nothing else (403). Whoever is known may do everything;
  acting for somebody else (Impersonate-User) and the process's own inside are for `system:masters` alone.

Rules: apiserver `pkg/authentication/request/{bearertoken,x509,anonymous}`, `pkg/endpoints/filters/impersonation.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from ctrlmgr.errors import Forbidden, Unauthorized
from ctrlmgr.server.authn.access import Attributes, User

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", "", (UNAUTHENTICATED,))

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
        """Return who sends a request; raises `Unauthorized` for a wrong token, `Forbidden` for who may not impersonate.

        `headers` have lower-case names; `certificate` is what `ssl` says of the verified client certificate.
        """
        user = ANONYMOUS
        impersonates = False
        token = None
        for name, value in headers:
            if name == b"authorization":
                token = _bearer(value)
            elif name.startswith(b"impersonate-"):
                impersonates = True
        if certificate:
            user = _known(certificate_user(certificate))
        elif token is not None:
            user = self._by_token(token)
        return _impersonated(user, headers) if impersonates else user

    def token_user(self, token: str) -> User | None:
        """Return who a token stands for, for a TokenReview."""
        for source in self._sources:
            if user := source.user(token):
                return _known(user)
        return None

    def _by_token(self, token: str) -> User:
        user = self.token_user(token)
        if user is None:
            raise Unauthorized
        return user


class KnownUsersAuthorizer:
    """Lets whoever is known do everything: `access.Authorizer`."""

    def authorize(self, user: User, attributes: Attributes) -> bool:
        """Say whether `user` may do what `attributes` describe."""
        if attributes.path.startswith(_PRIVATE_PATHS):
            return MASTERS in user.groups
        if AUTHENTICATED in user.groups:
            return True
        return attributes.verb in ("get", "head") and _is_public(attributes.path)

    def reason(self, user: User, attributes: Attributes) -> str:
        """Return nothing: there is nothing to add."""
        return ""


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


def _known(user: User) -> User:
    name, uid, groups, extra = user
    return user if AUTHENTICATED in groups else User(name, uid, (*groups, AUTHENTICATED), extra)


def _impersonated(user: User, headers: Headers) -> User:
    name, uid, groups = "", "", list[str]()
    for header, value in headers:
        match header:
            case b"impersonate-user":
                name = value.decode("latin-1")
            case b"impersonate-uid":
                uid = value.decode("latin-1")
            case b"impersonate-group":
                groups.append(value.decode("latin-1"))
    if MASTERS not in user.groups or not name:
        target = f'users "{name}"' if name else "users"
        raise Forbidden(
            f'{target} is forbidden: User "{user.name}" cannot impersonate resource "users" in API group ""'
        )
    if name == ANONYMOUS.name:
        return ANONYMOUS
    return _known(User(name, uid, tuple(_service_account_groups(name, groups))))


def _service_account_groups(name: str, groups: Iterable[str]) -> Iterable[str]:
    """Add the groups that every service account is in, when none are named."""
    groups = list(groups)
    prefix, _, rest = name.partition("system:serviceaccount:")
    if not prefix and rest and not groups:
        namespace = rest.partition(":")[0]
        return ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    return groups
