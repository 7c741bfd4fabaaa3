"""Whether a claim waits for its volume to grow, and for whom: a pure function.

Rules: Kubernetes' `pkg/controller/volume/expand/expand_controller.go`. No volume is expanded here, as no plugin is left
that ran in the controller manager: a program outside does it, told by annotation if it took the place of a plugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.api.quantity import parse
from ctrlmgr.controllers.persistentvolume_binder.names import BOUND, MIGRATED, SOURCES

RESIZER: Final = "volume.kubernetes.io/storage-resizer"
_BEFORE: Final = "volume.alpha.kubernetes.io/pre-resize-capacity"
_OUTSIDE: Final = "waiting for an external controller to expand this PVC"


class Expansion(NamedTuple):
    """What is told of a claim that waits, and which program is to see to it, if that is known."""

    message: str
    resizer: str = ""


def asked(claim: Mapping[str, Any]) -> int:
    """Return how much a claim asks for, in billionths of bytes."""
    return _amount((claim["spec"].get("resources") or {}).get("requests"))


def held(claim: Mapping[str, Any]) -> int:
    """Return how much a claim has."""
    return _amount((claim.get("status") or {}).get("capacity"))


def expansion(claim: Mapping[str, Any], volume: Mapping[str, Any] | None) -> Expansion | None:
    """Return what there is to do for a claim with its volume; None: nothing."""
    if (claim.get("status") or {}).get("phase") != BOUND or volume is None:
        return None
    reference = volume["spec"].get("claimRef") or {}
    if reference.get("uid") != claim["metadata"]["uid"]:
        return None
    annotations = volume["metadata"].get("annotations") or {}
    if asked(claim) <= held(claim) and _BEFORE not in annotations:
        return None
    plugin = next((plugin for source, plugin in SOURCES.items() if source in volume["spec"]), None)
    if plugin is None:
        return Expansion(_OUTSIDE)
    message = f"CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc"
    return Expansion(message, MIGRATED[plugin])


def _amount(amounts: Mapping[str, str] | None) -> int:
    return parse((amounts or {}).get("storage") or "0")
