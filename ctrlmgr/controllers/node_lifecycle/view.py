"""The fields of nodes and leases that the node lifecycle controller reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ctrlmgr.scheduling.taints import Taint

READY: Final = "Ready"
ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
REGION_LABELS: Final = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")


class Condition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type v1 NodeCondition."""

    type: str = ""
    status: str = ""
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class _Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    uid: str = ""
    creation_timestamp: str | None = None
    labels: dict[str, str] | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False):
    unschedulable: bool = False
    taints: list[Taint] | None = None


class _Status(msgspec.Struct, frozen=True, gc=False):
    conditions: list[Condition] | None = None


class HealthNode(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 Node that this controller reads."""

    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def ready(self) -> Condition | None:
        """The first condition of the node with the type Ready."""
        return next((each for each in self.status.conditions or () if each.type == READY), None)

    @property
    def zone(self) -> str:
        """The region and zone of the node as one key; empty for a node that lacks both labels (`GetZoneKey`)."""
        labels = self.metadata.labels or {}
        region, zone = _first(labels, REGION_LABELS), _first(labels, ZONE_LABELS)
        return f"{region}:\0:{zone}" if region or zone else ""

    def has_taint(self, key: str, effect: str) -> bool:
        """Return whether the node has a taint with this key and effect."""
        return any(each.key == key and each.effect == effect for each in self.spec.taints or ())


def _first(labels: dict[str, str], keys: Iterable[str]) -> str:
    return next((labels[key] for key in keys if key in labels), "")


class _LeaseSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    renew_time: str | None = None


class HealthLease(msgspec.Struct, frozen=True, gc=False):
    """The fields of a coordination.k8s.io/v1 Lease that this controller reads."""

    spec: _LeaseSpec = _LeaseSpec()
