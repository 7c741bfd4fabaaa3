"""Defines the interface of authorizers, their verdicts, and the union of several authorizers.

Guarantees:
- An authorizer allows a request, denies it, or has no opinion on the request. The verdict includes the reason, and
  errors that may have influenced the decision.
- A union calls its authorizers in order: the first authorizer that allows or denies the request decides. If no
  authorizer has an opinion on the request, the verdict joins the reasons of all authorizers.
- If an authorizer must call another process to decide, `authorize` returns None. If the result is None, the caller must
  await `ask`, which calls the other process.

Source: apiserver `pkg/authorization/union/union.go`, `pkg/authorization/authorizerfactory/builtin.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from ctrlmgr.authentication.user import MASTERS, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule


class Decision(StrEnum):
    """The decision of an authorizer."""

    ALLOW = "allow"
    DENY = "deny"
    """The request is denied, even if a later authorizer would allow it."""
    NO_OPINION = "noOpinion"
    """The request is denied, unless another authorizer allows it."""


# names at module level, because looking up an enum member is a function call in Python 3.11
_ALLOW: Final = Decision.ALLOW


class Verdict(NamedTuple):
    """An authorizer's decision on a request, the reason, and the errors that occurred."""

    decision: Decision
    reason: str = ""
    error: str = ""

    @property
    def allows(self) -> bool:
        """Return whether the request is allowed."""
        return self.decision is _ALLOW


ALLOWED = Verdict(Decision.ALLOW)
NO_OPINION = Verdict(Decision.NO_OPINION)


class RuleListing(NamedTuple):
    """The rights of a user in a namespace, as far as RBAC-like rules can express these rights."""

    rules: Sequence[PolicyRule] = ()
    incomplete: bool = False
    error: str = ""


class Authorizer(Protocol):
    """Decides whether users may make requests."""

    def authorize(self, user: User, attributes: Attributes) -> Verdict | None:
        """Return the verdict on a request, or None if the authorizer must call another process.

        `ask` calls the other process.
        """

    async def ask(self, user: User, attributes: Attributes) -> Verdict:
        """Return the verdict on a request; calls another process if the verdict requires it."""

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return the rights of `user` in a namespace and at cluster scope."""


class Immediate:
    """The base class of authorizers that never call another process; subclasses decide in `decide`."""

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return the verdict of `decide`; the result is never None."""
        raise NotImplementedError

    async def ask(self, user: User, attributes: Attributes) -> Verdict:
        """Return the verdict without a call to another process."""
        return self.authorize(user, attributes)

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return no rules, because by default an authorizer does not express rights as rules."""
        return RuleListing()


class AlwaysAllow(Immediate):
    """Allows everything."""

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return a verdict that allows every request."""
        return ALLOWED

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return rules that allow all requests on resources and paths."""
        everything = PolicyRule(("*",), ("*",), ("*",))
        return RuleListing((everything, PolicyRule(("*",), urls=("*",))))


class AlwaysDeny(Immediate):
    """Allows nothing."""

    _VERDICT = Verdict(Decision.NO_OPINION, "Everything is forbidden.")

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return a verdict with no opinion, which refuses the request unless another authorizer allows it."""
        return self._VERDICT


class PrivilegedGroup(Immediate):
    """Allows all requests of users in one group."""

    def __init__(self, group: str = MASTERS) -> None:
        """Create an authorizer that allows all requests of users in `group`."""
        self._group = group

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return a verdict that allows the request if `user` is in the group, and otherwise has no opinion."""
        return ALLOWED if self._group in user.groups else NO_OPINION


class PublicPaths(Immediate):
    """Allows all users to read some paths.

    A path that ends with `*` includes all paths that begin with the part before `*`.
    """

    def __init__(self, paths: Iterable[str], *, but: str = "") -> None:
        """Create an authorizer that allows reads of `paths`, except `but` and all paths below `but`."""
        self._but = but
        paths = tuple(paths)
        self._paths = frozenset(path for path in paths if not path.endswith("*"))
        self._prefixes = tuple(path.removesuffix("*") for path in paths if path.endswith("*"))

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return a verdict that allows reads of the public paths, and has no opinion on other requests."""
        if attributes.is_resource or attributes.verb not in ("get", "head"):
            return NO_OPINION
        path = attributes.path
        if self._but and (path == self._but or path.startswith(f"{self._but}/")):
            return NO_OPINION
        return ALLOWED if path in self._paths or path.startswith(self._prefixes) else NO_OPINION


class Union:
    """Several authorizers, called in order."""

    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        """Create a union that calls `authorizers` in the given order."""
        self._authorizers = tuple(authorizers)

    def authorize(self, user: User, attributes: Attributes) -> Verdict | None:
        """Return the first verdict that allows or denies the request.

        The method returns None if an authorizer must call another process first.
        """
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
        """Return the first verdict that allows or denies the request.

        Calls other processes if authorizers require it.
        """
        undecided: list[Verdict] = []
        for authorizer in self._authorizers:
            verdict = await authorizer.ask(user, attributes)
            if verdict.decision is not Decision.NO_OPINION:
                return verdict
            undecided.append(verdict)
        return _together(undecided)

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return the rules that the authorizers of the union list, in the order of the authorizers."""
        listings = [authorizer.rules(user, namespace) for authorizer in self._authorizers]
        errors = [listing.error for listing in listings if listing.error]
        return RuleListing(
            [rule for listing in listings for rule in listing.rules],
            any(listing.incomplete for listing in listings),
            aggregate(errors),
        )


def aggregate(errors: Iterable[str]) -> str:
    """Return several errors as one message without duplicates (apimachinery's `util/errors`)."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    reasons = "\n".join(verdict.reason for verdict in verdicts if verdict.reason)
    return Verdict(Decision.NO_OPINION, reasons, aggregate(verdict.error for verdict in verdicts if verdict.error))
