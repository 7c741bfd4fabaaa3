"""The strategy of CSINodes, which list the drivers on a node, and the number of volumes that each can attach.

Source: Kubernetes `pkg/apis/storage/validation/validation.go` and `pkg/registry/storage/csinode/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, required
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.kinds.apps.templates import SPEC
from ctrlmgr.kinds.common_rules import each_problem, nonnegative
from ctrlmgr.kinds.core.volume_sources import driver_name
from ctrlmgr.kinds.simple_strategies import GuardedStrategy
from ctrlmgr.kinds.spec_difference import shown, with_empties

_DRIVERS = SPEC.child("drivers")
_LONGEST_ID = 256


class CSINodeStrategy(GuardedStrategy):
    """The strategy of the kind storage.k8s.io/v1 CSINode."""

    returns_deleted = True
    compares_metadata = False

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate each driver."""
        errors: list[FieldError] = []
        found: set[str] = set()
        for index, driver in enumerate(_drivers_of(obj)):
            errors += _validate_driver(driver, found, _DRIVERS.at(index))
        return errors

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that in an existing driver of a CSINode, only the number of attachable volumes changes."""
        drivers: dict[str, list[tuple[dict[str, Any], Any]]] = {}
        for driver, written in zip(_drivers_of(new), _drivers_of(with_empties(new, ctx.sent_at())), strict=True):
            drivers.setdefault(driver.get("name") or "", []).append((_fixed(driver), written))
        return [
            invalid(_DRIVERS, shown("CSINodeDriver", _fixed(written)), IMMUTABLE)
            for before in _drivers_of(old)
            for driver, written in drivers.get(before.get("name") or "", ())
            if driver != _fixed(before)
        ]


def _drivers_of(obj: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return (obj.get("spec") or {}).get("drivers") or ()


def _fixed(driver: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in driver.items() if field != "allocatable"}


def _validate_driver(driver: Mapping[str, Any], found: set[str], path: Path) -> list[FieldError]:
    """Validate one driver of a CSINode.

    The set `found` contains the names of earlier drivers. The function adds this driver's name to the set.
    """
    name, below = driver.get("name") or "", path.child("name")
    errors = driver_name(name, below)
    errors += _validate_node_id(driver.get("nodeID") or "", path.child("nodeID"))
    errors += nonnegative((driver.get("allocatable") or {}).get("count"), path.child("allocatable", "count"))
    if name in found:
        errors.append(duplicate(below, name))
    found.add(name)
    return errors + _validate_topology_keys(driver.get("topologyKeys") or (), path)


def _validate_node_id(node_id: str, path: Path) -> list[FieldError]:
    if not node_id:
        return [required(path)]
    if name_formats.length(node_id) > _LONGEST_ID:
        return [invalid(path, node_id, f"must be {_LONGEST_ID} characters or less")]
    return []


def _validate_topology_keys(keys: Sequence[str], path: Path) -> list[FieldError]:
    """Validate the topology keys of a driver; as in Kubernetes, the errors contain the path of the driver."""
    errors: list[FieldError] = []
    found: set[str] = set()
    for key in keys:
        errors += [] if key else [required(path)]
        errors += [duplicate(path, key)] if key in found else []
        found.add(key)
        errors += each_problem(name_formats.qualified_name, key, path)
    return errors
