"""Answers a worker process's queries about the server's state and users' rights, over the worker's socket.

Guarantees: until the operation sends its next command, the same query always returns the same answer. In the server
process, too, the state does not change between two commands of an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import RuleListing, Verdict
from ctrlmgr.authorization.rbac.policy_rules import CompiledRule
from ctrlmgr.authorization.rbac.rule_resolver import Grant, RbacIndex
from ctrlmgr.informer.informer import Change

Ask = Callable[..., Any]
"""A function that sends a query (a name and arguments) to the server, and returns the server's answer."""


class RemoteState:
    """The server's state, read over the socket: an `engine.strategy.State` that also returns recent changes."""

    def __init__(self, ask: Ask) -> None:
        """Create an instance that queries the server by calling `ask`."""
        self._ask = ask
        self._known: dict[Hashable, Any] = {}

    def forget(self) -> None:
        """Drop all cached answers of the server, because the state may have changed."""
        self._known.clear()

    @property
    def revision(self) -> Revision:
        """The revision up to which the state contains all changes."""
        revision: Revision = self._answer("revision")
        return revision

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return the object with the given key; None if the object does not exist."""
        obj: Object | None = self._answer("get", resource, key)
        return obj

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace, by key; a namespace of None means all namespaces."""
        objects: Sequence[Object] = self._answer("list", resource, namespace)
        return objects

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        """Return a revision that is higher after each change of an object of one of `resources`."""
        revision: Revision = self._answer("changed_at", tuple(resources))
        return revision

    def changes_after(self, revision: Revision, resource: Resource, limit: int) -> Sequence[Change] | None:
        """Return the changes of a resource after a revision, None if some of these changes are no longer in memory."""
        changes: Sequence[Change] | None = self._answer("changes_after", revision, resource, limit)
        return changes

    def _answer(self, *question: Any) -> Any:
        if question not in self._known:
            self._known[question] = self._ask(*question)
        return self._known[question]


class RemoteAuthorizer:
    """Authorizes requests by asking the server's authorizer over the socket.

    If the server's authorizer must call other processes, the worker waits for the server's answer.
    """

    def __init__(self, ask: Ask) -> None:
        """Create an instance that queries the server by calling `ask`."""
        self._ask = ask

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return the verdict."""
        verdict: Verdict = self._ask("authorize", user, attributes)
        return verdict

    async def ask(self, user: User, attributes: Attributes) -> Verdict:
        """Return the verdict."""
        return self.authorize(user, attributes)

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return the rights of `user` in a namespace and at cluster scope."""
        listing: RuleListing = self._ask("rules", user, namespace)
        return listing


class RemoteIndex(RbacIndex):
    """Access to the server's index of roles and bindings."""

    def __init__(self, ask: Ask) -> None:
        """Create an instance that queries the server by calling `ask`."""
        super().__init__()
        self._ask = ask

    def grants(self, user: User, namespace: str) -> Sequence[Grant]:
        """Return the grants of a user at cluster scope, followed by the grants in a namespace if one is given."""
        grants: Sequence[Grant] = self._ask("grants", user, namespace)
        return grants

    def role_rules(self, role: Key) -> Sequence[CompiledRule] | None:
        """Return the rules of a role; None if the role does not exist."""
        rules: Sequence[CompiledRule] | None = self._ask("role_rules", role)
        return rules
