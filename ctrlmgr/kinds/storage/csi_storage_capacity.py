"""The strategy of CSIStorageCapacities: the storage that a driver has for a storage class on some nodes.

Source: Kubernetes `pkg/apis/storage/validation/validation.go`, `pkg/registry/storage/csistoragecapacity/strategy.go`
and `pkg/api/{storage,node}/util.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import ROOT, FieldError, Path, invalid, tentatively
from ctrlmgr.api.quantity import parse
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_label_selector
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.kinds.common_rules import NEGATIVE, each_problem, immutable
from ctrlmgr.kinds.core.pod.warnings import NODE_LABELS, node_term_warnings
from ctrlmgr.kinds.simple_strategies import GuardedStrategy
from ctrlmgr.kinds.spec_difference import shown

_TOPOLOGY = Path("nodeTopology")
_CLASS = Path("storageClassName")
_CAPACITY = Path("capacity")


class CSIStorageCapacityStrategy(GuardedStrategy):
    """The strategy of the kind storage.k8s.io/v1 CSIStorageCapacity."""

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the nodes, the storage class and the amounts of a CSIStorageCapacity.

        If the old node selector had invalid values, the values of the new node selector are not validated.
        """
        was_wrong = ctx.old is not None and _is_wrong(ctx.old.get(_TOPOLOGY))
        errors = validate_label_selector(obj.get(_TOPOLOGY), _TOPOLOGY, invalid_values_allowed=was_wrong)
        errors += each_problem(name_formats.dns1123_subdomain, obj.get(_CLASS) or "", _CLASS)
        capacity = obj.get(_CAPACITY)
        return [*errors, invalid(_CAPACITY, capacity, NEGATIVE)] if capacity and parse(capacity) < 0 else errors

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the nodes, the storage class and the maximum volume size are unchanged."""
        topology = new.get(_TOPOLOGY)
        errors: list[FieldError] = []
        if topology != old.get(_TOPOLOGY):
            value = None if topology is None else shown("LabelSelector", topology)
            errors.append(invalid(_TOPOLOGY, value, IMMUTABLE))
        return errors + immutable(new.get(_CLASS) or "", old.get(_CLASS) or "", _CLASS)

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about deprecated node labels in a CSIStorageCapacity."""
        topology = obj.get(_TOPOLOGY) or {}
        labels, path = topology.get("matchLabels") or (), _TOPOLOGY.child("matchLabels")
        found = [f"{path.child(label)}: {NODE_LABELS[label]}" for label in labels if label in NODE_LABELS]
        return [*node_term_warnings(topology, _TOPOLOGY), *found]


def _is_wrong(topology: Mapping[str, Any] | None) -> bool:
    return bool(tentatively(lambda: validate_label_selector(topology, ROOT)))
