"""The strategy of CustomResourceDefinitions: defaults, validation, status and deletion.

A deleted CustomResourceDefinition exists until its custom objects are deleted. If the CEL rules
(`x-kubernetes-validations`) of a CustomResourceDefinition do not compile, the CustomResourceDefinition is refused.

Source: apiextensions-apiserver `pkg/registry/customresourcedefinition/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ctrlmgr.api.field import FieldError, Path, forbidden
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, INTERNAL_GROUP, Key
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.errors import BadRequest
from ctrlmgr.extensions.canonical_schema import canonicalize
from ctrlmgr.extensions.definition_defaults import prepare_changed, prepare_new, set_defaults
from ctrlmgr.extensions.validation import validate_definition, validate_status, warnings
from ctrlmgr.schema.strict_json import has_escaped_letters

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a deleted CustomResourceDefinition until its custom objects are deleted."""

_PENDING = {
    "type": "Terminating",
    "status": "True",
    "reason": "InstanceDeletionPending",
    "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
}
_REFUSED = 'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: '

_FEW_RULES: Final = 20
_COST: Final = 4
"""The cost of validating one byte of a schema, relative to a byte of other objects."""
_COST_OF_RULES: Final = 16
"""The cost of validating one byte of a schema with many rules, relative to a byte of other objects."""


def _reserved(definition: Unstructured) -> list[FieldError]:
    """Return an error if the group is the API group of internal objects, such as claims of addresses and ports."""
    group = (definition.get("spec") or {}).get("group") or ""
    if group != INTERNAL_GROUP:
        return []
    return [forbidden(Path("spec.group"), "the control plane keeps objects of its own in this group")]


class DefinitionStrategy(Strategy):
    """CustomResourceDefinition."""

    allow_unconditional_update = False
    has_generation = True
    any_finalizer = True
    revalidates = 0
    own_preconditions = True

    def validation_cost(self, body: bytes) -> int:
        """Return the relative cost of validating a byte of the CustomResourceDefinition.

        The cost depends on the number of CEL rules, because compiling rules and estimating their costs is expensive.
        """
        has_many_rules = body.count(b"rule") > _FEW_RULES or has_escaped_letters(body)
        return _COST_OF_RULES if has_many_rules else _COST

    def default(self, obj: Unstructured) -> None:
        """Convert nested schemas to canonical form, and set the defaults of names, conversion and stored versions."""
        try:
            canonicalize(obj.get("spec") or {})
        except ValueError as error:
            raise BadRequest(f"{_REFUSED}{error}") from error
        set_defaults(obj)

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the initial status of a CustomResourceDefinition."""
        prepare_new(obj)

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Keep the old status, and add a new storage version to `status.storedVersions`."""
        if not ctx.subresource:
            prepare_changed(new, old)

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate a new CustomResourceDefinition.

        The method `validate_update` validates an updated CustomResourceDefinition, because the requirements depend on
        its old state.
        """
        return _reserved(obj) + validate_definition(obj) if ctx.old is None else []

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate an updated CustomResourceDefinition, or its updated status."""
        return validate_status(new) if ctx.subresource else validate_definition(new, old)

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about unknown formats, and about CEL rules that are not evaluated because values are unchanged."""
        return [] if ctx.subresource else warnings(obj, old)

    def finalizers(self, obj: Object) -> Sequence[str]:
        """Return the finalizer for the cleanup of custom objects, unless the deletion has already started."""
        return () if obj.is_terminating else (CLEANUP,)

    def begin_termination(self, ctx: Context, obj: Unstructured) -> None:
        """Start the deletion of a CustomResourceDefinition as Kubernetes does.

        Its custom objects are always deleted first.
        """
        before = ctx.view.get(DEFINITIONS, Key("", metadata_of(obj)["name"]))
        if before is None or before.is_terminating:
            return
        metadata = metadata_of(obj)
        metadata.pop("deletionGracePeriodSeconds", None)
        metadata["generation"] = before.metadata.generation
        finalizers = [*(before.metadata.finalizers or ())]
        metadata["finalizers"] = finalizers if CLEANUP in finalizers else [*finalizers, CLEANUP]
        status = obj.setdefault("status", {})
        conditions = [each for each in status.get("conditions") or () if each.get("type") != _PENDING["type"]]
        status["conditions"] = [*conditions, {"lastTransitionTime": ctx.now, **_PENDING}]
