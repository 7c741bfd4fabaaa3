"""Indexes PersistentVolumes by the claims to which they can be bound, for the binder and the scheduler.

Guarantees: a volume with a `claimRef` is possible only for the claim in its `claimRef`. A volume without a `claimRef`
is possible only for claims of its storage class. Therefore only the volumes that are possible for a claim are decoded.

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
        """Add an index; the function `fn` returns the index values of an object."""


def index_by_possible_claims(volumes: Indexed) -> None:
    """Add the index that the other functions of this module read; the informer must not have synced yet.

    A further call of the function has no effect.
    """
    volumes.add_index(_INDEX, _values)


def volumes_of_claim(volumes: Lister, claim: Key) -> list[Object]:
    """Return the volumes that refer to a claim."""
    return volumes.by_index(_INDEX, str(claim))


def possible_volumes(volumes: Lister, claim: Mapping[str, Any]) -> list[Object]:
    """Return the volumes that are possible for a claim, keyed by the volume's name.

    The candidates are the volumes that refer to the claim, and the volumes of the claim's class that refer to no claim.
    """
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
    """Return the index value of the volumes that refer to no claim and have the same class as the given object."""
    return f"class {class_of(obj)}"
