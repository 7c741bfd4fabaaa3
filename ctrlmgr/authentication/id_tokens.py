"""Authenticates tokens of other issuers (OpenID Connect): maps verified claims to a user.

Guarantees: a token is valid only within its validity period and for a configured audience. The token must contain all
required claims, and all validation rules must evaluate to true. A token whose user name is malformed is refused.

Source: apiserver `plugin/pkg/authenticator/token/oidc/oidc.go`; OpenID Connect Core 1.0, as coreos/go-oidc implements
this standard.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Map
from typing import Any, TypeGuard

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey, import_key

from ctrlmgr.authentication.jwt import PublicKey, algorithm_of
from ctrlmgr.authentication.token_expressions import (
    Seen,
    check_claims,
    check_user,
    extra_of,
    seen_claims,
    text_of,
    texts_of,
)
from ctrlmgr.authentication.trusted_issuer import Mapping, TrustedIssuer
from ctrlmgr.authentication.user import CREDENTIAL_ID, CredentialsRefused, User
from ctrlmgr.golang.go_text import quote

_EARLY = 300
"""The allowed clock skew for a token's `nbf` claim, in seconds."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Keys(msgspec.Struct, frozen=True):
    keys: list[dict[str, Any]] = []


def read_key_set(body: bytes) -> dict[str, list[PublicKey]]:
    """Return the signing keys of a JSON Web Key Set by key id, without keys that cannot verify signatures.

    Raises ValueError if the body is not a JSON Web Key Set.
    """
    found: dict[str, list[PublicKey]] = {}
    for each in msgspec.json.decode(body, type=_Keys).keys:
        if each.get("use", "sig") == "sig" and (key := _key(each)) is not None:
            found.setdefault(str(each.get("kid") or ""), []).append(key)
    return found


def _key(members: Map[str, Any]) -> PublicKey | None:
    try:
        key = import_key(dict(members))
        if isinstance(key, RSAKey | ECKey):
            algorithm_of(key.public_key)
            return key.public_key
    except (JoseError, KeyError, TypeError, ValueError):
        return None
    return None


def token_user(payload: bytes, issuer: TrustedIssuer, now: int) -> User:
    """Return the user that verified claims describe; `now` is in microseconds since 1970.

    Raises `CredentialsRefused` if the claims are invalid or violate a rule, and `NoValue` if an expression cannot be
    evaluated.
    """
    try:
        claims = _decode(payload)
        seen: Seen = seen_claims(claims) if issuer.has_claim_expressions else {}
    except (ValueError, msgspec.MsgspecError, OverflowError, RecursionError) as error:
        raise CredentialsRefused(f"oidc: parse claims: {error}") from error
    _check_validity(claims, issuer, now // 1_000_000)
    user = User(
        _username(claims, issuer.username, seen),
        groups=_groups(claims, issuer.groups, seen),
        uid=_uid(claims, issuer.uid, seen),
        extra=_credential(claims) | extra_of(issuer.extra, seen),
    )
    _check_required(claims, issuer.required)
    check_claims(issuer.claim_rules, seen)
    check_user(issuer.user_rules, user)
    return user


def _username(claims: Map[str, Any], mapping: Mapping, seen: Seen) -> str:
    if mapping.expression is not None:
        name = text_of(mapping.expression, seen, "username")
        if not name:
            raise CredentialsRefused("oidc: empty username via CEL expression is not allowed")
        return name
    name = _text(claims, mapping.claim, "username")
    if mapping.claim == "email":
        _check_email(claims)
    if not name:
        raise CredentialsRefused(f"oidc: parse username claims {quote(mapping.claim)}: it is empty")
    return f"{mapping.prefix}{name}"


def _check_email(claims: Map[str, Any]) -> None:
    verified = claims.get("email_verified", True)
    if not isinstance(verified, bool):
        raise CredentialsRefused("oidc: parse 'email_verified' claim: it is not a boolean")
    if not verified:
        raise CredentialsRefused("oidc: email not verified")


def _uid(claims: Map[str, Any], mapping: Mapping, seen: Seen) -> str:
    if mapping.expression is not None:
        return text_of(mapping.expression, seen, "uid")
    return _text(claims, mapping.claim, "uid") if mapping.claim else ""


def _groups(claims: Map[str, Any], mapping: Mapping, seen: Seen) -> tuple[str, ...]:
    if mapping.expression is not None:
        return texts_of(mapping.expression, seen, "oidc: error evaluating group claim expression")
    return tuple(f"{mapping.prefix}{group}" for group in _claimed_groups(claims, mapping.claim))


def _credential(claims: Map[str, Any]) -> dict[str, tuple[str, ...]]:
    token_id = claims.get("jti")
    return {CREDENTIAL_ID: (f"JTI={token_id}",)} if isinstance(token_id, str) and token_id else {}


def _check_validity(claims: Map[str, Any], issuer: TrustedIssuer, now: int) -> None:
    expires, begins = claims.get("exp"), claims.get("nbf")
    if not _is_number(expires) or now >= expires:
        raise CredentialsRefused("oidc: verify token: oidc: token is expired")
    if begins is not None and (not _is_number(begins) or now + _EARLY < begins):
        raise CredentialsRefused("oidc: verify token: oidc: current time before the nbf (not before) time")
    audience = claims.get("aud")
    given = [audience] if isinstance(audience, str) else audience if isinstance(audience, list) else []
    if not any(each in issuer.audiences for each in given):
        expected = " ".join(map(quote, issuer.audiences))
        raise CredentialsRefused(f"oidc: verify token: oidc: expected audience in [{expected}]")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_required(claims: Map[str, Any], required: Iterable[tuple[str, str]]) -> None:
    for claim, expected in required:
        if claim not in claims:
            raise CredentialsRefused(f"oidc: required claim {claim} not present in ID token")
        if claims[claim] != expected:
            raise CredentialsRefused(
                f"oidc: required claim {claim} value does not match. Got = {claims[claim]}, want = {expected}"
            )


def _text(claims: Map[str, Any], claim: str, what: str) -> str:
    if claim not in claims:
        raise CredentialsRefused(f"oidc: parse {what} claims {quote(claim)}: claim not present")
    value = claims[claim]
    if not isinstance(value, str):
        raise CredentialsRefused(f"oidc: parse {what} claims {quote(claim)}: it is not a string")
    return value


def _claimed_groups(claims: Map[str, Any], claim: str) -> Sequence[str]:
    """Return the groups that a claim contains; the claim's value is a list of groups or one group."""
    if not claim or claim not in claims:
        return ()
    value = claims[claim]
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise CredentialsRefused(f"oidc: parse groups claim {quote(claim)}: it is no list of strings")
    return value
