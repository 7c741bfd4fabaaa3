"""Reads the issuer of JSON web tokens from the settings (`--oidc-…`).

Source: Kubernetes' `pkg/kubeapiserver/options/authentication.go` (`OIDCAuthenticationOptions`).
"""

from __future__ import annotations

from collections.abc import Mapping as Map
from pathlib import Path
from typing import Final

from ctrlmgr.authentication.jwt_configuration import discovery_of, url_problem
from ctrlmgr.authentication.trusted_issuer import Mapping, TrustedIssuer
from ctrlmgr.authentication.x509_verification import read_certificates
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import Settings
from ctrlmgr.settings.authentication_settings import OpenIdSettings

_ALGORITHMS: Final = frozenset(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512))


def issuer_of(settings: Settings) -> TrustedIssuer | None:
    """Return the issuer that the settings describe, or None; raises `SettingsError` if the settings are invalid."""
    openid = settings.oidc
    if openid == OpenIdSettings():
        return None
    if settings.authentication.config:
        raise SettingsError("oidc: these settings and authentication.config exclude each other")
    if not openid.issuer_url or not openid.client_id:
        raise SettingsError("oidc.issuer_url and oidc.client_id are required if any other oidc setting is set")
    if problem := url_problem(openid.issuer_url):
        raise SettingsError(f"oidc.issuer_url: {problem}")
    if openid.issuer_url in settings.service_accounts.issuer:
        raise SettingsError("oidc.issuer_url: this is the issuer of the server's own tokens")
    if not openid.username_claim:
        raise SettingsError("oidc.username_claim: the claim with the user's name is required")
    if openid.groups_prefix and not openid.groups_claim:
        raise SettingsError("oidc.groups_prefix needs oidc.groups_claim")
    if unknown := sorted(set(openid.signing_algs) - _ALGORITHMS):
        raise SettingsError(f"oidc.signing_algs: there is no {', '.join(unknown)}")
    return TrustedIssuer(
        openid.issuer_url,
        discovery_of(openid.issuer_url),
        _authorities(openid.ca_file),
        (openid.client_id,),
        Mapping(openid.username_claim, _username_prefix(openid)),
        Mapping(openid.groups_claim, openid.groups_prefix),
        required=tuple(_required(openid).items()),
        algorithms=openid.signing_algs,
    )


def _username_prefix(openid: OpenIdSettings) -> str:
    """Return the prefix of the names of users that the issuer authenticates.

    Without a prefix, the value of a claim other than the email could equal the name of another user.
    """
    if openid.username_prefix == "-":
        return ""
    if not openid.username_prefix and openid.username_claim != "email":
        return f"{openid.issuer_url}#"
    return openid.username_prefix


def _required(openid: OpenIdSettings) -> Map[str, str]:
    required = {}
    for each in openid.required_claim:
        claim, equals, value = each.partition("=")
        if not claim or not equals:
            raise SettingsError(f"oidc.required_claim: write CLAIM=VALUE, not {each!r}")
        required[claim] = value
    return required


def _authorities(file: str) -> str:
    if not file:
        return ""
    try:
        text = Path(file).expanduser().read_bytes()
        read_certificates(text)
        return text.decode()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise SettingsError(f"oidc.ca_file: {file} cannot be used: {why}") from error
