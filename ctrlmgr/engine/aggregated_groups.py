"""API groups that clients have registered with APIServices; discovery lists these groups even if no server answers.

Guarantees: the groups of APIServices that this server registers itself are left out, because the registry of kinds
already contains these groups. Groups and versions are in the order of their priorities (kube-aggregator
`pkg/apis/apiregistration/v1/helper`, `SortedByGroupAndVersion`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.version_order import newest_first

API_SERVICES: Final = Resource("apiregistration.k8s.io", "apiservices")
AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
"""The label of APIServices that this server registers itself."""
CUSTOM_PRIORITIES: Final = (1000, 100)
"""The group priority and the version priority that custom kinds have.

Versions of equal priority are sorted by name, as in Kubernetes.
"""


class _Spec(msgspec.Struct, rename="camel"):
    version: str = ""
    group: str = ""
    group_priority_minimum: int = 0
    version_priority: int = 0


class _Service(msgspec.Struct):
    spec: _Spec


_decode = msgspec.json.Decoder(_Service).decode


class AggregatedGroup(NamedTuple):
    """An API group that APIServices name."""

    priority: int
    versions: Mapping[str, int]
    """The priority of each version of the group for which an APIService exists."""


def aggregated_groups(services: Iterable[Object]) -> Mapping[str, AggregatedGroup]:
    """Return the groups that APIServices name, by the name of the group."""
    found: dict[str, AggregatedGroup] = {}
    for service in services:
        if AUTOMANAGED not in service.labels:
            spec = _decode(service.body).spec
            known = found.get(spec.group, AggregatedGroup(0, {}))
            priority = max(known.priority, spec.group_priority_minimum)
            found[spec.group] = AggregatedGroup(priority, {**known.versions, spec.version: spec.version_priority})
    return found


def in_order(groups: Iterable[str], known: Mapping[str, AggregatedGroup]) -> list[str]:
    """Return the names of groups that are not built in, in the order of discovery."""
    default = AggregatedGroup(0, {})

    def priority(group: str) -> int:
        return known.get(group, default).priority or CUSTOM_PRIORITIES[0]

    return sorted(groups, key=lambda group: (-priority(group), group))


def versions_in_order(served: Set[str], known: AggregatedGroup | None) -> tuple[str, ...]:
    """Return all versions of a group that is not built in, both served and registered, in discovery's order."""
    priorities = {**dict.fromkeys(served, CUSTOM_PRIORITIES[1]), **(known.versions if known is not None else {})}
    return tuple(sorted(newest_first(priorities), key=lambda version: -priorities[version]))
