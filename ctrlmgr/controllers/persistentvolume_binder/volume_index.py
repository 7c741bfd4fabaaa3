"""Indexes PersistentVolumes by the claims for which they are possible; the binder and the scheduler share the index.

Guarantees: a volume with a `claimRef` is possible only for the claim to which it refers. A volume without a `claimRef`
is possible only for claims of its storage class. Therefore no other volumes need to be decoded for a claim.

Source: Kubernetes' `pkg/controller/volume/persistentvolume/index.go`, which indexes volumes by access modes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.controllers.persistentvolume_binder.binding_annotations import class_of
from ctrlmgr.informer import Lister

_INDEX: Final = "possible claims"


class Indexed(Protocol):
    """The interface of an informer or a store to which an index can be added."""

    def add_index(self, name: str, fn: Callable[[Object], list[str]], /) -> None:
        """Add an index by the values that `fn` returns for an object."""


def index_by_possible_claims(volumes: Indexed) -> None:
    """Add the index that the functions below read; an informer must not have synced yet.

    The function may be called repeatedly.
    """
    volumes.add_index(_INDEX, _values)


def volumes_of_claim(volumes: Lister, claim: Key) -> list[Object]:
    """Return the volumes that refer to a claim."""
    return volumes.by_index(_INDEX, str(claim))


def possible_volumes(volumes: Lister, claim: Mapping[str, Any]) -> list[Object]:
    """Return the volumes that refer to a claim, and the volumes of its class that refer to no claim, by their names."""
    meta = claim["metadata"]
    found = volumes_of_claim(volumes, Key(meta["namespace"], meta["name"]))
    found = [*found, *volumes.by_index(_INDEX, _without_claim(claim))]
    return sorted(found, key=lambda each: each.name)


def claim_reference(volume: Object) -> Key | None:
    """Return the claim to which a volume refers; None if the volume refers to no claim."""
    reference = volume.to_dict()["spec"].get("claimRef")
    return Key(reference.get("namespace", ""), reference.get("name", "")) if reference else None


def _values(volume: Object) -> list[str]:
    claim = claim_reference(volume)
    return [str(claim) if claim is not None else _without_claim(volume.to_dict())]


def _without_claim(obj: Mapping[str, Any]) -> str:
    """Return the index value of the volumes without a claim that have the class of a claim or a volume."""
    return f"class {class_of(obj)}"
