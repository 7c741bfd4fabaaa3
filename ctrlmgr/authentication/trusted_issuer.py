"""Trusted JWT issuers, with the mapping of their claims to users."""

from __future__ import annotations

from typing import NamedTuple

from ctrlmgr.expressions.environment import Expression


class Mapping(NamedTuple):
    """The source of a part of a user: a claim or an expression; empty if the part is not set."""

    claim: str = ""
    prefix: str = ""
    """The prefix of the claim's value."""
    expression: Expression | None = None


class Rule(NamedTuple):
    """A validation rule that must be true."""

    expression: Expression
    message: str = ""
    """The error message if it is false."""


class TrustedIssuer(NamedTuple):
    """A trusted issuer: its keys, audiences, mappings and rules."""

    url: str
    discovery_url: str
    """The URL of its discovery document."""
    authorities: str
    """PEM certificates of authorities; empty for the system's."""
    audiences: tuple[str, ...]
    username: Mapping
    groups: Mapping = Mapping()
    uid: Mapping = Mapping()
    extra: tuple[tuple[str, Expression], ...] = ()
    """The expressions of extra fields, by key."""
    required: tuple[tuple[str, str], ...] = ()
    """Claims and the values that they must have."""
    claim_rules: tuple[Rule, ...] = ()
    """Rules about the claims."""
    user_rules: tuple[Rule, ...] = ()
    """Rules about the resulting user."""
    algorithms: tuple[str, ...] = ()
    """The allowed signature algorithms; empty for all supported ones."""

    @property
    def looks_at_claims(self) -> bool:
        """Return whether there are expressions about claims."""
        mappings = (self.username, self.groups, self.uid)
        return bool(self.extra or self.claim_rules) or any(each.expression is not None for each in mappings)
