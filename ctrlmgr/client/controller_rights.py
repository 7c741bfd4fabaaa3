"""Checks the rights of a controller before each read and write, and caches the decisions.

Guarantees:
- A controller can read and write only the objects that the controller's user may read and write. A refused call raises
  the API's error, with the API's message.
- The authorizer decides once for each verb, resource and namespace. The authorizer decides again after a role or a
  binding has changed. A cached decision costs less than a microsecond.
- Before `UserRights` refuses a call, it loads and checks the latest roles and bindings.
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
    """The type of a function that checks whether a request is allowed."""

    def check(self, verb: str, target: Target) -> None:
        """Return normally if the request is allowed; raise `Forbidden` otherwise.

        For the verbs `create` and `list`, `target` contains no object name.
        """


class _CachedRights(NamedTuple):
    """The cached decisions on requests, with the generation of the roles and bindings on which they depend."""

    generation: object
    allowed: set[tuple[str, Kind, str, str]]


class UserRights:
    """The `Rights` of one user. Several threads may share one `UserRights` object."""

    def __init__(
        self,
        user: User,
        decide: Callable[[User, Attributes], Verdict],
        *,
        generation: Callable[[], object | None] = lambda: 0,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        """Create the rights of `user`; `decide` authorizes one request.

        The new object caches the allowed requests while `generation` returns the same value. If `generation` is None,
        the object caches no decision. `refresh` loads the latest roles and bindings.
        """
        self._user = user
        self._decide = decide
        self._generation = generation
        self._refresh = refresh
        self._known = _CachedRights(-1, set())

    def check(self, verb: str, target: Target) -> None:
        """Return normally if the user may make this request; raise `Forbidden` otherwise."""
        known, generation = self._known, self._generation()
        if generation is not None and known.generation != generation:
            known = self._known = _CachedRights(generation, set())
        right = (verb, target.kind, target.subresource, target.namespace)
        if generation is None:
            if not self._allows(verb, target):
                self._refuse(verb, target)
        elif right in known.allowed:
            return
        elif self._allows(verb, target._replace(name="")):  # allowed for every name
            known.allowed.add(right)
        elif not (target.name and self._allows(verb, target)):
            self._refuse(verb, target)

    def _refuse(self, verb: str, target: Target) -> None:
        """Load the latest roles and bindings, and raise `Forbidden` if they do not allow the request."""
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
