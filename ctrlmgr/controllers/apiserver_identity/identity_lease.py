"""Computes the identity of a serving process, and decides its Lease.

Source: apiserver `pkg/server/config.go`, `pkg/controlplane/apiserver/server.go`,
`pkg/controlplane/controller/apiserverleasegc/gc_controller.go`.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.clock import format_time, parse_time

NAMESPACE: Final = "kube-system"
COMPONENT: Final = "kube-apiserver"
LABEL: Final = "apiserver.kubernetes.io/identity"
HOST_LABEL: Final = "kubernetes.io/hostname"
PEER_ADDRESS: Final = "kubernetes.io/peer-advertise-address"
"""The annotation with the address (HOST:PORT) at which other processes reach this one."""
DURATION: Final = 3600
"""The seconds after a renewal until a Lease expires (`IdentityLeaseDurationSeconds`)."""
USUAL_PORT: Final = 6443
_DIGEST_BYTES: Final = 16


class _Spec(msgspec.Struct, rename="camel"):
    renew_time: str | None = None
    lease_duration_seconds: int | None = None


class _Lease(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def identity_of_server(host: str, port: int) -> str:
    """Return the identity of the process that serves on a port of a host, `apiserver-` and a hash.

    On the usual port, this is the identity that kube-apiserver has on the host. On another port, the hash includes the
    port, because several processes may serve on one host.
    """
    place = host if port in (0, USUAL_PORT) else f"{host}:{port}"
    parts = (place.encode(), COMPONENT.encode())
    digest = hashlib.sha256(b"".join(len(part).to_bytes(2, "big") + part for part in parts)).digest()
    return "apiserver-" + base64.b32encode(digest[:_DIGEST_BYTES]).decode().rstrip("=").lower()


def renewed_lease(
    name: str, host: str, holder: str, current: Object | None, now: int, *, peer_address: str = ""
) -> Object:
    """Return the Lease of a process, renewed at `now` (microseconds since 1970); `current` is the existing Lease.

    Other processes reach the process at `peer_address` (HOST:PORT); if it is empty, the Lease contains no address.
    """
    fields: dict[str, Any] = current.to_dict() if current is not None else _new(name, holder)
    metadata = fields["metadata"]
    labels = {**(metadata.get("labels") or {}), LABEL: COMPONENT, HOST_LABEL: host}
    addresses = {PEER_ADDRESS: peer_address} if peer_address else {}
    if annotations := {**(metadata.get("annotations") or {}), **addresses}:
        metadata = {**metadata, "annotations": annotations}
    renewal = {"leaseDurationSeconds": DURATION, "renewTime": format_time(now)}
    return Object.from_dict(
        {**fields, "metadata": {**metadata, "labels": labels}, "spec": {**(fields.get("spec") or {}), **renewal}}
    )


def _new(name: str, holder: str) -> dict[str, Any]:
    return {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"holderIdentity": holder},
    }


def is_identity(lease: Object) -> bool:
    """Return whether a Lease is the identity Lease of a server."""
    return lease.namespace == NAMESPACE and lease.labels.get(LABEL) == COMPONENT


def has_expired(lease: Object, now: int) -> bool:
    """Return whether a Lease has expired at `now` (microseconds since 1970), or has no time or duration."""
    spec = lease.view(_Lease).spec
    if spec.renew_time is None or spec.lease_duration_seconds is None:
        return True
    return parse_time(spec.renew_time) + spec.lease_duration_seconds * 1_000_000 < now
