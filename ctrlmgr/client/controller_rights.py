"""The rights of a controller, checked before each read and write, with a cache.

Guarantees:
- A controller reads and writes only what its user may. A refusal has the API's error text.
- A right is decided once for a verb, resource and namespace, and again after roles or bindings have changed. A cached
  decision costs less than a microsecond.
- Before a refusal, the latest rights are loaded.
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
    """Checks whether a request is allowed."""

    def check(self, verb: str, target: Target) -> None:
        """Return if the request is allowed; raises `Forbidden`.

        The target has no name if the verb is create or list.
        """


class _Known(NamedTuple):
    """Cached rights, and the generation of the rules that they were decided on."""

    generation: object
    allowed: set[tuple[str, Kind, str, str]]


class UserRights:
    """The `Rights` of one user. Any thread may use it."""

    def __init__(
        self,
        user: User,
        decide: Callable[[User, Attributes], Verdict],
        *,
        generation: Callable[[], object | None] = lambda: 0,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        """Decide the rights of `user` with `decide`.

        Allowed requests are cached while `generation` returns the same value; None disables the cache. `refresh` loads
        the latest rules.
        """
        self._user = user
        self._decide = decide
        self._generation = generation
        self._refresh = refresh
        self._known = _Known(-1, set())

    def check(self, verb: str, target: Target) -> None:
        """Return if the user may make this request; raises `Forbidden`."""
        known, generation = self._known, self._generation()
        if generation is not None and known.generation != generation:
            known = self._known = _Known(generation, set())
        right = (verb, target.kind, target.subresource, target.namespace)
        if generation is None:
            if not self._allows(verb, target):
                self._refuse(verb, target)
        elif right in known.allowed:
            return
        elif self._allows(verb, target._replace(name="")):  # for any name
            known.allowed.add(right)
        elif not (target.name and self._allows(verb, target)):
            self._refuse(verb, target)

    def _refuse(self, verb: str, target: Target) -> None:
        """Raise `Forbidden`, unless the latest rules allow the request."""
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
