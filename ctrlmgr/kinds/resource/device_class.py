"""The strategy of DeviceClasses, which select devices and configure their drivers.

Source: Kubernetes `pkg/apis/resource/validation/validation.go` and `pkg/registry/resource/deviceclass/strategy.go`.
"""

from __future__ import annotations

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.quantities import is_extended
from ctrlmgr.kinds.resource.selectors import validate_selectors
from ctrlmgr.kinds.resource.shared_parts import MAX_CONFIGURATIONS, validate_configuration, validate_list

_SPEC = Path("spec")


def _class_name(name: str, is_prefix: bool = False) -> list[str]:
    """Validate the name of a DeviceClass; its generateName is not validated (`ValidateObjectMetaWithOpts`)."""
    return [] if is_prefix else name_formats.dns1123_subdomain(name)


class DeviceClassStrategy(Strategy):
    """The strategy of the kind resource.k8s.io/v1 DeviceClass."""

    returns_deleted = True
    has_generation = True
    name_check = staticmethod(_class_name)

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the selectors, the configurations, and the extended resource name of a DeviceClass (KEP-5004)."""
        spec = obj.get("spec") or {}
        config, before = spec.get("config") or (), ((ctx.old or {}).get("spec") or {}).get("config") or ()
        errors = validate_selectors(spec.get("selectors") or (), _SPEC.child("selectors"))
        errors += validate_list(
            config,
            MAX_CONFIGURATIONS,
            lambda each, at: validate_configuration(each, at, stored=config == before),
            _SPEC.child("config"),
        )
        resource = spec.get("extendedResourceName")
        if resource is not None and not is_extended(resource):
            path = _SPEC.child("extendedResourceName")
            errors.append(invalid(path, resource, "must be a valid extended resource name"))
        return errors
