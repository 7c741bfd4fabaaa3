"""Names of things: which resource, which object of it, which position in the log.

A `Resource` leaves the API version out on purpose: the log stores an object once, whatever version it was
written in, just as etcd does. Versions and kinds belong to the body of the object.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias

Revision: TypeAlias = int
"""A position in the event log, counted from 1; 0 means "before the first event" or "does not exist".

On the wire it is the string `resourceVersion`; `api.object` is the only place that turns one into the other.
"""


class Resource(NamedTuple):
    """A group and a plural, written as kubectl writes it: `pods`, `leases.coordination.k8s.io`."""

    group: str
    plural: str

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @classmethod
    @lru_cache(maxsize=1024)  # a log names the same few in every row: one tuple serves all their objects
    def parse(cls, text: str) -> Resource:
        """Read `plural` or `plural.group`, the inverse of `str()`."""
        plural, _, group = text.partition(".")
        return cls(group, plural)


class Key(NamedTuple):
    """An object within its resource; `namespace` is empty for cluster-scoped ones."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> Key:
        """Read `namespace/name` or `name`, the inverse of `str()`."""
        namespace, slash, name = text.partition("/")
        return cls(namespace, name) if slash else cls("", namespace)


NAMESPACES = Resource("", "namespaces")
SERVICES = Resource("", "services")
PODS = Resource("", "pods")
NODES = Resource("", "nodes")
ENDPOINTS = Resource("", "endpoints")
EVENTS = Resource("", "events")
SECRETS = Resource("", "secrets")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "endpointslices")
LEASES = Resource("coordination.k8s.io", "leases")
DEFINITIONS = Resource("apiextensions.k8s.io", "customresourcedefinitions")

INTERNAL_GROUP = "internal.ctrlmgr.io"
"""The group of what the log keeps for itself: in the log and in SQL, but not in the API."""

INTERNAL_API_VERSION = f"{INTERNAL_GROUP}/v1"
"""The `apiVersion` of the objects of `INTERNAL_GROUP`."""


def group_of(api_version: str) -> str:
    """Return the group of an `apiVersion`: `""` for `v1`, `apps` for `apps/v1`."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


@lru_cache(maxsize=1024)
@lru_cache(maxsize=1024)  # every object that comes over a wire asks; one answer also compares faster with itself
def guess_resource(api_version: str, kind: str) -> Resource:
    """Name the resource of a kind by its name alone.

    The rule is the one of apimachinery's `meta.UnsafeGuessKindToResource`: lower case, then `es` after s,
    `ies` for y, else `s`; `endpoints` is its own plural. It is right for every built-in kind.
    """
    singular = kind.lower()
    if singular == "endpoints":
        plural = singular
    elif singular.endswith("s"):
        plural = singular + "es"
    elif singular.endswith("y"):
        plural = singular[:-1] + "ies"
    else:
        plural = singular + "s"
    return Resource(group_of(api_version), plural)
