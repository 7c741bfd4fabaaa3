"""Indexes pods by the PersistentVolumeClaims that their volumes use; the volume controllers share the index.

Source: Kubernetes' `pkg/controller/volume/common/common.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.informer import Informer, Lister

_INDEX: Final = "claim"


class _Source(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    claim_name: str = ""


class _Volume(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    persistent_volume_claim: _Source | None = None
    ephemeral: dict[str, Any] | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False):
    volumes: list[_Volume] | None = None


class _Pod(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


_SOURCES = (b'"persistentVolumeClaim"', b'"ephemeral"')
"""The body of every pod with claims contains at least one of these byte sequences."""


class ClaimName(msgspec.Struct, frozen=True):
    """A claim that a volume of a pod names, or that belongs to one of the pod's ephemeral volumes."""

    name: str
    is_ephemeral: bool = False


def claims_of(pod: Object) -> Iterator[ClaimName]:
    """Yield the claims of a pod's volumes; if the pod has no claims, it is not decoded."""
    if not any(map(pod.mentions, _SOURCES)):
        return
    for volume in pod.view(_Pod).spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield ClaimName(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            yield ClaimName(f"{pod.name}-{volume.name}", is_ephemeral=True)


def index_by_claim(pods: Informer) -> None:
    """Add the index that `pods_of_claim` reads; the caller must do this before the informer syncs.

    A further call of the function has no effect.
    """
    pods.add_index(_INDEX, _keys)


def _keys(pod: Object) -> list[str]:
    return [f"{pod.namespace}/{each.name}" for each in claims_of(pod)]


def pods_of_claim(pods: Lister, claim: Key) -> list[Object]:
    """Return the pods whose volumes use the claim that `key` names."""
    return pods.by_index(_INDEX, str(claim))
