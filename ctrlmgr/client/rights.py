"""What a controller may do: looked up before each of its reads and writes, and hardly ever decided.

Guarantees:
- Nothing is read or written that the controller's user may not read or write; it is refused in the API's words.
- A right is decided once for a verb, a resource and a namespace, and again when roles or bindings have changed; until
  then looking it up costs less than a microsecond.
- Nothing is refused on rights that are out of date: before that the latest are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes, refusal
from ctrlmgr.authorization.authorizer import Verdict
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.operations import Target


class Rights(Protocol):
    """Says whether something may be done."""

    def check(self, verb: str, target: Target) -> None:
        """Return if it may be done; raises `Forbidden`. The target has no name where the verb creates or lists."""


class _Known(NamedTuple):
    """Rights that were found, and the generation of what they were found in."""

    generation: object
    allowed: set[tuple[str, Kind, str, str]]


class UserRights:
    """The `Rights` of one user; any thread may ask."""

    def __init__(
        self,
        user: User,
        decide: Callable[[User, Attributes], Verdict],
        *,
        generation: Callable[[], object | None] = lambda: 0,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        """Have `decide` decide for `user`.

        What it has allowed is remembered while `generation` says the same, never while it says None. `refresh` brings
        what it decides on up to date.
        """
        self._user = user
        self._decide = decide
        self._generation = generation
        self._refresh = refresh
        self._known = _Known(-1, set())

    def check(self, verb: str, target: Target) -> None:
        """Return if the user may do this; raises `Forbidden`."""
        known, generation = self._known, self._generation()
        if generation is not None and known.generation != generation:
            known = self._known = _Known(generation, set())
        right = (verb, target.kind, target.subresource, target.namespace)
        if generation is None:
            if not self._allows(verb, target):
                self._refuse(verb, target)
        elif right in known.allowed:
            return
        elif self._allows(verb, target._replace(name="")):  # whatever it is called
            known.allowed.add(right)
        elif not (target.name and self._allows(verb, target)):
            self._refuse(verb, target)

    def _refuse(self, verb: str, target: Target) -> None:
        """Refuse it, unless it has been allowed meanwhile."""
        self._refresh()
        verdict = self._decide(self._user, _attributes(verb, target))
        if not verdict.allows:
            raise refusal(self._user, _attributes(verb, target), verdict.reason)

    def _allows(self, verb: str, target: Target) -> bool:
        return self._decide(self._user, _attributes(verb, target)).allows


def _attributes(verb: str, target: Target) -> Attributes:
    kind = target.kind
    resource = kind.resource
    namespace = target.namespace if kind.namespaced or resource.plural != "namespaces" else target.name
    return Attributes(
        verb, "", resource.group, kind.gvk.version, resource.plural, target.subresource, namespace, target.name
    )
