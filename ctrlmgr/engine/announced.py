"""Groups that clients have announced by APIServices of their own: discovery tells of them whoever serves them, if any.

Guarantees: what this server registers by itself is left out, as it is known from the kinds; groups and versions are in
the order of their priorities (kube-aggregator `pkg/apis/apiregistration/v1/helper`, `SortedByGroupAndVersion`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.versions import newest_first

API_SERVICES: Final = Resource("apiregistration.k8s.io", "apiservices")
AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
"""The label of what this server registers by itself."""
CUSTOM_PRIORITIES: Final = (1000, 100)
"""Of a group and a version of custom kinds: versions of one priority are sorted as Kubernetes sorts their names."""


class _Spec(msgspec.Struct, rename="camel"):
    version: str = ""
    group: str = ""
    group_priority_minimum: int = 0
    version_priority: int = 0


class _Service(msgspec.Struct):
    spec: _Spec


_decode = msgspec.json.Decoder(_Service).decode


class Announced(NamedTuple):
    """A group that is announced."""

    priority: int
    versions: Mapping[str, int]
    """The priority of each version that is announced."""


def announced(services: Iterable[Object]) -> Mapping[str, Announced]:
    """Return the groups that APIServices announce, by name."""
    found: dict[str, Announced] = {}
    for service in services:
        if AUTOMANAGED not in service.labels:
            spec = _decode(service.body).spec
            known = found.get(spec.group, Announced(0, {}))
            priority = max(known.priority, spec.group_priority_minimum)
            found[spec.group] = Announced(priority, {**known.versions, spec.version: spec.version_priority})
    return found


def in_order(groups: Iterable[str], known: Mapping[str, Announced]) -> list[str]:
    """Return the names of groups that are not built in, in the order in which discovery has them."""
    default = Announced(0, {})

    def priority(group: str) -> int:
        return known.get(group, default).priority or CUSTOM_PRIORITIES[0]

    return sorted(groups, key=lambda group: (-priority(group), group))


def versions_in_order(served: Set[str], known: Announced | None) -> tuple[str, ...]:
    """Return the versions of such a group: those that are served, and those that are announced."""
    priorities = {**dict.fromkeys(served, CUSTOM_PRIORITIES[1]), **(known.versions if known is not None else {})}
    return tuple(sorted(newest_first(priorities), key=lambda version: -priorities[version]))
