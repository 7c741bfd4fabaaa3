"""What of the log one user may see: the objects that they may `get` or `list`, and what became of those.

Guarantees:
- Nothing of an object is told, in no view, to a user without that right: not what it holds or held, not that it was
  changed or by which user, not its name. Where a graph leads through it there is a node without any of that.
- A right is looked up once for each question of the page, however many objects it tells of.

Rights are those of now, whatever moment is looked at: who may no longer read a namespace does not read its past.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ctrlmgr.api.resource import NAMESPACES, Key, Resource
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes, path_attributes, refusal
from ctrlmgr.authorization.authorizer import ALLOWED, Verdict

Decide: TypeAlias = Callable[[User, Attributes], Verdict]
"""Says whether a user may do something; called on a thread that may wait."""

_EVERYTHING = Resource("*", "*")


class Sight:
    """What one user may see; made for one question, used by one thread."""

    def __init__(self, user: User, decide: Decide) -> None:
        """See what `decide` allows `user`."""
        self._user = user
        self._decide = decide
        self._known: dict[Attributes, bool] = {}

    def lists(self, resource: Resource, namespace: str) -> bool:
        """Whether all objects of a resource in a namespace may be seen; of all namespaces without one."""
        return any(self._may(_about(verb, resource, namespace)) for verb in ("list", "get"))

    def gets(self, resource: Resource, namespace: str) -> bool:
        """Whether all objects of a resource in a namespace may be read; of all namespaces without one."""
        return self._may(_about("get", resource, namespace))

    @property
    def user(self) -> User:
        """Who sees."""
        return self._user

    def sees(self, resource: Resource, key: Key) -> bool:
        """Whether one object may be seen."""
        place = _namespace(resource, key)
        return self.lists(resource, place) or self._may(_about("get", resource, place, key.name))

    @property
    def limit(self) -> str:
        """What keeps this user from seeing everything, in the words of a refusal; empty if nothing does."""
        return "" if self.lists(_EVERYTHING, "") else str(self._refusal(_about("list", _EVERYTHING, "")))

    def reads(self, path: str) -> bool:
        """Whether a path that is no resource's may be read."""
        return self._may(path_attributes("get", path))

    def check(self, resource: Resource, key: Key) -> None:
        """Return if one object may be seen; raises `Forbidden`."""
        if not self.sees(resource, key):
            raise self._refusal(_about("get", resource, _namespace(resource, key), key.name))

    def check_list(self, resource: Resource, namespace: str) -> None:
        """Return if all objects of a resource in a namespace may be seen; raises `Forbidden`."""
        if not self.lists(resource, namespace):
            raise self._refusal(_about("list", resource, namespace))

    def _may(self, asked: Attributes) -> bool:
        if asked not in self._known:
            self._known[asked] = self._decide(self._user, asked).allows
        return self._known[asked]

    def _refusal(self, asked: Attributes) -> Exception:
        return refusal(self._user, asked, self._decide(self._user, asked).reason)


def unbounded() -> Sight:
    """Return the sight of who reads the database anyway: everything is seen."""
    return Sight(User(""), lambda user, attributes: ALLOWED)


def _namespace(resource: Resource, key: Key) -> str:
    """Return the namespace in which rights to an object are given: a namespace is in itself."""
    return key.name if resource == NAMESPACES else key.namespace


def _about(verb: str, resource: Resource, namespace: str, name: str = "") -> Attributes:
    return Attributes(verb, "", resource.group, "*", resource.plural, "", namespace, name)
