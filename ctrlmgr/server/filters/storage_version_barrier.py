"""Refuses writes of a resource until this server has published the resource's StorageVersion.

Source: apiserver `pkg/endpoints/filters/storageversion.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ctrlmgr.api.resource import LEASES, NAMESPACES, Resource
from ctrlmgr.authentication.user import API_SERVER, MASTERS, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.errors import ServiceUnavailable

_READS: Final = frozenset({"get", "list", "watch"})
_SYSTEM: Final = "kube-system"


class StorageVersionBarrier:
    """The resources whose StorageVersions are not published yet. Any thread may call the methods."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        """Create a barrier that refuses writes of `resources` until their StorageVersions are published."""
        self._problems = dict.fromkeys(resources, "<nil>")

    @property
    def is_complete(self) -> bool:
        """Whether the barrier accepts writes of all resources."""
        return not self._problems

    def published(self, resources: Iterable[Resource]) -> None:
        """Accept writes of the given resources from now on."""
        for each in resources:
            self._problems.pop(each, None)

    def failed(self, resources: Iterable[Resource], problem: str) -> None:
        """Store the reason why the StorageVersions of some resources could not be published."""
        for each in resources:
            if each in self._problems:
                self._problems[each] = problem

    def check(self, user: User, attributes: Attributes) -> None:
        """Raise `ServiceUnavailable` if the request is a write that must wait."""
        if not self._problems or not attributes.is_resource or attributes.verb in _READS:
            return
        resource = Resource(attributes.group, attributes.resource)
        problem = self._problems.get(resource)
        if problem is None or _is_exempt(resource, user, attributes):
            return
        words = f"wait for storage version registration to complete for resource: {resource}"
        raise ServiceUnavailable(f"{words}, last seen error: {problem}")


def _is_exempt(resource: Resource, user: User, attributes: Attributes) -> bool:
    """Return whether the barrier always accepts a write, because StorageVersions or identity Leases need the write."""
    if resource == LEASES:
        return attributes.namespace == _SYSTEM
    if resource == NAMESPACES:
        return attributes.verb == "create" and user.name == API_SERVER.name and MASTERS in user.groups
    return resource == Resource("internal.apiserver.k8s.io", "storageversions")
