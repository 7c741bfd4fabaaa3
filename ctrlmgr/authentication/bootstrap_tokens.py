"""Bootstrap tokens: short tokens in Secrets of `kube-system`, with which new nodes authenticate.

Guarantees: a token is valid only if its Secret has the right type and name, is enabled for authentication, has not
expired, and names only groups of bootstrappers. A Secret whose expiration is not a valid time counts as expired.
Bootstrap tokens are compared in constant time.

Source: Kubernetes' `plugin/pkg/auth/authenticator/token/bootstrap`, cluster-bootstrap `util/{tokens,secrets}`.
"""

from __future__ import annotations

import hmac
import re
from typing import Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.authentication.legacy_claims import secret_data
from ctrlmgr.authentication.service_account_claims import SECRETS, Find
from ctrlmgr.authentication.user import User
from ctrlmgr.clock import parse_time

NAMESPACE: Final = "kube-system"
TYPE: Final = "bootstrap.kubernetes.io/token"
NAME_PREFIX: Final = "bootstrap-token-"
GROUP: Final = "system:bootstrappers"

USED_FOR_AUTHENTICATION: Final = "usage-bootstrap-authentication"
USED_FOR_SIGNING: Final = "usage-bootstrap-signing"

_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})", re.ASCII)
_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", re.ASCII)
_NAME = re.compile(r"bootstrap-token-([a-z0-9]{6})", re.ASCII)


class _Typed(msgspec.Struct, frozen=True, gc=False):
    type: str = ""


def is_token(secret: Object) -> bool:
    """Return whether a Secret contains a bootstrap token."""
    return secret.namespace == NAMESPACE and secret.view(_Typed).type == TYPE


def token_user(token: str, find: Find, now: int) -> User | None:
    """Return the user of a bootstrap token that is valid at `now` (microseconds since 1970).

    Return None if the token is invalid.
    """
    parts = _TOKEN.fullmatch(token)
    if parts is None:
        return None
    token_id, token_secret = parts.groups()
    secret = find(SECRETS, Key(NAMESPACE, NAME_PREFIX + token_id))
    if secret is None or secret.is_terminating or not is_token(secret):
        return None
    data = texts(secret)
    if not hmac.compare_digest(data.get("token-secret", "").encode(), token_secret.encode()):
        return None
    if data.get("token-id") != token_id or has_expired(data, now) or data.get(USED_FOR_AUTHENTICATION) != "true":
        return None
    groups = _groups(data)
    return None if groups is None else User(f"system:bootstrap:{token_id}", "", groups)


def texts(secret: Object) -> dict[str, str]:
    """Return the values of a Secret, decoded as strings."""
    return {name: value.decode("utf-8", "replace") for name, value in secret_data(secret).items()}


def token_id_of(name: str) -> str:
    """Return the token id in a Secret's name, or an empty string if the name contains none."""
    found = _NAME.fullmatch(name)
    return found[1] if found else ""


def has_expired(data: dict[str, str], now: int) -> bool:
    """Return whether the expiration of a bootstrap token is before `now` (microseconds since 1970) or is invalid."""
    expires = data.get("expiration", "")
    if not expires:
        return False
    try:
        return now > parse_time(expires)
    except ValueError:
        return True


def expires_at(data: dict[str, str]) -> int | None:
    """Return the expiration in a Secret of a bootstrap token (microseconds since 1970).

    Return None if the Secret contains no expiration, and 0 if the expiration is invalid.
    """
    expires = data.get("expiration", "")
    if not expires:
        return None
    try:
        return parse_time(expires)
    except ValueError:
        return 0


def _groups(data: dict[str, str]) -> tuple[str, ...] | None:
    """Return the groups of a token's user, or None if a token may not grant one of the groups."""
    named = data.get("auth-extra-groups", "")
    more = named.split(",") if named else []
    if not all(map(_GROUP.fullmatch, more)):
        return None
    return tuple(sorted({GROUP, *more}))
