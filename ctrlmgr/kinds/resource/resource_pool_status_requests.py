"""The strategy of ResourcePoolStatusRequests, with which administrators ask how many devices of a driver are free.

Kubernetes serves the kind only if the version `resource.k8s.io/v1alpha3` is enabled and the feature gate
DRAResourcePoolStatus is on.

Source: Kubernetes `pkg/registry/resource/resourcepoolstatusrequest/strategy.go`.
"""

from __future__ import annotations

from typing import Final

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.kinds.resource.declared_formats import caseless_name, in_bounds, needed, pool_path
from ctrlmgr.kinds.resource.pool_status import MOST_POOLS, validate_status
from ctrlmgr.kinds.simple_strategies import GuardedStrategy

DEFAULT_LIMIT: Final = 100
"""The maximum number of pools in a status if the request names no limit."""
_SPEC: Final = Path("spec")
_DRIVER, _POOL, _LIMIT = (_SPEC.child(each) for each in ("driver", "poolName", "limit"))


class ResourcePoolStatusRequestStrategy(GuardedStrategy):
    """resource.k8s.io/v1alpha3 ResourcePoolStatusRequest; its spec and, once it is set, its status are immutable."""

    revalidates = 0
    status_keeps = METADATA
    returns_deleted = True

    def default(self, obj: Unstructured) -> None:
        """Default the maximum number of pools."""
        spec = obj.setdefault("spec", {})
        if spec.get("limit") is None:
            spec["limit"] = DEFAULT_LIMIT

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the driver, the pool and the limit of a new request."""
        if ctx.old is not None:
            return []
        spec = obj["spec"]
        errors = needed(spec.get("driver"), _DRIVER, caseless_name)
        if (pool := spec.get("poolName")) is not None:
            errors += pool_path(pool, _POOL)
        return errors + in_bounds(spec["limit"], _LIMIT, 1, MOST_POOLS)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the spec is unchanged, or the changed status."""
        if ctx.subresource == "status":
            return validate_status(new.get("status"), old.get("status"))
        return [] if new["spec"] == old["spec"] else [invalid(_SPEC, None, IMMUTABLE)]
