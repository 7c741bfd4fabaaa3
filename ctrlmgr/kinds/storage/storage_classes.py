"""The strategies of StorageClasses and VolumeAttributesClasses, which contain a driver and its parameters.

The objects of both kinds are immutable.

Source: Kubernetes `pkg/apis/storage/v1/defaults.go`, `pkg/apis/storage/validation/validation.go`,
`pkg/apis/core/validation/validation.go` (`ValidateTopologySelectorTerm`), `pkg/api/storage/util.go` and
`pkg/registry/storage/{storageclass,volumeattributesclass}/strategy.go`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required, too_long
from ctrlmgr.api.unstructured import Unstructured, repeated
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_label_name
from ctrlmgr.kinds.apps.templates import fill_nil
from ctrlmgr.kinds.common_rules import each_problem, immutable, sorted_map
from ctrlmgr.kinds.core.pod.warnings import NODE_LABELS

Term: TypeAlias = Mapping[str, Any]
"""A term of a topology selector, as plain JSON."""

_PARAMETERS = Path("parameters")
_TOPOLOGIES = Path("allowedTopologies")
_EXPRESSIONS = "matchLabelExpressions"
_RECLAIM = ("Delete", "Retain")
_BINDING = ("Immediate", "WaitForFirstConsumer")
_MOST_PARAMETERS = 512
_PARAMETERS_SIZE = 256 * 1024


class StorageClassStrategy(Strategy):
    """The strategy of the kind storage.k8s.io/v1 StorageClass."""

    returns_deleted = True

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of a StorageClass: volumes are deleted with their claims, and are bound immediately."""
        fill_nil(obj, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the whole StorageClass."""
        errors = _validate_provisioner(obj.get("provisioner") or "", Path("provisioner"))
        errors += _validate_parameters(obj.get("parameters") or {})
        policy, mode = obj["reclaimPolicy"], obj["volumeBindingMode"]
        errors += [not_supported("reclaimPolicy", policy, _RECLAIM)] if policy and policy not in _RECLAIM else []
        errors += [] if mode in _BINDING else [not_supported("volumeBindingMode", mode, _BINDING)]
        return errors + _validate_topologies(obj.get(_TOPOLOGIES) or ())

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the fields of a StorageClass that determine the properties of volumes are unchanged."""
        errors = immutable(sorted_map(new.get("parameters")), sorted_map(old.get("parameters")), _PARAMETERS)
        for field in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
            errors += immutable(new.get(field) or "", old.get(field) or "", Path(field))
        return errors

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about deprecated node labels in a StorageClass."""
        expressions = (
            (_TOPOLOGIES.at(at).child(_EXPRESSIONS).at(index).child("key"), expression.get("key") or "")
            for at, term in enumerate(obj.get(_TOPOLOGIES) or ())
            for index, expression in enumerate(term.get(_EXPRESSIONS) or ())
        )
        return [f"{path}: {NODE_LABELS[key]}" for path, key in expressions if key in NODE_LABELS]


class VolumeAttributesClassStrategy(Strategy):
    """The strategy of the kind storage.k8s.io/v1 VolumeAttributesClass."""

    returns_deleted = True

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate a new VolumeAttributesClass.

        The method `validate_update` validates an updated VolumeAttributesClass, after its other checks.
        """
        return [] if ctx.old is not None else _validate_attributes(obj)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the VolumeAttributesClass is unchanged, and then validate the whole object."""
        errors = [
            forbidden(field, f"updates to {field} are forbidden.")
            for field in ("driverName", "parameters")
            if (new.get(field) or None) != (old.get(field) or None)
        ]
        return errors + _validate_attributes(new)


def _validate_attributes(obj: Unstructured) -> list[FieldError]:
    parameters = obj.get("parameters") or {}
    errors = _validate_provisioner(obj.get("driverName") or "", Path("driverName")) + _validate_parameters(parameters)
    return errors if parameters else [*errors, required(_PARAMETERS, "must contain at least one key/value pair")]


def _validate_provisioner(name: str, path: Path) -> list[FieldError]:
    return each_problem(name_formats.qualified_name, name.lower(), path) if name else [required(path)]


def _validate_parameters(parameters: Mapping[str, str]) -> list[FieldError]:
    if len(parameters) > _MOST_PARAMETERS:
        return [too_long(_PARAMETERS, _MOST_PARAMETERS)]
    errors = [invalid(_PARAMETERS, key, "field can not be empty.") for key in parameters if not key]
    size = sum(name_formats.length(key) + name_formats.length(value) for key, value in parameters.items())
    return [*errors, too_long(_PARAMETERS, _PARAMETERS_SIZE)] if size > _PARAMETERS_SIZE else errors


def _validate_topologies(terms: Sequence[Term]) -> list[FieldError]:
    """Validate the allowed topologies of a StorageClass; each term is compared with the earlier terms.

    As in Kubernetes, the list of earlier terms begins with empty terms; their number is the number of all terms.
    """
    errors: list[FieldError] = []
    before = Counter({frozenset[Any](): len(terms)})
    for index, term in enumerate(terms):
        path = _TOPOLOGIES.at(index).child(_EXPRESSIONS)
        expressions = term.get(_EXPRESSIONS) or ()
        errors += _validate_expressions(expressions, path)
        values_by_key = {each.get("key") or "": frozenset(each.get("values") or ()) for each in expressions}
        meant = frozenset(values_by_key.items())
        errors += [duplicate(path, "") for _ in range(before[meant])]
        before[meant] += 1
    return errors


def _validate_expressions(expressions: Sequence[Term], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    found: set[str] = set()
    for index, expression in enumerate(expressions):
        key, values, below = expression.get("key") or "", expression.get("values") or (), path.at(index)
        errors += [] if values else [required(below.child("values"))]
        errors += [duplicate(below.child("values").at(at), values[at]) for at in sorted(repeated(values))]
        errors += validate_label_name(key, below.child("key"))
        errors += [duplicate(below.child("key"), key)] if key in found else []
        found.add(key)
    return errors
