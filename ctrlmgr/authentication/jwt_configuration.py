"""Reads `--authentication-config`: who signs tokens besides ourselves, what is in them, and where one may be anonymous.

Guarantees: what is wrong with a file ends in one line that says where. What this server does not evaluate, expressions
in CEL, is refused as well: a rule that is not heeded would let in whom it was to keep out.

Rules: apiserver `pkg/apis/apiserver/{types,validation/validation}.go` (AuthenticationConfiguration of
apiserver.config.k8s.io/v1 and v1beta1).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from ctrlmgr.authentication.certificates import read_certificates
from ctrlmgr.settings.documents import Document, read_document

_VERSIONS: Final = ("apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1")
_NO_CEL = "expressions are not evaluated by this server; name a claim"


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The base of what the file has."""


class _Issuer(_Part, frozen=True):
    url: str = ""
    discovery_url: str = msgspec.field(default="", name="discoveryURL")
    certificate_authority: str = ""
    audiences: tuple[str, ...] = ()
    audience_match_policy: str = ""
    egress_selector_type: str = ""


class _Prefixed(_Part, frozen=True):
    claim: str = ""
    prefix: str | None = None
    expression: str = ""


class _Claim(_Part, frozen=True):
    claim: str = ""
    expression: str = ""


class _Extra(_Part, frozen=True):
    key: str = ""
    value_expression: str = ""


class _Mappings(_Part, frozen=True):
    username: _Prefixed = _Prefixed()
    groups: _Prefixed = _Prefixed()
    uid: _Claim = _Claim()
    extra: tuple[_Extra, ...] = ()


class _ClaimRule(_Part, frozen=True):
    claim: str = ""
    required_value: str = ""
    expression: str = ""
    message: str = ""


class _UserRule(_Part, frozen=True):
    expression: str = ""
    message: str = ""


class _Authenticator(_Part, frozen=True):
    issuer: _Issuer = _Issuer()
    claim_mappings: _Mappings = _Mappings()
    claim_validation_rules: tuple[_ClaimRule, ...] = ()
    user_validation_rules: tuple[_UserRule, ...] = ()


class _Condition(_Part, frozen=True):
    path: str = ""


class _Anonymous(_Part, frozen=True):
    enabled: bool = False
    conditions: tuple[_Condition, ...] = ()


class _Configuration(_Part, frozen=True):
    jwt: tuple[_Authenticator, ...] = ()
    anonymous: _Anonymous | None = None


class Mapping(NamedTuple):
    """Where a part of a user comes from; an empty claim: from nowhere."""

    claim: str = ""
    prefix: str = ""


class TrustedIssuer(NamedTuple):
    """Who signs tokens, and what in them says whom they are for and of."""

    url: str
    discovery_url: str
    """Where its keys are told of."""
    authorities: str
    """PEM; empty: those that the system trusts."""
    audiences: tuple[str, ...]
    username: Mapping
    groups: Mapping
    uid: str
    required: tuple[tuple[str, str], ...]
    """Claims and the values that they must have."""
    algorithms: tuple[str, ...] = ()
    """Those that its tokens may be signed with; none: all that are known here."""


class Configuration(NamedTuple):
    """What a file says."""

    issuers: Sequence[TrustedIssuer] = ()
    anonymous: bool | None = None
    """Whether one may be anonymous; None: it is said elsewhere."""
    anonymous_paths: tuple[str, ...] = ()
    """Only there, if there are any."""


def read_configuration(file: Path, own_issuers: Collection[str]) -> Configuration:
    """Read a file; raises `SettingsError`. No other issuer may be one of `own_issuers`."""
    document = read_document(file)
    said = document.read("AuthenticationConfiguration", _VERSIONS, _Configuration)
    issuers: list[TrustedIssuer] = []
    for index, each in enumerate(said.jwt):
        issuer = _issuer(document, each, index, own_issuers)
        for other in issuers:
            if issuer.url == other.url:
                raise document.refuse("two issuers have the same URL", "jwt", index, "issuer", "url")
            if issuer.discovery_url == other.discovery_url:
                problem = "two issuers have the same discovery URL"
                raise document.refuse(problem, "jwt", index, "issuer", "discoveryURL")
        issuers.append(issuer)
    if said.anonymous is None:
        return Configuration(issuers)
    return Configuration(issuers, said.anonymous.enabled, _paths(document, said.anonymous))


def _paths(document: Document, said: _Anonymous) -> tuple[str, ...]:
    if said.conditions and not said.enabled:
        problem = "conditions have no meaning where one may not be anonymous"
        raise document.refuse(problem, "anonymous", "conditions")
    for index, each in enumerate(said.conditions):
        if not each.path.startswith("/"):
            problem = f"a path begins with '/', not like {each.path!r}"
            raise document.refuse(problem, "anonymous", "conditions", index, "path")
    return tuple(each.path for each in said.conditions)


def _issuer(document: Document, said: _Authenticator, index: int, own: Collection[str]) -> TrustedIssuer:
    at, issuer = ("jwt", index), said.issuer
    _check_issuer(document, issuer, own, *at, "issuer")
    mappings = said.claim_mappings
    username = _mapping(document, mappings.username, *at, "claimMappings", "username")
    if not username.claim:
        raise document.refuse("a claim must name the user", *at, "claimMappings", "username")
    if mappings.uid.expression:
        raise document.refuse(_NO_CEL, *at, "claimMappings", "uid", "expression")
    if mappings.extra:
        raise document.refuse(_NO_CEL, *at, "claimMappings", "extra")
    if said.user_validation_rules:
        raise document.refuse(_NO_CEL, *at, "userValidationRules")
    return TrustedIssuer(
        issuer.url,
        issuer.discovery_url or discovery_of(issuer.url),
        issuer.certificate_authority,
        issuer.audiences,
        username,
        _mapping(document, mappings.groups, *at, "claimMappings", "groups"),
        mappings.uid.claim,
        _required(document, said.claim_validation_rules, *at, "claimValidationRules"),
    )


def _check_issuer(document: Document, issuer: _Issuer, own: Collection[str], *at: str | int) -> None:
    _check_url(document, issuer.url, *at, "url")
    if issuer.url in own:
        raise document.refuse("this is what our own tokens are signed as", *at, "url")
    if issuer.discovery_url:
        _check_url(document, issuer.discovery_url, *at, "discoveryURL")
        if issuer.discovery_url.rstrip("/") == issuer.url.rstrip("/"):
            raise document.refuse("discoveryURL must be different from URL", *at, "discoveryURL")
    if issuer.egress_selector_type:
        raise document.refuse("there is no egress selector here", *at, "egressSelectorType")
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
    """Return where an issuer tells of itself that says nothing else."""
    return f"{url.rstrip('/')}/.well-known/openid-configuration"


def url_problem(url: str) -> str | None:
    """Return what is wrong with the URL of an issuer, None if it can be one."""
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


def _mapping(document: Document, said: _Prefixed, *at: str | int) -> Mapping:
    if said.expression:
        raise document.refuse(_NO_CEL, *at, "expression")
    if said.claim and said.prefix is None:
        raise document.refuse("a claim needs a prefix; it may be empty", *at, "prefix")
    if said.prefix and not said.claim:
        raise document.refuse("a prefix needs a claim", *at, "prefix")
    return Mapping(said.claim, said.prefix or "")


def _required(document: Document, rules: Sequence[_ClaimRule], *at: str | int) -> tuple[tuple[str, str], ...]:
    required: dict[str, str] = {}
    for index, rule in enumerate(rules):
        if rule.expression:
            raise document.refuse(_NO_CEL, *at, index, "expression")
        if not rule.claim:
            raise document.refuse("a claim must be named", *at, index)
        if rule.message:
            raise document.refuse("a message goes with an expression only", *at, index, "message")
        if rule.claim in required:
            raise document.refuse(f"{rule.claim} is named twice", *at, index, "claim")
        required[rule.claim] = rule.required_value
    return tuple(required.items())
