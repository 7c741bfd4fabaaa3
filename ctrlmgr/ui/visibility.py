"""The part of the log that one user may see: the objects that the user may `get` or `list`, and their effects.

Guarantees:
- Nothing of an object is told, in no view, to a user without that right: not what it holds or held, not that it was
  changed or by which user, not its name. Where a graph leads through it there is a node without any of that.
- A right is looked up once for each question of the page, however many objects it tells of.
- Who may not read a resource in all namespaces reads of a namespace nothing that happened before another namespace of
  that name was deleted (`PastVisibility`): its tenants were others.

Rights are those of now, whatever moment is looked at: who may no longer read a namespace does not read its past.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

from ctrlmgr.api.resource import NAMESPACES, Key, Resource, Revision
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes, path_attributes, refusal
from ctrlmgr.authorization.authorizer import ALLOWED, Verdict
from ctrlmgr.inspection.database import Database

Decide: TypeAlias = Callable[[User, Attributes], Verdict]
"""Says whether a user may do something; called on a thread that may wait."""

_EVERYTHING = Resource("*", "*")

DELETED_NAMESPACES = f"""
SELECT o.name, max(e.revision) AS revision FROM object AS o JOIN event AS e ON e.object_id = o.id
WHERE o.resource = '{NAMESPACES}' AND e.type = 3 GROUP BY o.name"""
"""When each namespace, or another of its name, was deleted last."""


class Visibility:
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

    def past(self, database: Database) -> PastVisibility:
        """Return what this user may see of what a log tells of the past."""
        return PastVisibility(self, database)

    def _may(self, asked: Attributes) -> bool:
        if asked not in self._known:
            self._known[asked] = self._decide(self._user, asked).allows
        return self._known[asked]

    def _refusal(self, asked: Attributes) -> Exception:
        return refusal(self._user, asked, self._decide(self._user, asked).reason)


class PastVisibility:
    """What one user may see of the past; made for one question, which reads the log once for it."""

    def __init__(self, visibility: Visibility, database: Database) -> None:
        """Limit `visibility` to each namespace since the last other one of its name was deleted in `database`."""
        self.now = visibility
        """What the user may see whatever the moment."""
        self._database = database

    def hidden_until(self, resource: Resource, namespace: str) -> Revision:
        """Return the revision up to which who sees objects of a resource in a namespace is told nothing of them."""
        return 0 if self.now.lists(resource, "") else self._deleted.get(namespace, 0)

    def unread_until(self, resource: Resource, namespace: str) -> Revision:
        """Return the revision up to which who reads objects of a resource in a namespace may not read them."""
        return 0 if self.now.gets(resource, "") else self._deleted.get(namespace, 0)

    def object_hidden_until(self, resource: Resource, key: Key) -> Revision:
        """Return the revision up to which who sees an object is told nothing of it."""
        return self.hidden_until(resource, _namespace(resource, key))

    def lists(self, resource: Resource, namespace: str, revision: Revision) -> bool:
        """Whether what all objects of a resource in a namespace were at a revision may be seen."""
        return self.now.lists(resource, namespace) and revision > self.hidden_until(resource, namespace)

    def gets(self, resource: Resource, namespace: str, revision: Revision) -> bool:
        """Whether what all objects of a resource in a namespace were at a revision may be read."""
        return self.now.gets(resource, namespace) and revision > self.unread_until(resource, namespace)

    def sees(self, resource: Resource, key: Key, revision: Revision) -> bool:
        """Whether what one object was at a revision may be seen."""
        return self.now.sees(resource, key) and revision > self.object_hidden_until(resource, key)

    @cached_property
    def _deleted(self) -> dict[str, Revision]:
        return {name: int(revision) for name, revision in self._database.query(DELETED_NAMESPACES).rows}


def unbounded() -> Visibility:
    """Return the visibility of a caller that can read the database itself: of everything."""
    return Visibility(User(""), lambda user, attributes: ALLOWED)


def _namespace(resource: Resource, key: Key) -> str:
    """Return the namespace in which rights to an object are given: a namespace is in itself."""
    return key.name if resource == NAMESPACES else key.namespace


def _about(verb: str, resource: Resource, namespace: str, name: str = "") -> Attributes:
    return Attributes(verb, "", resource.group, "*", resource.plural, "", namespace, name)
