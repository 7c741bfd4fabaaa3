"""Reads `--authentication-config`: the trusted JWT issuers, the mapping of claims to users, and anonymous access.

Guarantees: an error in the file or in one of its expressions is reported on one line, which contains the position of
the error.

Source: apiserver `pkg/apis/apiserver/{types,validation/validation}.go` (AuthenticationConfiguration of
apiserver.config.k8s.io/v1 and v1beta1).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from ctrlmgr.authentication.jwt_rules import ClaimMappings, ClaimRule, Part, RulesReader, UserRule
from ctrlmgr.authentication.token_expressions import TokenExpressions
from ctrlmgr.authentication.trusted_issuer import TrustedIssuer
from ctrlmgr.authentication.x509_verification import read_certificates
from ctrlmgr.expressions.declarations import Functions
from ctrlmgr.settings.configuration_files import Document, read_document

_VERSIONS: Final = ("apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1")
_MOST_ISSUERS: Final = 64


class _Issuer(Part, frozen=True):
    url: str = ""
    discovery_url: str = msgspec.field(default="", name="discoveryURL")
    certificate_authority: str = ""
    audiences: tuple[str, ...] = ()
    audience_match_policy: str = ""
    egress_selector_type: str = ""


class _Authenticator(Part, frozen=True):
    issuer: _Issuer = _Issuer()
    claim_mappings: ClaimMappings = ClaimMappings()
    claim_validation_rules: tuple[ClaimRule, ...] = ()
    user_validation_rules: tuple[UserRule, ...] = ()


class _Condition(Part, frozen=True):
    path: str = ""


class _Anonymous(Part, frozen=True):
    enabled: bool = False
    conditions: tuple[_Condition, ...] = ()


class _Configuration(Part, frozen=True):
    jwt: tuple[_Authenticator, ...] = ()
    anonymous: _Anonymous | None = None


class Configuration(NamedTuple):
    """The content of an authentication configuration file."""

    issuers: Sequence[TrustedIssuer] = ()
    anonymous: bool | None = None
    """Whether anonymous requests are allowed; None if the file does not contain this setting."""
    anonymous_paths: tuple[str, ...] = ()
    """The only paths to which anonymous requests are allowed; None if all paths are allowed."""


def read_configuration(file: Path, own_issuers: Collection[str], functions: Functions) -> Configuration:
    """Read a configuration file; CEL expressions in the file may call `functions`.

    The issuers in `own_issuers` issue this server's own tokens; the file must not contain the URL of such an issuer.
    Raises `SettingsError` if the file is invalid.
    """
    document = read_document(file)
    configuration = document.read("AuthenticationConfiguration", _VERSIONS, _Configuration)
    if len(configuration.jwt) > _MOST_ISSUERS:
        raise document.refuse(f"Too many: {len(configuration.jwt)}: must have at most {_MOST_ISSUERS} items", "jwt")
    expressions = TokenExpressions(functions)
    issuers: list[TrustedIssuer] = []
    for index, each in enumerate(configuration.jwt):
        _check_issuer(document, each.issuer, own_issuers, "jwt", index, "issuer")
        issuer = _issuer(each, RulesReader(document, expressions, "jwt", index))
        for other in issuers:
            if issuer.url == other.url:
                raise document.refuse("two issuers have the same URL", "jwt", index, "issuer", "url")
            if issuer.discovery_url == other.discovery_url:
                problem = "two issuers have the same discovery URL"
                raise document.refuse(problem, "jwt", index, "issuer", "discoveryURL")
        issuers.append(issuer)
    if configuration.anonymous is None:
        return Configuration(issuers)
    return Configuration(issuers, configuration.anonymous.enabled, _paths(document, configuration.anonymous))


def _paths(document: Document, anonymous: _Anonymous) -> tuple[str, ...]:
    if anonymous.conditions and not anonymous.enabled:
        problem = "conditions have no effect if anonymous requests are not allowed"
        raise document.refuse(problem, "anonymous", "conditions")
    for index, each in enumerate(anonymous.conditions):
        if not each.path.startswith("/"):
            problem = f"a path must begin with '/', unlike {each.path!r}"
            raise document.refuse(problem, "anonymous", "conditions", index, "path")
    return tuple(each.path for each in anonymous.conditions)


def _issuer(authenticator: _Authenticator, reader: RulesReader) -> TrustedIssuer:
    issuer = authenticator.issuer
    required, claim_rules = reader.claim_rules(authenticator.claim_validation_rules)
    username, groups, uid, extra = reader.mappings(authenticator.claim_mappings, claim_rules)
    return TrustedIssuer(
        issuer.url,
        issuer.discovery_url or discovery_of(issuer.url),
        issuer.certificate_authority,
        issuer.audiences,
        username,
        groups,
        uid,
        extra,
        required,
        claim_rules,
        reader.user_rules(authenticator.user_validation_rules),
    )


def _check_issuer(document: Document, issuer: _Issuer, own: Collection[str], *at: str | int) -> None:
    _check_url(document, issuer.url, *at, "url")
    if issuer.url in own:
        raise document.refuse("this is the issuer of the server's own tokens", *at, "url")
    if issuer.discovery_url:
        _check_url(document, issuer.discovery_url, *at, "discoveryURL")
        if issuer.discovery_url.rstrip("/") == issuer.url.rstrip("/"):
            raise document.refuse("discoveryURL must be different from URL", *at, "discoveryURL")
    if issuer.egress_selector_type:
        raise document.refuse("egress selectors are not supported", *at, "egressSelectorType")
    if not issuer.audiences or "" in issuer.audiences:
        raise document.refuse("at least one audience must be named", *at, "audiences")
    if issuer.audience_match_policy not in ("", "MatchAny"):
        raise document.refuse("audienceMatchPolicy must be MatchAny", *at, "audienceMatchPolicy")
    if len(issuer.audiences) > 1 and not issuer.audience_match_policy:
        raise document.refuse("several audiences need audienceMatchPolicy: MatchAny", *at, "audiences")
    if issuer.certificate_authority:
        try:
            read_certificates(issuer.certificate_authority.encode())
        except ValueError as error:
            raise document.refuse(f"no certificates (PEM): {error}", *at, "certificateAuthority") from error


def discovery_of(url: str) -> str:
    """Return the default URL of an issuer's discovery document."""
    return f"{url.rstrip('/')}/.well-known/openid-configuration"


def url_problem(url: str) -> str | None:
    """Return the error in an issuer's URL; None if the URL is valid."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        return f"no URL: {error}"
    if parts.scheme != "https" or not parts.netloc:
        return f"it must be an https URL, not {url!r}"
    if parts.username or parts.password or parts.query or parts.fragment:
        return "it must have no user, no query and no fragment"
    return None


def _check_url(document: Document, url: str, *at: str | int) -> None:
    if problem := url_problem(url):
        raise document.refuse(problem, *at)
