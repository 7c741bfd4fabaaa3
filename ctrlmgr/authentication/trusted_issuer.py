"""Trusted JWT issuers, with the mapping of their claims to users."""

from __future__ import annotations

from typing import NamedTuple

from ctrlmgr.expressions.environment import Expression


class Mapping(NamedTuple):
    """The source of one attribute of a user: a claim or an expression; if both are empty, users lack the attribute."""

    claim: str = ""
    prefix: str = ""
    """The prefix that is added to the claim's value."""
    expression: Expression | None = None


class Rule(NamedTuple):
    """A validation rule about claims or the user: an expression that must be true."""

    expression: Expression
    message: str = ""
    """The message of the error that is raised if the expression is false."""


class TrustedIssuer(NamedTuple):
    """A trusted issuer: its keys, audiences, mappings and rules."""

    url: str
    discovery_url: str
    """The URL of the issuer's discovery document."""
    authorities: str
    """PEM certificates of the authorities that are trusted; if empty, the authorities that the operating system trusts.
    """
    audiences: tuple[str, ...]
    username: Mapping
    groups: Mapping = Mapping()
    uid: Mapping = Mapping()
    extra: tuple[tuple[str, Expression], ...] = ()
    """The expressions that compute the user's extra fields, by key."""
    required: tuple[tuple[str, str], ...] = ()
    """Required claims, and the values that these claims must have."""
    claim_rules: tuple[Rule, ...] = ()
    """The issuer's validation rules about the claims of a token."""
    user_rules: tuple[Rule, ...] = ()
    """The issuer's validation rules about the user that a token identifies."""
    algorithms: tuple[str, ...] = ()
    """The allowed signature algorithms; if the set is empty, all supported algorithms are allowed."""

    @property
    def has_claim_expressions(self) -> bool:
        """Return whether the issuer has CEL expressions about claims."""
        mappings = (self.username, self.groups, self.uid)
        return bool(self.extra or self.claim_rules) or any(each.expression is not None for each in mappings)
