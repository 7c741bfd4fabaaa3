"""Defines names of resources, keys of objects, and positions in the log.

A `Resource` has no API version, because the log, like etcd, stores each object once, in the API version in which the
object was written. The API version and the kind are part of the object's body.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias

Revision: TypeAlias = int
"""A position in the event log, counted from 1; 0 means "before the first event" or "does not exist".

API clients get the revision as the string `resourceVersion`; only `api.object` converts between the two.
"""


_LONGEST_REMEMBERED = 512
"""The maximum length of a memoized name in characters; the limit is necessary because clients can send arbitrary names.
"""


class Resource(NamedTuple):
    """The API group and plural name of a resource, formatted as in kubectl: `pods`, `leases.coordination.k8s.io`."""

    group: str
    plural: str

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @classmethod
    def parse(cls, text: str) -> Resource:
        """Parse `plural` or `plural.group`, as `str()` formats it."""
        return _parsed(text) if len(text) <= _LONGEST_REMEMBERED else _parsed.__wrapped__(text)


@lru_cache(maxsize=1024)  # memoized, because a log contains few distinct names; all objects share the tuples
def _parsed(text: str) -> Resource:
    plural, _, group = text.partition(".")
    return Resource(group, plural)


class Key(NamedTuple):
    """The key of an object within its resource; the namespace is empty for cluster-scoped objects."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> Key:
        """Parse `namespace/name` or `name`, as `str()` formats it."""
        namespace, slash, name = text.partition("/")
        return cls(namespace, name) if slash else cls("", namespace)


NAMESPACES = Resource("", "namespaces")
SERVICES = Resource("", "services")
PODS = Resource("", "pods")
NODES = Resource("", "nodes")
ENDPOINTS = Resource("", "endpoints")
EVENTS = Resource("", "events")
EVENTS_V1 = Resource("events.k8s.io", "events")
SECRETS = Resource("", "secrets")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "endpointslices")
LEASES = Resource("coordination.k8s.io", "leases")
DEFINITIONS = Resource("apiextensions.k8s.io", "customresourcedefinitions")

INTERNAL_GROUP = "internal.ctrlmgr.io"
"""The API group of the log's internal objects, which are visible in the log and in SQL but not in the API."""

INTERNAL_API_VERSION = f"{INTERNAL_GROUP}/v1"
"""The `apiVersion` of the objects of `INTERNAL_GROUP`."""


def group_of(api_version: str) -> str:
    """Return the group of an `apiVersion`: `""` for `v1`, `apps` for `apps/v1`."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def guess_resource(api_version: str, kind: str) -> Resource:
    """Return the resource of a kind, guessed from the kind's name.

    The rule is that of apimachinery's `meta.UnsafeGuessKindToResource`: the name in lower case gets the ending `es`
    after s, `ies` in place of y, and otherwise `s`. The name `endpoints` stays unchanged. The guess is correct for
    every built-in kind.
    """
    short = len(api_version) + len(kind) <= _LONGEST_REMEMBERED
    return (_guessed if short else _guessed.__wrapped__)(api_version, kind)


# memoized, because this function is called for every received object, and because comparing a result with itself is
# fast
@lru_cache(maxsize=1024)
def _guessed(api_version: str, kind: str) -> Resource:
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
