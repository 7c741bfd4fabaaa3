"""The desired APIServices: one for each version of each built-in group and custom kind.

The priorities of APIServices define the order of groups and versions in discovery. Source:
`DefaultGenericAPIServicePriorities` in kubernetes `pkg/controlplane/apiserver/aggregator.go`, the additions in
`cmd/kube-apiserver/app/aggregator.go`, and `pkg/controlplane/controller/crdregistration` for custom kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.aggregated_groups import AUTOMANAGED, CUSTOM_PRIORITIES
from ctrlmgr.engine.kind_registry import Group

API_VERSION: Final = "apiregistration.k8s.io/v1"

_OWN_GROUP: Final = "apiregistration.k8s.io"
"""The group `apiregistration.k8s.io`, which has no APIService because the aggregator itself serves it."""

_GROUP_PRIORITIES: Final[Mapping[str, int]] = {
    "": 18_000,
    "apps": 17_800,
    "events.k8s.io": 17_750,
    "authentication.k8s.io": 17_700,
    "authorization.k8s.io": 17_600,
    "autoscaling": 17_500,
    "batch": 17_400,
    "certificates.k8s.io": 17_300,
    "networking.k8s.io": 17_200,
    "policy": 17_100,
    "rbac.authorization.k8s.io": 17_000,
    "storage.k8s.io": 16_800,
    "admissionregistration.k8s.io": 16_700,
    "apiextensions.k8s.io": 16_700,
    "scheduling.k8s.io": 16_600,
    "coordination.k8s.io": 16_500,
    "node.k8s.io": 16_300,
    "discovery.k8s.io": 16_200,
    "resource.k8s.io": 16_200,
    "flowcontrol.apiserver.k8s.io": 16_100,
    "internal.apiserver.k8s.io": 16_000,
    "storagemigration.k8s.io": 15_800,
}
_VERSION_PRIORITIES: Final[Mapping[tuple[str, str], int]] = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("certificates.k8s.io", "v1beta1"): 9,
    ("certificates.k8s.io", "v1alpha1"): 1,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("internal.apiserver.k8s.io", "v1alpha1"): 9,
    ("resource.k8s.io", "v1"): 20,
    ("resource.k8s.io", "v1alpha3"): 1,
    ("scheduling.k8s.io", "v1alpha2"): 2,
    ("storagemigration.k8s.io", "v1beta1"): 9,
}
_VERSION_PRIORITY: Final = 15
"""The default priority of a version."""


class Mode(Enum):
    """Determines when an APIService is corrected.

    The value of each member is the value of a label of the APIService.
    """

    ON_START = "onstart"
    """The APIService is corrected once after a process starts; later changes by users are kept."""
    ALWAYS = "true"


class DesiredAPIService(NamedTuple):
    """A desired APIService."""

    spec: Mapping[str, Any]
    mode: Mode

    def new(self, name: str) -> Unstructured:
        """Return a new APIService with this name."""
        metadata = {"name": name, "labels": {AUTOMANAGED: self.mode.value}}
        return {"apiVersion": API_VERSION, "kind": "APIService", "metadata": metadata, "spec": dict(self.spec)}


def builtin(groups: Iterable[Group]) -> Mapping[str, DesiredAPIService]:
    """Return the desired APIServices of the built-in groups that have a priority, keyed by the APIService's name."""
    return {
        name_of(group.name, version): DesiredAPIService(
            _spec(group.name, version, *_priorities(group.name, version)), Mode.ON_START
        )
        for group in groups
        if group.name in _GROUP_PRIORITIES and group.name != _OWN_GROUP
        for version in group.versions
    }


def custom(name: str) -> DesiredAPIService:
    """Return the desired APIService for a version of custom kinds, given the APIService's name."""
    version, _, group = name.partition(".")
    return DesiredAPIService(_spec(group, version, *CUSTOM_PRIORITIES), Mode.ALWAYS)


def name_of(group: str, version: str) -> str:
    """Return the name of an APIService, such as `v1.apps`; the core group's APIService is named `v1.`."""
    return f"{version}.{group}"


def _priorities(group: str, version: str) -> tuple[int, int]:
    return _GROUP_PRIORITIES[group], _VERSION_PRIORITIES.get((group, version), _VERSION_PRIORITY)


def _spec(group: str, version: str, group_priority: int, version_priority: int) -> Mapping[str, Any]:
    named = {"group": group} if group else {}
    return {
        **named,
        "version": version,
        "groupPriorityMinimum": group_priority,
        "versionPriority": version_priority,
    }
