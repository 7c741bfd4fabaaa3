"""Decides whether a claim waits for the expansion of its volume, and which component must expand it.

Source: Kubernetes' `pkg/controller/volume/expand/expand_controller.go`. This controller does not expand volumes itself,
because all in-tree plugins were removed from Kubernetes. External resizers expand the volumes of CSI drivers. If a
resizer replaced an in-tree plugin, an annotation of the claim contains the name of the resizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.api.quantity import parse
from ctrlmgr.controllers.persistentvolume_binder.binding_annotations import BOUND, MIGRATED, SOURCES

RESIZER: Final = "volume.kubernetes.io/storage-resizer"
_BEFORE: Final = "volume.alpha.kubernetes.io/pre-resize-capacity"
_OUTSIDE: Final = "waiting for an external controller to expand this PVC"


class Expansion(NamedTuple):
    """The message about a claim that waits for an expansion, and the name of the resizer if it is known."""

    message: str
    resizer: str = ""


def requested_storage(claim: Mapping[str, Any]) -> int:
    """Return a claim's requested storage, in billionths of a byte."""
    return _amount((claim["spec"].get("resources") or {}).get("requests"))


def held(claim: Mapping[str, Any]) -> int:
    """Return a claim's capacity, in billionths of a byte."""
    return _amount((claim.get("status") or {}).get("capacity"))


def expansion(claim: Mapping[str, Any], volume: Mapping[str, Any] | None) -> Expansion | None:
    """Return the expansion for which a claim waits; None if the claim does not wait for an expansion."""
    if (claim.get("status") or {}).get("phase") != BOUND or volume is None:
        return None
    reference = volume["spec"].get("claimRef") or {}
    if reference.get("uid") != claim["metadata"]["uid"]:
        return None
    annotations = volume["metadata"].get("annotations") or {}
    if requested_storage(claim) <= held(claim) and _BEFORE not in annotations:
        return None
    plugin = next((plugin for source, plugin in SOURCES.items() if source in volume["spec"]), None)
    if plugin is None:
        return Expansion(_OUTSIDE)
    message = f"CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc"
    return Expansion(message, MIGRATED[plugin])


def _amount(amounts: Mapping[str, str] | None) -> int:
    return parse((amounts or {}).get("storage") or "0")
