"""The strategy of APIServices; each APIService describes the server of one version of an API group.

If the APIService of a version contains no Service, this server serves the version.

Source: kube-aggregator `pkg/apis/apiregistration/v1/defaults.go` and `pkg/apis/apiregistration/validation`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.api.field import FieldError, Path, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.golang.go_text import quote

_SPEC: Final = Path("spec")
_SERVICE: Final = Path("spec.service")
_PORT: Final = 443
_LOCAL: Final = {
    "type": "Available",
    "status": "True",
    "reason": "Local",
    "message": "Local APIServices are always available",
}
_STATUSES: Final = ("True", "False", "Unknown")


class APIServiceStrategy(Strategy):
    """The strategy of the kind apiregistration.k8s.io/v1 APIService."""

    allow_unconditional_update = False
    status_keeps = METADATA
    any_finalizer = True
    name_check = staticmethod(name_formats.path_segment_name)

    def default(self, obj: Unstructured) -> None:
        """Set the default port of the Service in an APIService."""
        service = (obj.get("spec") or {}).get("service")
        if service is not None and service.get("port") is None:
            service["port"] = _PORT

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the condition Available of an APIService if this server serves its version."""
        if (obj.get("spec") or {}).get("service") is None:
            obj["status"] = {"conditions": [{**_LOCAL, "lastTransitionTime": ctx.now}]}

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the spec and the name of an APIService, or its status."""
        if ctx.subresource:
            return _validate_status(obj)
        spec = obj.get("spec") or {}
        version, group = spec.get("version") or "", spec.get("group") or ""
        errors = _validate_names(metadata_of(obj), f"{version}.{group}")
        if not group and version != "v1":
            detail = "only v1 may have an empty group and it better be legacy kube"
            errors.append(required(_SPEC.child("group"), detail))
        if group:
            errors += [invalid(_SPEC.child("group"), group, each) for each in name_formats.dns1123_subdomain(group)]
        errors += [invalid(_SPEC.child("version"), version, each) for each in name_formats.dns1035_label(version)]
        for field, most in (("groupPriorityMinimum", 20_000), ("versionPriority", 1000)):
            value = spec.get(field) or 0
            if not 0 < value <= most:
                errors.append(invalid(_SPEC.child(field), value, f"must be positive and less than {most}"))
        return errors + _validate_server(spec)


def _validate_names(metadata: Mapping[str, Any], expected: str) -> list[FieldError]:
    """Return errors if the APIService's name is not VERSION.GROUP, or if the name was generated."""
    detail = f'must be `spec.version+"."+spec.group`: {quote(expected)}'
    given = {field: metadata.get(field) or "" for field in ("generateName", "name")}
    return [
        invalid(Path("metadata").child(field), name, detail)
        for field, name in given.items()
        if name not in ("", expected) and not name_formats.path_segment_name(name, field == "generateName")
    ]


def _validate_server(spec: Mapping[str, Any]) -> list[FieldError]:
    service, bundle = spec.get("service"), spec.get("caBundle") or ""
    skips = bool(spec.get("insecureSkipTLSVerify"))
    errors: list[FieldError] = []
    if service is None:
        if bundle:
            length = len(base64.b64decode(bundle))
            detail = "local APIServices may not have a caBundle"
            errors.append(invalid(_SPEC.child("caBundle"), f"{length} bytes", detail))
        if skips:
            detail = "local APIServices may not have insecureSkipTLSVerify"
            errors.append(invalid(_SPEC.child("insecureSkipTLSVerify"), True, detail))
        return errors
    errors += [required(_SERVICE.child(each)) for each in ("namespace", "name") if not service.get(each)]
    if problems := name_formats.port_number(service.get("port") or 0):
        detail = f"port is not valid: {', '.join(problems)}"
        errors.append(invalid(_SERVICE.child("port"), service.get("port") or 0, detail))
    if skips and bundle:
        errors.append(invalid(_SPEC.child("insecureSkipTLSVerify"), True, "may not be true if caBundle is present"))
    return errors


def _validate_status(obj: Unstructured) -> list[FieldError]:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return [
        not_supported(Path("status.conditions").at(index).child("status"), each.get("status") or "", _STATUSES)
        for index, each in enumerate(conditions)
        if each.get("status") not in _STATUSES
    ]
