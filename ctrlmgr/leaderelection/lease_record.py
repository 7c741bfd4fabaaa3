"""Reads and writes the holder in a Lease (coordination.k8s.io/v1).

Guarantees: the fields are those of client-go's elector (`tools/leaderelection/resourcelock`), so clients that read
leases can read these too. Labels, annotations and field managers of other clients are kept.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.clock import format_time, format_time_seconds

SESSION: Final = "ctrlmgr.io/session"
"""The annotation with the name of the holder's database session, which ends when the holder ends."""

RELEASED_FOR: Final = 1.0
"""The duration of a released lease in seconds, as client-go writes it."""


class LeaseRecord(NamedTuple):
    """The holder of a lease, its term, and the lease's duration in seconds.

    `term` is `leaseTransitions`. The two times, in microseconds since 1970, are used only for display. `session` is
    empty if the holder has none.
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
    """The part of a record that is compared: if it changes, the lease was renewed or has another holder."""

    holder: str
    term: int
    duration: float
    renewed: str
    session: str


def held(lease: Object) -> ObservedRecord:
    """Return the record of the holder in `lease`."""
    spec = lease.view(_Lease).spec or _NO_SPEC
    return ObservedRecord(
        spec.holder_identity or "",
        spec.lease_transitions or 0,
        float(spec.lease_duration_seconds or 0),
        spec.renew_time or "",
        lease.annotations.get(SESSION, ""),
    )


def write(key: Key, current: Object | None, record: LeaseRecord, *, uid: str) -> Object:
    """Return `current` with the fields of `record`.

    If there is no current Lease, return a new one with this uid, created at the time of its renewal.
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
    """Return metadata with these annotations, in Go's field order: before owners, finalizers and managers."""
    later: dict[str, Any] = {
        name: metadata[name] for name in ("ownerReferences", "finalizers", "managedFields") if name in metadata
    }
    first = {name: value for name, value in metadata.items() if name not in later and name != "annotations"}
    ours: dict[str, Any] = {"annotations": dict(sorted(annotations.items()))} if annotations else {}
    return {**first, **ours, **later}
