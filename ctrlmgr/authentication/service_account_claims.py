"""The claims of a bound service account token, and their validation against current objects.

Guarantees:
- A token contains the uid of its service account, and the uid of the pod, secret or node to which it is bound. If the
  service account or the bound object is deleted and created again, the old token is invalid.
- A token is validated against the current objects at each use. When the deletion of its bound object is requested, a
  token stays valid for `LEEWAY` more seconds. Within this time, a process that shuts down can make requests.

Source: Kubernetes' `pkg/serviceaccount/claims.go`, apiserver `pkg/authentication/serviceaccount/util.go`, and go-jose's
`jwt.Claims.Validate`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, PODS, Key, Resource
from ctrlmgr.authentication.user import CREDENTIAL_ID, CredentialsRefused, User
from ctrlmgr.clock import parse_time

SERVICE_ACCOUNTS: Final = Resource("", "serviceaccounts")
SECRETS: Final = Resource("", "secrets")

WARN_AFTER: Final = 3607
"""The lifetime, in seconds, that a kubelet requests for a pod whose spec requests no token."""

EXTENDED: Final = 365 * 24 * 3600
"""The actual lifetime, in seconds, of a token that was requested with the lifetime `WARN_AFTER`.

Uses of a token after its requested lifetime are recorded in the audit log.
"""

LEEWAY: Final = 60
"""The allowed clock skew in seconds, and the time after its deletion for which an object still counts as existing."""

STALE: Final = "authentication.k8s.io/stale-token"
"""The audit annotation that marks requests whose token should have been renewed."""

ISSUED: Final = "authentication.kubernetes.io/issued-credential-id"
"""The audit annotation of a request that created a token; the annotation contains the token's id."""

GROUP: Final = "system:serviceaccounts"
PREFIX: Final = "system:serviceaccount:"

_EXTRA: Final = "authentication.kubernetes.io"
_INVALIDATED: Final = "service account token has been invalidated"

Find: TypeAlias = Callable[[Resource, Key], Object | None]
"""Returns the current state of an object, or None if the object does not exist."""


class Reference(msgspec.Struct, omit_defaults=True):
    """A reference to an object in the format that tokens contain."""

    name: str = ""
    uid: str = ""


class KubernetesClaims(msgspec.Struct, omit_defaults=True):
    """The value of the claim `kubernetes.io`: the objects to which the token is bound."""

    namespace: str = ""
    node: Reference | None = None
    pod: Reference | None = None
    secret: Reference | None = None
    serviceaccount: Reference = msgspec.field(default_factory=Reference)
    warnafter: int | float | None = None


class Claims(msgspec.Struct, omit_defaults=True):
    """The claims of a bound token; times are in seconds since 1970."""

    aud: str | list[str] = msgspec.field(default_factory=list)
    exp: int | float | None = None
    iat: int | float | None = None
    iss: str = ""
    jti: str = ""
    kubernetes: KubernetesClaims = msgspec.field(name="kubernetes.io", default_factory=KubernetesClaims)
    nbf: int | float | None = None
    sub: str = ""

    @property
    def audiences(self) -> list[str]:
        """The audiences for which the token is valid."""
        return [self.aud] if isinstance(self.aud, str) else self.aud


class Bound(NamedTuple):
    """The objects to which a token is bound, in addition to its service account."""

    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None


class ValidatedToken(NamedTuple):
    """The user of a valid token, with annotations and warnings."""

    user: User
    annotations: tuple[tuple[str, str], ...] = ()
    """Annotations that are added to the audit event."""
    warnings: tuple[str, ...] = ()
    """Warnings that are sent to the client."""
    used: Object | None = None
    """The Secret that contains the token, if it is a legacy token; otherwise None."""


def bound_claims(
    account: Object, audiences: Sequence[str], seconds: int, warn_after: int, bound: Bound, *, now: int, token_id: str
) -> Claims:
    """Return the claims of a token for `account`; the token is valid for `seconds` from `now` (seconds since 1970).

    After `warn_after` seconds, each use of the token is recorded in the audit log; 0 disables the recording. The caller
    must pass a unique `token_id`.
    """
    about = KubernetesClaims(account.namespace, serviceaccount=Reference(account.name, account.uid))
    about.pod, about.secret, about.node = bound
    about.warnafter = now + warn_after if warn_after else None
    return Claims(
        aud=list(audiences),
        exp=now + seconds,
        iat=now,
        jti=token_id,
        kubernetes=about,
        nbf=now,
        sub=user_name(account.namespace, account.name),
    )


def user_name(namespace: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"{PREFIX}{namespace}:{name}"


def judge(claims: Claims, find: Find, now: int) -> ValidatedToken:
    """Return the user of a token at `now` (microseconds since 1970), checked against the objects that `find` returns.

    The caller must verify signature, issuer and audience first. Raises `CredentialsRefused` if the token is invalid.
    """
    check_times(claims.exp, claims.nbf, claims.iat, now / 1_000_000)
    about = claims.kubernetes
    _check_account(about, find, now)
    if about.secret is not None:
        _check_bound("secret", about.secret, find(SECRETS, Key(about.namespace, about.secret.name)), now)
    if about.pod is not None:
        _check_bound("pod", about.pod, find(PODS, Key(about.namespace, about.pod.name)), now)
    elif about.node is not None:  # in a pod's token, the node is only informative
        _check_bound("node", about.node, find(NODES, Key("", about.node.name)), now)
    annotations = tuple(_stale(claims, now // 1_000_000))
    return ValidatedToken(account_user(about.namespace, about.serviceaccount, _extra(claims)), annotations)


def account_user(namespace: str, account: Reference, extra: dict[str, tuple[str, ...]]) -> User:
    """Return the user of a service account."""
    return User(user_name(namespace, account.name), account.uid, (GROUP, f"{GROUP}:{namespace}"), extra)


def credential_id(token_id: str) -> str:
    """Return the text by which audit logs identify the token with this id."""
    return f"JTI={token_id}" if token_id else ""


def check_times(expires: float | None, begins: float | None, issued: float | None, now: float) -> None:
    """Check a token's validity period (in seconds since 1970), with the leeway.

    Raises `CredentialsRefused` if the token is not valid now.
    """
    if begins is not None and now + LEEWAY < begins:
        raise CredentialsRefused("service account token is not valid yet")
    if expires is not None and now - LEEWAY > expires:
        raise CredentialsRefused("service account token has expired")
    if issued is not None and now + LEEWAY < issued:
        words = "service account token claims could not be validated due to unexpected validation error"
        raise CredentialsRefused(words)


def _check_account(about: KubernetesClaims, find: Find, now: int) -> None:
    claimed = about.serviceaccount
    account = find(SERVICE_ACCOUNTS, Key(about.namespace, claimed.name))
    if account is None:
        raise CredentialsRefused(f'serviceaccounts "{claimed.name}" not found')
    if account.uid != claimed.uid:
        raise CredentialsRefused(f"service account UID ({account.uid}) does not match claim ({claimed.uid})")
    if _has_ended(account, now):
        raise CredentialsRefused(f"service account {about.namespace}/{claimed.name} has been deleted")


def _check_bound(kind: str, claimed: Reference, obj: Object | None, now: int) -> None:
    if obj is None:
        raise CredentialsRefused(_INVALIDATED)
    if obj.uid != claimed.uid:
        words = f"{kind} UID ({obj.uid}) does not match service account {kind} ref claim ({claimed.uid})"
        raise CredentialsRefused(words)
    if _has_ended(obj, now):
        raise CredentialsRefused(_INVALIDATED)


def _has_ended(obj: Object, now: int) -> bool:
    """Return whether a terminating object's deletion time is further in the past than the leeway."""
    ends = obj.metadata.deletion_timestamp
    return ends is not None and parse_time(ends) < now - LEEWAY * 1_000_000


def _stale(claims: Claims, now: int) -> list[tuple[str, str]]:
    warn_after = claims.kubernetes.warnafter
    if not warn_after or now <= warn_after:
        return []
    return [(STALE, f"subject: {claims.sub}, seconds after warning threshold: {now - int(warn_after)}")]


def _extra(claims: Claims) -> dict[str, tuple[str, ...]]:
    """Return the user's extra fields, from which authorizers can identify the token and its bound objects."""
    about, extra = claims.kubernetes, dict[str, tuple[str, ...]]()
    if about.pod is not None and about.pod.name and about.pod.uid:
        extra[f"{_EXTRA}/pod-name"] = (about.pod.name,)
        extra[f"{_EXTRA}/pod-uid"] = (about.pod.uid,)
    if claims.jti:
        extra[CREDENTIAL_ID] = (credential_id(claims.jti),)
    if about.node is not None and about.node.name:
        extra[f"{_EXTRA}/node-name"] = (about.node.name,)
        if about.node.uid:
            extra[f"{_EXTRA}/node-uid"] = (about.node.uid,)
    return extra
