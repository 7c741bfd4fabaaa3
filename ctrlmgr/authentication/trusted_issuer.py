"""Who signs tokens besides ourselves, and what is made of what a token says."""

from __future__ import annotations

from typing import NamedTuple

from ctrlmgr.expressions.environment import Expression


class Mapping(NamedTuple):
    """Where a part of a user comes from: a claim, or an expression; without either from nowhere."""

    claim: str = ""
    prefix: str = ""
    """What comes before what the claim says."""
    expression: Expression | None = None


class Rule(NamedTuple):
    """What has to be true."""

    expression: Expression
    message: str = ""
    """What is said where it is not."""


class TrustedIssuer(NamedTuple):
    """Who signs tokens, and what in them says whom they are for and of."""

    url: str
    discovery_url: str
    """Where its keys are told of."""
    authorities: str
    """PEM; empty: those that the system trusts."""
    audiences: tuple[str, ...]
    username: Mapping
    groups: Mapping = Mapping()
    uid: Mapping = Mapping()
    extra: tuple[tuple[str, Expression], ...] = ()
    """What else is said of a user, by key."""
    required: tuple[tuple[str, str], ...] = ()
    """Claims and the values that they must have."""
    claim_rules: tuple[Rule, ...] = ()
    """What must be true of the claims."""
    user_rules: tuple[Rule, ...] = ()
    """What must be true of the user that they make."""
    algorithms: tuple[str, ...] = ()
    """Those that its tokens may be signed with; none: all that are known here."""

    @property
    def looks_at_claims(self) -> bool:
        """Whether there are expressions about claims."""
        mappings = (self.username, self.groups, self.uid)
        return bool(self.extra or self.claim_rules) or any(each.expression is not None for each in mappings)
