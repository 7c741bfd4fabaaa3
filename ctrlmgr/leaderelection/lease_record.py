"""Converts between a Lease (coordination.k8s.io/v1) and the record of its holder.

Guarantees: the Lease has the fields that client-go's elector writes (`tools/leaderelection/resourcelock`), so that
clients of client-go can read the Lease. Labels, annotations and field managers of other clients are kept.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.clock import format_time, format_time_seconds

SESSION: Final = "ctrlmgr.io/session"
"""The annotation that names the holder's database session, which ends when the holder's process ends."""

RELEASED_FOR: Final = 1.0
"""The duration of a released lease in seconds, as client-go writes it."""


class LeaseRecord(NamedTuple):
    """The holder of a lease, its term, and the duration of the lease in seconds.

    `term` is the Lease's `leaseTransitions`. No decision depends on the two times, which are in microseconds since
    1970. `session` is empty if the holder has no database session.
    """

    holder: str
    term: int
    duration: float
    acquired_at: int
    renewed_at: int
    session: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    spec: _Spec | None = None


_NO_SPEC = _Spec()


class ObservedRecord(NamedTuple):
    """The part of a lease record that candidates compare; any change of this part shows that the lease is in use."""

    holder: str
    term: int
    duration: float
    renewed: str
    session: str


def held(lease: Object) -> ObservedRecord:
    """Return the record of the holder that `lease` contains."""
    spec = lease.view(_Lease).spec or _NO_SPEC
    return ObservedRecord(
        spec.holder_identity or "",
        spec.lease_transitions or 0,
        float(spec.lease_duration_seconds or 0),
        spec.renew_time or "",
        lease.annotations.get(SESSION, ""),
    )


def write(key: Key, current: Object | None, record: LeaseRecord, *, uid: str) -> Object:
    """Return the Lease `current` with the fields of `record`.

    If `current` is None, return a new Lease with the uid `uid`, whose creation time is the record's renewal time.
    """
    if current is None:
        created = format_time_seconds(record.renewed_at)
        metadata: dict[str, Any] = {
            "name": key.name,
            "namespace": key.namespace,
            "uid": uid,
            "creationTimestamp": created,
        }
        fields: dict[str, Any] = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata}
    else:
        fields = current.to_dict()
        metadata = fields["metadata"]
    annotations = {name: text for name, text in (metadata.get("annotations") or {}).items() if name != SESSION}
    if record.session:
        annotations[SESSION] = record.session
    fields["metadata"] = _with_annotations(metadata, annotations)
    fields["spec"] = {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": math.ceil(record.duration),
        "acquireTime": format_time(record.acquired_at),
        "renewTime": format_time(record.renewed_at),
        "leaseTransitions": record.term,
    }
    return Object.from_dict(fields)


def _with_annotations(metadata: dict[str, Any], annotations: dict[str, str]) -> dict[str, Any]:
    """Return metadata with the given annotations, which precede owners, finalizers and managed fields in Go's order."""
    later: dict[str, Any] = {
        name: metadata[name] for name in ("ownerReferences", "finalizers", "managedFields") if name in metadata
    }
    first = {name: value for name, value in metadata.items() if name not in later and name != "annotations"}
    ours: dict[str, Any] = {"annotations": dict(sorted(annotations.items()))} if annotations else {}
    return {**first, **ours, **later}
