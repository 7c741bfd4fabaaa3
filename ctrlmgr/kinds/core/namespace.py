"""The strategy of Namespaces: a new namespace is active and labelled with its name.

A deleted namespace is removed when it is empty. Source: Kubernetes `pkg/registry/core/namespace`,
`pkg/apis/core/v1/defaults.go` and `pkg/apis/core/validation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.object_meta import validate_finalizer

ACTIVE = "Active"
TERMINATING = "Terminating"
NAME_LABEL = "kubernetes.io/metadata.name"
CONTENT_FINALIZER = "kubernetes"
"""The finalizer that prevents the removal of a namespace before it is empty."""

_FINALIZERS = Path("spec.finalizers")
_PHASE = Path("status.Phase")  # Kubernetes' name of this field begins with a capital letter


class _Spec(msgspec.Struct, frozen=True, gc=False):
    finalizers: list[str] | None = None


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""


class _Namespace(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()
    status: _Status = _Status()


class NamespaceStrategy(Strategy):
    """The strategy of the kind v1 Namespace."""

    returns_deleted = True
    name_check = staticmethod(name_formats.label_name)
    own_preconditions = True
    fields = ("status.phase",)

    def default(self, obj: Unstructured) -> None:
        """Label a namespace with its name; if the name will be generated, `canonicalize` sets the label later."""
        metadata = metadata_of(obj)
        if name := metadata.get("name"):
            labels = metadata.get("labels")
            if labels is None or labels.get(NAME_LABEL) != name:
                metadata["labels"] = {**(labels or {}), NAME_LABEL: name}

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the phase of a namespace to Active, and add the finalizer `kubernetes`."""
        obj["status"] = {"phase": ACTIVE}
        spec = obj.get("spec") or {}
        finalizers = spec.get("finalizers") or []
        if CONTENT_FINALIZER not in finalizers:
            obj["spec"] = {**spec, "finalizers": [*finalizers, CONTENT_FINALIZER]}

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the finalizers in the spec of a namespace."""
        if ctx.subresource:
            return []
        return [error for each in _finalizers(obj) for error in validate_finalizer(each, _FINALIZERS)]

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Keep the fields of a namespace that only subresources may write.

        `/finalize` writes `spec.finalizers`, and `/status` writes `status`.
        """
        if ctx.subresource != "status":
            _keep(new, old, "status")
        if ctx.subresource != "finalize":
            _keep(new, old, "spec")

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the phase of a namespace agrees with its deletion timestamp.

        After a write to `/finalize`, validate the finalizers in the spec.
        """
        if ctx.subresource == "status":
            return _validate_phase(new)
        if ctx.subresource == "finalize":
            finalizers = enumerate(_finalizers(new))
            return [error for at, each in finalizers for error in validate_finalizer(each, _FINALIZERS.at(at))]
        return []

    def canonicalize(self, obj: Unstructured) -> None:
        """Set the label of a namespace whose name has just been generated."""
        self.default(obj)

    def begin_termination(self, ctx: Context, obj: Unstructured) -> None:
        """Set the phase of a namespace to Terminating; namespaces have no grace period."""
        obj["status"] = {**(obj.get("status") or {}), "phase": TERMINATING}
        metadata_of(obj).pop("deletionGracePeriodSeconds", None)

    def finalizers(self, obj: Object) -> Sequence[str]:
        """Return the finalizers in the spec of a namespace."""
        return obj.view(_Namespace).spec.finalizers or ()

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the phase of a namespace, for field selectors."""
        return {"status.phase": obj.view(_Namespace).status.phase}


def _finalizers(obj: Unstructured) -> Sequence[str]:
    return (obj.get("spec") or {}).get("finalizers") or ()


def _keep(new: Unstructured, old: Unstructured, field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


def _validate_phase(obj: Unstructured) -> list[FieldError]:
    phase = (obj.get("status") or {}).get("phase", "")
    if obj["metadata"].get("deletionTimestamp"):
        if phase != TERMINATING:
            words = f"may only be '{TERMINATING}' if `deletionTimestamp` is not empty"
            return [invalid(_PHASE, phase, words)]
    elif phase != ACTIVE:
        return [invalid(_PHASE, phase, f"may only be '{ACTIVE}' if `deletionTimestamp` is empty")]
    return []
