"""The strategies of ResourceClaims and ResourceClaimTemplates, whose requests cannot change.

Source: Kubernetes `pkg/registry/resource/{resourceclaim,resourceclaimtemplate}/strategy.go`,
`pkg/registry/resource/utils.go` and `pkg/apis/resource/validation/validation.go`.
"""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, internal_error, invalid
from ctrlmgr.api.resource import NAMESPACES, Key
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.kinds.core.pod.volumes.validation import validate_template_metadata
from ctrlmgr.kinds.resource.claim_status import drop_deallocated, results_of, validate_claim_status
from ctrlmgr.kinds.resource.defaults import default_claim_spec
from ctrlmgr.kinds.resource.device_requests import validate_claim_spec
from ctrlmgr.kinds.resource.shared_parts import Fields
from ctrlmgr.kinds.spec_difference import shown, with_empties

_SPEC = Path("spec")
_ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_NO_ADMIN = f"admin access to devices requires the `{_ADMIN_LABEL}: true` label on the containing namespace"


class ResourceClaimStrategy(Strategy):
    """The strategy of the kind resource.k8s.io/v1 ResourceClaim."""

    returns_deleted = True
    status_keeps = METADATA

    def default(self, obj: Unstructured) -> None:
        """Set the default count in device requests, which is 1."""
        default_claim_spec(obj.get("spec") or {})

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Drop the drivers' reports about devices that are no longer allocated to the claim."""
        if ctx.subresource:
            drop_deallocated(new, old)

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the spec of a new ResourceClaim."""
        if ctx.old is not None:
            return []
        spec = obj.get("spec") or {}
        return _validate_admin_access(ctx, obj, spec) + validate_claim_spec(spec, _SPEC)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the spec of a ResourceClaim is unchanged.

        In a write to `/status`, validate the status instead.
        """
        if not ctx.subresource:
            return _same_spec("ResourceClaimSpec", ctx, new, old)
        errors = _validate_admin_results(ctx, new, old)
        return errors + validate_claim_status(new, old.get("status") or {})


class ResourceClaimTemplateStrategy(Strategy):
    """The strategy of the kind resource.k8s.io/v1 ResourceClaimTemplate."""

    returns_deleted = True

    def default(self, obj: Unstructured) -> None:
        """Set the default count in device requests, which is 1."""
        default_claim_spec((obj.get("spec") or {}).get("spec") or {})

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the metadata and the spec of a ResourceClaimTemplate."""
        template = obj.get("spec") or {}
        spec = template.get("spec") or {}
        errors = _validate_admin_access(ctx, obj, spec) if ctx.old is None else []
        errors += validate_template_metadata(template.get("metadata") or {}, _SPEC.child("metadata"))
        return errors + validate_claim_spec(spec, _SPEC.child("spec"))

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the spec of a ResourceClaimTemplate is unchanged."""
        return _same_spec("ResourceClaimTemplateSpec", ctx, new, old)


def _same_spec(type_: str, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
    spec = new.get("spec") or {}
    if spec == (old.get("spec") or {}):
        return []
    given = with_empties(spec, ctx.sent_at("spec"))
    return [invalid(_SPEC, shown(type_, given), IMMUTABLE)]


def _validate_admin_access(ctx: Context, obj: Unstructured, spec: Fields) -> list[FieldError]:
    """Validate that only claims in namespaces for administrators request admin access to devices (KEP-5018)."""
    requests = (spec.get("devices") or {}).get("requests") or ()
    for at, request in enumerate(requests):
        if (request.get("exactly") or {}).get("adminAccess"):
            return _in_admin_namespace(ctx, obj, _SPEC.child("devices", "requests").at(at).child("adminAccess"))
    return []


def _validate_admin_results(ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
    """Validate that claims get admin access only in namespaces for administrators.

    Claims that already had it are allowed.
    """
    if any(each.get("adminAccess") for each in results_of(old)):
        return []
    for at, result in enumerate(results_of(new)):
        if result.get("adminAccess"):
            path = Path("status").child("allocation", "devices", "results").at(at).child("adminAccess")
            return _in_admin_namespace(ctx, new, path)
    return []


def _in_admin_namespace(ctx: Context, obj: Unstructured, path: Path) -> list[FieldError]:
    name: Any = metadata_of(obj).get("namespace") or ""
    namespace = ctx.view.get(NAMESPACES, Key("", name))
    if namespace is None:
        missing = f'namespaces "{name}" not found'
        return [internal_error(path, f"could not retrieve namespace to verify admin access: {missing}")]
    return [] if namespace.labels.get(_ADMIN_LABEL) == "true" else [forbidden(path, _NO_ADMIN)]
