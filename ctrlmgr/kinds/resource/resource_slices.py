"""The strategy of ResourceSlices, which list a driver's devices, their nodes, and the counters that devices share.

Source: Kubernetes `pkg/apis/resource/validation/validation.go` and `pkg/registry/resource/resourceslice/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ctrlmgr.api.field import FieldError, Path, invalid, required
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured, at
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.golang.go_text import quote
from ctrlmgr.kinds.common_rules import immutable
from ctrlmgr.kinds.core.pod.scheduling import validate_node_selector
from ctrlmgr.kinds.core.volume_sources import driver_name
from ctrlmgr.kinds.resource.defaults import default_slice_spec, stamp_taints
from ctrlmgr.kinds.resource.device_requests import name_of
from ctrlmgr.kinds.resource.devices import (
    LISTS,
    as_set,
    node_name,
    only_true,
    validate_counters,
    validate_device,
    ways_of,
)
from ctrlmgr.kinds.resource.shared_parts import Fields, pool_name, required_label, validate_set
from ctrlmgr.kinds.spec_difference import shown

_V1 = "resource.k8s.io/v1"
_SPEC = Path("spec")
_MAX_DEVICES = 128
_MAX_ADVANCED_DEVICES = 64
_MAX_COUNTER_SETS = 8
_ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


class _Slice(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""
    driver: str = ""


class _ResourceSlice(msgspec.Struct, frozen=True, gc=False):
    spec: _Slice = _Slice()


class ResourceSliceStrategy(Strategy):
    """The strategy of ResourceSlices; clients can use field selectors to select the slices of a node."""

    returns_deleted = True
    has_generation = True
    revalidates = 0
    fields = ("spec.nodeName", "spec.driver")

    def default(self, obj: Unstructured) -> None:
        """Set the default multipliers with which devices use node resources, which are 1."""
        default_slice_spec(obj.get("spec") or {})

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the timestamps of new device taints."""
        stamp_taints(obj.get("spec") or {}, ctx.now)

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Set the timestamps of new device taints."""
        stamp_taints(new.get("spec") or {}, ctx.now)

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the driver, the pool, the nodes and the devices of a ResourceSlice.

        The driver, the pool and the node of a ResourceSlice cannot change.
        """
        spec, before = obj.get("spec") or {}, None if ctx.old is None else ctx.old.get("spec") or {}
        pool = spec.get("pool") or {}
        errors = driver_name(spec.get("driver") or "", _SPEC.child("driver"))
        errors += _validate_pool(pool, _SPEC.child("pool"))
        if before is not None:
            name, was = pool.get("name") or "", (before.get("pool") or {}).get("name") or ""
            errors += immutable(name, was, _SPEC.child("pool", "name"))
            errors += immutable(spec.get("driver") or "", before.get("driver") or "", _SPEC.child("driver"))
            errors += immutable(spec.get("nodeName"), before.get("nodeName"), _SPEC.child("nodeName"))
        return errors + _validate_place(spec) + _validate_contents(ctx, spec, before or {})

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about capital letters in the driver name of a ResourceSlice."""
        driver = (obj.get("spec") or {}).get("driver") or ""
        if driver == driver.lower():
            return []
        return [f"spec.driver: driver names should be lowercase; {quote(driver)} contains uppercase characters"]

    def field_refusal(self, field: str) -> str:
        """Return the error for a field selector that uses the unsupported field `field`."""
        return f"field label not supported for {_V1}, Kind=ResourceSlice: {field}"

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the node and the driver of a ResourceSlice, for field selectors."""
        spec = obj.view(_ResourceSlice).spec
        return {"spec.nodeName": spec.node_name, "spec.driver": spec.driver}


def _validate_pool(pool: Fields, path: Path) -> list[FieldError]:
    errors = pool_name(pool.get("name") or "", path.child("name"))
    slices, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    if slices <= 0:
        errors.append(invalid(path.child("resourceSliceCount"), slices, "must be greater than zero"))
    if generation < 0:
        errors.append(invalid(path.child("generation"), generation, "must be greater than or equal to zero"))
    return errors


def _validate_place(spec: Fields) -> list[FieldError]:
    """Validate that the ResourceSlice specifies the nodes of its devices in exactly one way."""
    errors = node_name(spec, _SPEC, "must be either unset or set to a non-empty string")
    selector, below = spec.get("nodeSelector"), _SPEC.child("nodeSelector")
    if selector is not None:
        terms = selector.get("nodeSelectorTerms") or ()
        errors += validate_node_selector(selector, below)
        if len(terms) != 1:
            given = [shown("NodeSelectorTerm", each) for each in terms] or None
            errors.append(invalid(below.child("nodeSelectorTerms"), given, "must have exactly one node selector term"))
    errors += only_true(spec, ("allNodes", "perDeviceNodeSelection"), _SPEC)
    ways = ways_of(spec, ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"))
    if not ways:
        errors.append(required(_SPEC, _ONE_PLACE))
    elif len(ways) > 1:
        errors.append(invalid(_SPEC, as_set(ways), f"{_ONE_PLACE}, but multiple fields are set"))
    return errors


def _validate_contents(ctx: Context, spec: Fields, before: Fields) -> list[FieldError]:
    """Validate the devices of the ResourceSlice, or the counters that the ResourceSlice shares with other slices."""
    devices, counters = spec.get("devices") or (), spec.get("sharedCounters") or ()
    errors: list[FieldError] = []
    if _are_set(ctx, spec, ("sharedCounters", "devices")):
        errors.append(invalid(_SPEC, "", "only one of `sharedCounters` or `devices` is allowed"))
    known = {name_of(each): each for each in reversed(before.get("devices") or ())}
    is_each_placed = spec.get("perDeviceNodeSelection") or False
    errors += validate_set(
        devices,
        _MAX_ADVANCED_DEVICES if any(map(_is_advanced, devices)) else _MAX_DEVICES,
        lambda each, at: validate_device(each, known.get(name_of(each)), at, is_each_placed=is_each_placed),
        _SPEC.child("devices"),
        name_of,
    )
    return errors + validate_set(
        counters, _MAX_COUNTER_SETS, _validate_counter_set, _SPEC.child("sharedCounters"), name_of
    )


def _are_set(ctx: Context, spec: Fields, fields: tuple[str, ...]) -> bool:
    """Return whether the request contained all of these fields; a field with an empty list also counts."""
    sent = ctx.sent_at("spec") if any(spec.get(each) for each in fields) else None
    return all(spec.get(each) or at(sent, each) is not None for each in fields)


def _is_advanced(device: Fields) -> bool:
    attributes = (device.get("attributes") or {}).values()
    return bool(
        device.get("taints")
        or device.get("consumesCounters")
        or any(each.get(field) is not None for each in attributes for field in LISTS)
    )


def _validate_counter_set(counters: Fields, path: Path) -> list[FieldError]:
    return required_label(name_of(counters), path.child("name")) + validate_counters(counters, path)
