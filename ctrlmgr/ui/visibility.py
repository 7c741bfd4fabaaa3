"""Determines the part of the log that a user may see: objects that the user may `get` or `list`, and their changes.

Guarantees:
- A user that may not see an object learns nothing about it from any view: neither its name and content, nor the fact
  that it was changed, nor the author of the change. If a graph contains an object that the user may not see, its node
  has no details.
- Each permission is checked only once per request, regardless of the number of objects.
- If a user may not read a resource in all namespaces, a namespace's events before the deletion of an earlier namespace
  with the same name are hidden (`PastVisibility`). Events before the deletion are hidden because the earlier namespace
  may have belonged to other users.

The user's current permissions apply at every revision: a user that may no longer read a namespace may not read its
past.
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
"""A function that returns whether a user has a permission; it is called on a thread that may wait."""

_EVERYTHING = Resource("*", "*")

DELETED_NAMESPACES = f"""
SELECT o.name, max(e.revision) AS revision FROM object AS o JOIN event AS e ON e.object_id = o.id
WHERE o.resource = '{NAMESPACES}' AND e.type = 3 GROUP BY o.name"""
"""The revision of the last deletion of a Namespace, by the Namespace's name."""


class Visibility:
    """The visibility of the log for one user; an instance is created for one request, and used by one thread."""

    def __init__(self, user: User, decide: Decide) -> None:
        """Create the visibility for `user`, whose allowed actions `decide` determines."""
        self._user = user
        self._decide = decide
        self._known: dict[Attributes, bool] = {}

    def lists(self, resource: Resource, namespace: str) -> bool:
        """Return whether the user may see all objects of a resource in a namespace (empty for all namespaces)."""
        return any(self._may(_about(verb, resource, namespace)) for verb in ("list", "get"))

    def gets(self, resource: Resource, namespace: str) -> bool:
        """Return whether the user may read all objects of a resource in a namespace (empty for all namespaces)."""
        return self._may(_about("get", resource, namespace))

    @property
    def user(self) -> User:
        """The user."""
        return self._user

    def sees(self, resource: Resource, key: Key) -> bool:
        """Return whether the user may see one object."""
        place = _namespace(resource, key)
        return self.lists(resource, place) or self._may(_about("get", resource, place, key.name))

    @property
    def limit(self) -> str:
        """The reason why the user may not see everything, in the words of a refused request.

        The reason is empty if the user may see everything.
        """
        return "" if self.lists(_EVERYTHING, "") else str(self._refusal(_about("list", _EVERYTHING, "")))

    def reads(self, path: str) -> bool:
        """Return whether the user may read a non-resource path."""
        return self._may(path_attributes("get", path))

    def check(self, resource: Resource, key: Key) -> None:
        """Raise `Forbidden` unless the user may see one object."""
        if not self.sees(resource, key):
            raise self._refusal(_about("get", resource, _namespace(resource, key), key.name))

    def check_list(self, resource: Resource, namespace: str) -> None:
        """Raise `Forbidden` unless the user may see all objects of a resource in a namespace."""
        if not self.lists(resource, namespace):
            raise self._refusal(_about("list", resource, namespace))

    def past(self, database: Database) -> PastVisibility:
        """Return the visibility of past revisions in a log, for the same user."""
        return PastVisibility(self, database)

    def _may(self, attributes: Attributes) -> bool:
        if attributes not in self._known:
            self._known[attributes] = self._decide(self._user, attributes).allows
        return self._known[attributes]

    def _refusal(self, attributes: Attributes) -> Exception:
        return refusal(self._user, attributes, self._decide(self._user, attributes).reason)


class PastVisibility:
    """The visibility of past revisions; an instance is created for one request, and reads the log only once."""

    def __init__(self, visibility: Visibility, database: Database) -> None:
        """Restrict `visibility`: in each namespace, only revisions after the namespace's last deletion are visible.

        `database` is the log that contains the deletions of Namespaces.
        """
        self.now = visibility
        """The visibility regardless of revisions."""
        self._database = database

    def hidden_until(self, resource: Resource, namespace: str) -> Revision:
        """Return the revision up to which objects of a resource in a namespace are hidden."""
        return 0 if self.now.lists(resource, "") else self._deleted.get(namespace, 0)

    def unread_until(self, resource: Resource, namespace: str) -> Revision:
        """Return the revision up to which objects of a resource in a namespace may not be read."""
        return 0 if self.now.gets(resource, "") else self._deleted.get(namespace, 0)

    def object_hidden_until(self, resource: Resource, key: Key) -> Revision:
        """Return the revision up to which an object is hidden."""
        return self.hidden_until(resource, _namespace(resource, key))

    def lists(self, resource: Resource, namespace: str, revision: Revision) -> bool:
        """Return whether all objects of a resource in a namespace are visible at a revision."""
        return self.now.lists(resource, namespace) and revision > self.hidden_until(resource, namespace)

    def gets(self, resource: Resource, namespace: str, revision: Revision) -> bool:
        """Return whether all objects of a resource in a namespace may be read at a revision."""
        return self.now.gets(resource, namespace) and revision > self.unread_until(resource, namespace)

    def sees(self, resource: Resource, key: Key, revision: Revision) -> bool:
        """Return whether one object is visible at a revision."""
        return self.now.sees(resource, key) and revision > self.object_hidden_until(resource, key)

    @cached_property
    def _deleted(self) -> dict[str, Revision]:
        return {name: int(revision) for name, revision in self._database.query(DELETED_NAMESPACES).rows}


def unbounded() -> Visibility:
    """Return the visibility for a caller that can read the database itself, and so may see everything."""
    return Visibility(User(""), lambda user, attributes: ALLOWED)


def _namespace(resource: Resource, key: Key) -> str:
    """Return the namespace in which permissions for an object are checked; for a Namespace, this is its own name."""
    return key.name if resource == NAMESPACES else key.namespace


def _about(verb: str, resource: Resource, namespace: str, name: str = "") -> Attributes:
    return Attributes(verb, "", resource.group, "*", resource.plural, "", namespace, name)
