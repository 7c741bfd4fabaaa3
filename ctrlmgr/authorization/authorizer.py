"""What an authorizer answers, and how several are combined.

Guarantees:
- An authorizer allows, denies, or has no opinion; it says why, and what kept it from seeing everything.
- A union asks in order: the first that allows or denies decides. Where none does, their reasons are told together.
- An authorizer that has to ask another process says so by `None`; only then does a caller wait for `ask`.

Rules: apiserver `pkg/authorization/union/union.go`, `pkg/authorization/authorizerfactory/builtin.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from ctrlmgr.authentication.user import MASTERS, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule


class Decision(StrEnum):
    """What an authorizer says."""

    ALLOW = "allow"
    DENY = "deny"
    """Whatever the others say."""
    NO_OPINION = "noOpinion"
    """Which is a no, if none of the others allows it."""


_ALLOW: Final = Decision.ALLOW  # Python 3.11 calls a function to find a member of an enumeration


class Verdict(NamedTuple):
    """A decision, why, and what went wrong on the way to it."""

    decision: Decision
    reason: str = ""
    error: str = ""

    @property
    def allows(self) -> bool:
        """Whether the request may be made."""
        return self.decision is _ALLOW


ALLOWED = Verdict(Decision.ALLOW)
NO_OPINION = Verdict(Decision.NO_OPINION)


class RuleListing(NamedTuple):
    """What a user may do in a namespace, as far as it can be told as rules."""

    rules: Sequence[PolicyRule] = ()
    incomplete: bool = False
    error: str = ""


class Authorizer(Protocol):
    """Says whether users may do things."""

    def authorize(self, user: User, attributes: Attributes) -> Verdict | None:
        """Return the verdict, None if another process has to be asked for it (`ask`)."""

    async def ask(self, user: User, attributes: Attributes) -> Verdict:
        """Return the verdict, wherever it comes from."""

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return what `user` may do in a namespace and outside of all of them."""


class Immediate:
    """An authorizer that never has to ask another process; subclasses decide."""

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return the verdict."""
        raise NotImplementedError

    async def ask(self, user: User, attributes: Attributes) -> Verdict:
        """Return the verdict."""
        return self.authorize(user, attributes)

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return nothing: what it allows is no user's by rule."""
        return RuleListing()


class AlwaysAllow(Immediate):
    """Allows everything."""

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return that it is allowed."""
        return ALLOWED

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return everything."""
        everything = PolicyRule(("*",), ("*",), ("*",))
        return RuleListing((everything, PolicyRule(("*",), urls=("*",))))


class AlwaysDeny(Immediate):
    """Allows nothing."""

    _VERDICT = Verdict(Decision.NO_OPINION, "Everything is forbidden.")

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return that it is forbidden."""
        return self._VERDICT


class PrivilegedGroup(Immediate):
    """Lets the members of one group do everything."""

    def __init__(self, group: str = MASTERS) -> None:
        """Trust `group`."""
        self._group = group

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return whether `user` is a member."""
        return ALLOWED if self._group in user.groups else NO_OPINION


class PublicPaths(Immediate):
    """Lets all users read some paths, those that end with `*` with everything below them."""

    def __init__(self, paths: Iterable[str], *, but: str = "") -> None:
        """Open `paths`, but not `but` nor what is below it."""
        self._but = but
        paths = tuple(paths)
        self._paths = frozenset(path for path in paths if not path.endswith("*"))
        self._prefixes = tuple(path.removesuffix("*") for path in paths if path.endswith("*"))

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return whether it is one of the paths that is read."""
        if attributes.is_resource or attributes.verb not in ("get", "head"):
            return NO_OPINION
        path = attributes.path
        if self._but and (path == self._but or path.startswith(f"{self._but}/")):
            return NO_OPINION
        return ALLOWED if path in self._paths or path.startswith(self._prefixes) else NO_OPINION


class Union:
    """Several authorizers, asked in order."""

    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        """Ask `authorizers` in this order."""
        self._authorizers = tuple(authorizers)

    def authorize(self, user: User, attributes: Attributes) -> Verdict | None:
        """Return the first opinion; None if one that comes before it has to ask another process."""
        undecided: list[Verdict] | None = None
        for authorizer in self._authorizers:
            verdict = authorizer.authorize(user, attributes)
            if verdict is None:
                return None
            if verdict.decision is not Decision.NO_OPINION:
                return verdict
            if verdict is not NO_OPINION:
                undecided = [*(undecided or ()), verdict]
        return _together(undecided) if undecided else NO_OPINION

    async def ask(self, user: User, attributes: Attributes) -> Verdict:
        """Return the first opinion."""
        undecided: list[Verdict] = []
        for authorizer in self._authorizers:
            verdict = await authorizer.ask(user, attributes)
            if verdict.decision is not Decision.NO_OPINION:
                return verdict
            undecided.append(verdict)
        return _together(undecided)

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return the rules of all of them together."""
        listings = [authorizer.rules(user, namespace) for authorizer in self._authorizers]
        errors = [listing.error for listing in listings if listing.error]
        return RuleListing(
            [rule for listing in listings for rule in listing.rules],
            any(listing.incomplete for listing in listings),
            aggregate(errors),
        )


def aggregate(errors: Iterable[str]) -> str:
    """Return several errors as one text, each told once (apimachinery's `util/errors`)."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    reasons = "\n".join(verdict.reason for verdict in verdicts if verdict.reason)
    return Verdict(Decision.NO_OPINION, reasons, aggregate(verdict.error for verdict in verdicts if verdict.error))
