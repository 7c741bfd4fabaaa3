"""Reads the claim mappings and validation rules of `--authentication-config`.

Source: apiserver `pkg/apis/apiserver/validation/validation.go` (`validateClaimMappings`,
`validateClaimValidationRules`, `validateUserValidationRules`); apimachinery `pkg/util/validation`
(`IsDomainPrefixedPath`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.authentication.token_expressions import TokenExpressions, names_claim
from ctrlmgr.authentication.trusted_issuer import Mapping, Rule
from ctrlmgr.authentication.user_names import is_subdomain
from ctrlmgr.expressions.environment import Expression
from ctrlmgr.golang.go_text import quote
from ctrlmgr.settings.configuration_files import Document

_BOTH: Final = "claim and expression can't both be set"
_NEITHER: Final = "claim or expression is required"
_UNVERIFIED: Final = (
    "claims.email_verified must be used in claimMappings.username.expression or "
    "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in "
    "claimMappings.username.expression"
)
_RESERVED: Final = ("k8s.io", "kubernetes.io")
_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"

_At = tuple[str | int, ...]
"""The path of a value in the configuration file."""


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The base class of the structs into which the configuration file is decoded."""


class _Claim(Part, frozen=True):
    claim: str = ""
    expression: str = ""


class _Prefixed(_Claim, frozen=True):
    prefix: str | None = None


class _Extra(Part, frozen=True):
    key: str = ""
    value_expression: str = ""


class ClaimMappings(Part, frozen=True):
    """The mappings of claims to the parts of a user."""

    username: _Prefixed = _Prefixed()
    groups: _Prefixed = _Prefixed()
    uid: _Claim = _Claim()
    extra: tuple[_Extra, ...] = ()


class ClaimRule(Part, frozen=True):
    """A rule about claims: a claim must have a value, or an expression must be true."""

    claim: str = ""
    required_value: str = ""
    expression: str = ""
    message: str = ""


class UserRule(Part, frozen=True):
    """A rule about the user: an expression must be true."""

    expression: str = ""
    message: str = ""


class Mapped(NamedTuple):
    """The mappings of claims to a user, with compiled expressions."""

    username: Mapping
    groups: Mapping
    uid: Mapping
    extra: tuple[tuple[str, Expression], ...]


class RulesReader:
    """Reads the mappings and rules of one issuer.

    Raises `SettingsError` with the line of an invalid mapping or rule.
    """

    def __init__(self, document: Document, expressions: TokenExpressions, *at: str | int) -> None:
        """Create a reader for the issuer at the path `at` in the configuration file."""
        self._document = document
        self._expressions = expressions
        self._at = at

    def mappings(self, mappings: ClaimMappings, rules: Sequence[Rule]) -> Mapped:
        """Return the compiled mappings; `rules` are the issuer's claim validation rules."""
        at = (*self._at, "claimMappings")
        username = self._prefixed(mappings.username, *at, "username")
        if username == Mapping():
            raise self._document.refuse(_NEITHER, *at, "username")
        mapped = Mapped(
            username,
            self._prefixed(mappings.groups, *at, "groups"),
            self._mapping(mappings.uid, *at, "uid"),
            self._extra(mappings.extra, *at, "extra"),
        )
        self._check_email(mapped, rules, *at, "username", "expression")
        return mapped

    def _prefixed(self, prefixed: _Prefixed, *at: str | int) -> Mapping:
        if problem := _prefix_problem(prefixed):
            raise self._document.refuse(problem, *at, "prefix")
        return self._mapping(prefixed, *at)._replace(prefix=prefixed.prefix or "")

    def _mapping(self, claim: _Claim, *at: str | int) -> Mapping:
        if claim.claim and claim.expression:
            raise self._document.refuse(_BOTH, *at)
        if not claim.expression:
            return Mapping(claim.claim)
        return Mapping(expression=self._compiled(self._expressions.of_claims, claim.expression, *at, "expression"))

    def _extra(self, entries: Sequence[_Extra], *at: str | int) -> tuple[tuple[str, Expression], ...]:
        found: dict[str, Expression] = {}
        for index, each in enumerate(entries):
            if problem := _key_problem(each.key):
                raise self._document.refuse(problem, *at, index, "key")
            if each.key in found:
                raise self._document.refuse(_twice(each.key), *at, index, "key")
            if not each.value_expression:
                raise self._document.refuse("valueExpression is required", *at, index)
            found[each.key] = self._compiled(
                self._expressions.of_claims, each.value_expression, *at, index, "valueExpression"
            )
        return tuple(found.items())

    def _check_email(self, mapped: Mapped, rules: Sequence[Rule], *at: str | int) -> None:
        """Raise `SettingsError` if the user name is the email claim but no expression checks `email_verified`."""
        username = mapped.username.expression
        if username is None or not names_claim(username, "email"):
            return
        looked_at = (username, *(each for _, each in mapped.extra), *(rule.expression for rule in rules))
        if not any(names_claim(each, "email_verified") for each in looked_at):
            raise self._document.refuse(_UNVERIFIED, *at)

    def claim_rules(self, configured: Sequence[ClaimRule]) -> tuple[tuple[tuple[str, str], ...], tuple[Rule, ...]]:
        """Return the required claims with their values, and the compiled validation rules about claims."""
        required: dict[str, str] = {}
        rules: dict[str, Rule] = {}
        for index, each in enumerate(configured):
            at = (*self._at, "claimValidationRules", index)
            if each.claim and each.expression:
                raise self._document.refuse(_BOTH, *at)
            if each.claim:
                self._check_required(each, required, at)
                required[each.claim] = each.required_value
                continue
            if not each.expression:
                raise self._document.refuse(_NEITHER, *at)
            if each.required_value:
                words = "requiredValue may not be specified when expression is set"
                raise self._document.refuse(words, *at, "requiredValue")
            self._add_rule(rules, self._expressions.rule_of_claims, each.expression, each.message, at)
        return tuple(required.items()), tuple(rules.values())

    def _check_required(self, rule: ClaimRule, before: dict[str, str], at: _At) -> None:
        if rule.message:
            raise self._document.refuse("message may not be specified when claim is set", *at, "message")
        if rule.claim in before:
            raise self._document.refuse(_twice(rule.claim), *at, "claim")

    def user_rules(self, configured: Sequence[UserRule]) -> tuple[Rule, ...]:
        """Return the compiled validation rules about the user."""
        rules: dict[str, Rule] = {}
        for index, each in enumerate(configured):
            at = (*self._at, "userValidationRules", index)
            if not each.expression:
                raise self._document.refuse("expression is required", *at)
            self._add_rule(rules, self._expressions.rule_of_user, each.expression, each.message, at)
        return tuple(rules.values())

    def _add_rule(
        self, rules: dict[str, Rule], compile_: Callable[[str], Expression], source: str, message: str, at: _At
    ) -> None:
        if source in rules:
            raise self._document.refuse(_twice(source), *at, "expression")
        rules[source] = Rule(self._compiled(compile_, source, *at, "expression"), message)

    def _compiled(self, compile_: Callable[[str], Expression], source: str, *at: str | int) -> Expression:
        try:
            return compile_(source)
        except ValueError as error:
            raise self._document.refuse(str(error), *at) from error


def _prefix_problem(prefixed: _Prefixed) -> str | None:
    """Return the error in the prefix of a claim mapping.

    Return None if the prefix is valid, or if another error of the mapping is reported instead.
    """
    if prefixed.claim and prefixed.expression:
        return None
    if prefixed.expression and prefixed.prefix is not None:
        return "prefix may not be specified when expression is set"
    if prefixed.claim and prefixed.prefix is None:
        return "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
    return "a prefix needs a claim" if prefixed.prefix and not (prefixed.claim or prefixed.expression) else None


def _twice(value: str) -> str:
    return f"Duplicate value: {quote(value)}"


def _key_problem(key: str) -> str | None:
    """Return the error in the key of an extra field; None if the key is valid."""
    domain, _, path = key.partition("/")
    if not key:
        return "key is required"
    if not domain or not path:
        return 'key must be a domain-prefixed path (such as "acme.io/foo")'
    if not is_subdomain(domain):
        return f"the domain of a key must be a lower-case RFC 1123 subdomain, not {quote(domain)}"
    if not re.fullmatch(_PATH, path):
        return f"Invalid path (regex used for validation is '{_PATH}')"
    if key != key.lower():
        return "key must be lowercase"
    if any(f".{domain}".endswith(f".{each}") for each in _RESERVED):
        return "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
    return None
