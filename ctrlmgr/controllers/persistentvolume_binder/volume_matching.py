"""Finds the PersistentVolume to which a claim can be bound, with pure functions.

Guarantees, as in Kubernetes (`component-helpers/storage/volume`, `pkg/controller/volume/persistentvolume/index.go`): a
volume that is reserved for the claim is preferred. If no volume is reserved, the candidates are the volumes with the
fewest access modes that include the claim's access modes. The smallest candidate that is large enough is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ctrlmgr.api.quantity import parse
from ctrlmgr.controllers.persistentvolume_binder.binding_annotations import AVAILABLE, class_of
from ctrlmgr.kinds.label_selectors import selector_of

Fields = Mapping[str, Any]


def is_bound_to(volume: Fields, claim: Fields) -> bool:
    """Return whether a volume refers to a claim; if the reference has a uid, the claim must have the same uid."""
    reference = volume["spec"].get("claimRef")
    if reference is None:
        return False
    meta = claim["metadata"]
    if (reference.get("namespace", ""), reference.get("name", "")) != (meta["namespace"], meta["name"]):
        return False
    return not reference.get("uid") or bool(reference["uid"] == meta["uid"])


def mismatch(volume: Fields, claim: Fields) -> str:
    """Return the reason why the volume that a claim requests by name is unsuitable; empty if it is suitable."""
    if size(volume) < requested_storage(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if _attributes(volume) != _attributes(claim):
        return "VolumeAttributesClassName does not match"
    if modes_differ(volume, claim):
        return "incompatible volumeMode"
    return "" if _modes(claim) <= _modes(volume) else "incompatible accessMode"


def modes_differ(volume: Fields, claim: Fields) -> bool:
    """Return whether the volume modes (file system or block device) of a claim and a volume differ."""
    one, other = (each["spec"].get("volumeMode") or "Filesystem" for each in (volume, claim))
    return bool(one != other)


def best(claim: Fields, volumes: Iterable[Fields], *, delayed: bool) -> Fields | None:
    """Return the volume for a claim; None if no volume is suitable.

    If the claim's storage class delays the binding until a pod needs the claim (`delayed`), only a reserved volume is
    returned. If no volume is reserved, the scheduler chooses the volume.
    """
    desired = _modes(claim)
    by_modes: dict[tuple[str, ...], list[Fields]] = {}
    for each in volumes:
        if desired <= _modes(each):
            by_modes.setdefault(tuple(sorted(_modes(each))), []).append(each)
    for modes in sorted(by_modes, key=lambda modes: (len(modes), modes)):
        found = _of_equal_modes(claim, by_modes[modes], delayed=delayed)
        if found is not None:
            return found
    return None


def candidates(claim: Fields, volumes: Iterable[Fields]) -> list[Fields]:
    """Return the volumes that the scheduler may choose for a claim, the smallest volume first.

    If a volume is reserved for the claim, return only that volume.
    """
    least, wanted_class, desired = requested_storage(claim), class_of(claim), _modes(claim)
    fields = claim["spec"].get("selector")
    selector = selector_of(fields) if fields is not None else None
    if fields is not None and selector is None:
        return []
    found: list[Fields] = []
    for volume in volumes:
        if not _is_possible(volume, claim, least):
            continue
        if is_bound_to(volume, claim):
            return [volume]
        if (volume.get("status") or {}).get("phase") != AVAILABLE or class_of(volume) != wanted_class:
            continue
        labels = volume["metadata"].get("labels") or {}
        if desired <= _modes(volume) and (selector is None or selector.matches(labels)):
            found.append(volume)
    return sorted(found, key=size)


def _of_equal_modes(claim: Fields, volumes: Sequence[Fields], *, delayed: bool) -> Fields | None:
    least, wanted_class = requested_storage(claim), class_of(claim)
    fields = claim["spec"].get("selector")
    selector = selector_of(fields) if fields is not None else None
    if fields is not None and selector is None:
        return None
    found: list[tuple[int, int, Fields]] = []
    for at, volume in enumerate(volumes):
        if not _is_possible(volume, claim, least):
            continue
        if is_bound_to(volume, claim):
            return volume
        if delayed or (volume.get("status") or {}).get("phase") != AVAILABLE or class_of(volume) != wanted_class:
            continue
        if selector is None or selector.matches(volume["metadata"].get("labels") or {}):
            found.append((size(volume), at, volume))
    return min(found)[2] if found else None


def _is_possible(volume: Fields, claim: Fields, least: int) -> bool:
    if volume["spec"].get("claimRef") is not None and not is_bound_to(volume, claim):
        return False
    if size(volume) < least or modes_differ(volume, claim) or _attributes(volume) != _attributes(claim):
        return False
    return volume["metadata"].get("deletionTimestamp") is None


def _modes(obj: Fields) -> frozenset[str]:
    return frozenset(obj["spec"].get("accessModes") or ())


def _attributes(obj: Fields) -> str:
    return obj["spec"].get("volumeAttributesClassName") or ""


def size(volume: Fields) -> int:
    """Return a volume's capacity, in billionths of a byte."""
    return parse((volume["spec"].get("capacity") or {}).get("storage") or "0")


def requested_storage(claim: Fields) -> int:
    """Return a claim's requested storage, in billionths of a byte."""
    return parse(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage") or "0")
