"""The strategy of CSIDrivers; they contain properties of drivers that Kubernetes needs before it mounts volumes.

Source: Kubernetes `pkg/apis/storage/v1/defaults.go`, `pkg/apis/storage/validation/validation.go` and
`pkg/registry/storage/csidriver/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, not_supported
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.strategy import Context
from ctrlmgr.kinds.apps.templates import SPEC, fill_nil
from ctrlmgr.kinds.common_rules import immutable
from ctrlmgr.kinds.simple_strategies import GuardedStrategy

_DEFAULTS = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}
_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_MODES = ("Persistent", "Ephemeral")
_SHORTEST_TOKEN = 10 * 60
_LONGEST_TOKEN = 1 << 32
"""The minimum and the maximum lifetime of service account tokens for a driver, in seconds."""
_SHORTEST_PERIOD = 10
"""The minimum number of seconds between two updates of the number of volumes that a driver can attach to a node."""
_IN_SECRETS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


class CSIDriverStrategy(GuardedStrategy):
    """The strategy of the kind storage.k8s.io/v1 CSIDriver."""

    returns_deleted = True
    revalidates = 0

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of a CSIDriver: the driver needs volumes to be attached, and has no other feature."""
        _default(obj.setdefault("spec", {}))

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Increase the generation of a CSIDriver if its spec has changed."""
        if new["spec"] != _spec_of(old):
            metadata_of(new)["generation"] = (metadata_of(old).get("generation") or 0) + 1

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the `spec` of the object."""
        return _validate_spec(obj["spec"], SPEC)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the fields of a CSIDriver on which existing volumes depend are unchanged."""
        spec, before = new["spec"], _spec_of(old)
        field, modes = "attachRequired", "volumeLifecycleModes"
        # Kubernetes' errors contain the same path.
        errors = immutable(spec[field], before[field], SPEC.child("attachedRequired"))
        return errors + immutable(spec[modes], before[modes], SPEC.child(modes))

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about a CSIDriver that receives service account tokens in a field which the driver may log."""
        spec, before = obj["spec"], {} if old is None else old.get("spec") or {}
        requests = spec.get("tokenRequests")
        is_new = requests and (old is None or requests != before.get("tokenRequests"))
        return [_IN_SECRETS] if is_new and spec.get("serviceAccountTokenInSecrets") is None else []


def _default(spec: dict[str, Any]) -> None:
    fill_nil(spec, _DEFAULTS)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]
    if is_on("VolumeLimitScaling"):
        fill_nil(spec, {"preventPodSchedulingIfMissing": False})


def _spec_of(old: Unstructured) -> dict[str, Any]:
    """Return the spec of a stored CSIDriver with the current defaults, in the form that Kubernetes reads."""
    spec = dict(old.get("spec") or {})
    _default(spec)
    return spec


def _validate_spec(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    policy, requests = spec["fsGroupPolicy"], spec.get("tokenRequests") or ()
    if policy not in _GROUP_POLICIES:
        errors.append(not_supported(path.child("fsGroupPolicy"), policy, _GROUP_POLICIES))
    errors += _validate_token_requests(requests, path.child("tokenRequests"))
    field = path.child("volumeLifecycleModes")
    errors += [not_supported(field, mode, _MODES) for mode in spec["volumeLifecycleModes"] if mode not in _MODES]
    period, field = spec.get("nodeAllocatableUpdatePeriodSeconds"), path.child("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _SHORTEST_PERIOD:
        errors.append(invalid(field, period, "must be greater than or equal to 10 seconds"))
    in_secrets, field = spec.get("serviceAccountTokenInSecrets"), path.child("serviceAccountTokenInSecrets")
    if in_secrets is not None and not requests:
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(invalid(field, in_secrets, detail))
    return errors


def _validate_token_requests(requests: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    audiences: set[str] = set()
    for index, request in enumerate(requests):
        audience, seconds, below = request.get("audience") or "", request.get("expirationSeconds"), path.at(index)
        if audience in audiences:
            errors.append(duplicate(below.child("audience"), audience))
        elif seconds is not None:
            errors += _validate_expiration(seconds, below.child("expirationSeconds"))
        audiences.add(audience)
    return errors


def _validate_expiration(seconds: int, path: Path) -> list[FieldError]:
    if seconds < _SHORTEST_TOKEN:
        return [invalid(path, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _LONGEST_TOKEN:
        return [invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []
