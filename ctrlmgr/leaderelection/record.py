"""What a Lease (coordination.k8s.io/v1) says about who leads: read from an object, and written as one.

Guarantees: what is written is what client-go's elector writes into a Lease (`tools/leaderelection/resourcelock`), so
clients that read leases read these; labels, annotations and managers that others have put there stay.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.clock import format_time, format_time_seconds

SESSION: Final = "ctrlmgr.io/session"
"""The annotation that names the holder's session, whose end shows that the holder is gone."""

RELEASED_FOR: Final = 1.0
"""Seconds that a released lease is good for, as client-go writes it."""


class LeaseRecord(NamedTuple):
    """Who holds a lease, in which term, for how long (seconds) since it was last renewed.

    `term` is `leaseTransitions`; the two times, in microseconds since 1970, are for people and decide nothing.
    `session` is empty when the end of the holder cannot be seen.
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


class Held(NamedTuple):
    """The part of a record that is compared: when it changes, the lease was renewed or changed hands."""

    holder: str
    term: int
    duration: float
    renewed: str
    session: str


def held(lease: Object) -> Held:
    """Return what `lease` says of its holder."""
    spec = lease.view(_Lease).spec or _NO_SPEC
    return Held(
        spec.holder_identity or "",
        spec.lease_transitions or 0,
        float(spec.lease_duration_seconds or 0),
        spec.renew_time or "",
        lease.annotations.get(SESSION, ""),
    )


def write(key: Key, current: Object | None, record: LeaseRecord, *, uid: str) -> Object:
    """Return `current` saying what `record` says; without it a new Lease with this uid, made at its renewal."""
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
    """Return metadata with these annotations where Go puts them: before owners, finalizers and managers."""
    later: dict[str, Any] = {
        name: metadata[name] for name in ("ownerReferences", "finalizers", "managedFields") if name in metadata
    }
    first = {name: value for name, value in metadata.items() if name not in later and name != "annotations"}
    ours: dict[str, Any] = {"annotations": dict(sorted(annotations.items()))} if annotations else {}
    return {**first, **ours, **later}
