"""The strategy of Nodes: a new node may have a status, and its pod CIDRs and provider ID never change once set.

Source: Kubernetes `pkg/registry/core/node/strategy.go`, `pkg/apis/core/validation` and
`pkg/apis/core/v1/{defaults,conversion}.go`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured, repeated
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.ip_validation import cidr_warnings, is_ipv6, validate_legacy_cidr
from ctrlmgr.engine.validation.label_validation import validate_label_name
from ctrlmgr.engine.validation.quantities import validate_amounts
from ctrlmgr.golang.go_text import quote
from ctrlmgr.kinds.core.claim_spec import NOT_POSITIVE

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TAINTS = Path("metadata.taints")  # the path in Kubernetes' error messages
_POD_CIDRS = Path("spec.podCIDRs")
_LONGEST_FEATURE = 253
_is_feature = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*", re.ASCII).fullmatch
_FEATURE_FORM = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
    "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)


class _Spec(msgspec.Struct, frozen=True, gc=False):
    unschedulable: bool = False


class _Node(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


class NodeStrategy(Strategy):
    """The strategy of the kind v1 Node."""

    status_on_create = True
    fields = ("spec.unschedulable",)

    def default(self, obj: Unstructured) -> None:
        """Make podCIDR and podCIDRs agree, with precedence for podCIDR. The default of allocatable is the capacity."""
        spec = obj.get("spec") or {}
        first, every = spec.get("podCIDR"), spec.get("podCIDRs")
        if first and (not every or every[0] != first):
            obj["spec"] = {**spec, "podCIDRs": [first]}
        elif every and not first:
            obj["spec"] = {**spec, "podCIDR": every[0]}
        status = obj.get("status") or {}
        if status.get("capacity") is not None and status.get("allocatable") is None:
            obj["status"] = {**status, "allocatable": dict(status["capacity"])}

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Drop the dynamic kubelet configuration, which was removed from Kubernetes."""
        obj["spec"] = {key: value for key, value in (obj.get("spec") or {}).items() if key != "configSource"}
        (obj.get("status") or {}).pop("config", None)

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Drop the dynamic kubelet configuration if the old node has no such configuration."""
        if "configSource" in (new.get("spec") or {}) and "configSource" not in (old.get("spec") or {}):
            new["spec"] = {key: value for key, value in new["spec"].items() if key != "configSource"}

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the taints, the resource amounts, the swap memory, the declared features, and the pod CIDRs."""
        if ctx.subresource:
            return []
        held = ((ctx.old or {}).get("spec") or {}).get("podCIDRs") or ()
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        errors = validate_node(obj) + _validate_swap((status.get("nodeInfo") or {}).get("swap") or {})
        errors += _validate_features(status.get("declaredFeatures") or ())
        return errors + _validate_pod_cidrs(spec.get("podCIDRs") or (), held)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that addresses are unique, and that fields which are already set do not change.

        After that, the method validates the fields that every write validates.
        """
        status = new.get("status") or {}
        errors = validate_node(new) + _validate_features(status.get("declaredFeatures") or ())
        errors += _validate_addresses(status.get("addresses") or ())
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        kept = 'except from "" to valid'
        if before.get("podCIDRs") and before["podCIDRs"] != spec.get("podCIDRs"):
            errors.append(forbidden(_POD_CIDRS, f"node updates may not change podCIDR {kept}"))
        if before.get("providerID") and before["providerID"] != spec.get("providerID"):
            errors.append(forbidden(Path("spec.providerID"), f"node updates may not change providerID {kept}"))
        if (spec.get("externalID") or "") != (before.get("externalID") or ""):
            errors.append(forbidden(Path("spec.externalID"), "may not be updated"))
        return errors

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about node fields that have no effect, and about networks that are not in canonical form."""
        spec = obj.get("spec") or {}
        warnings = []
        if spec.get("configSource") is not None and not ctx.subresource:
            warnings.append("spec.configSource: the feature is removed")
        if spec.get("externalID") and not ctx.subresource:
            warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        if not ctx.subresource:
            for at, cidr in enumerate(spec.get("podCIDRs") or ()):
                warnings += cidr_warnings(_POD_CIDRS.at(at), cidr)
        return warnings

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the value of `spec.unschedulable` for field selectors."""
        return {"spec.unschedulable": "true" if obj.view(_Node).spec.unschedulable else "false"}


def validate_node(obj: Unstructured) -> list[FieldError]:
    """Validate the taints and the resource amounts, as in every write of a node."""
    status = obj.get("status") or {}
    errors = _validate_taints((obj.get("spec") or {}).get("taints") or ())
    for field in ("capacity", "allocatable"):
        errors += validate_amounts(status.get(field), Path("status").child(field))
    return errors


def _validate_taints(taints: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for at, taint in enumerate(taints):
        path = _TAINTS.at(at)
        key, value, effect = taint.get("key", ""), taint.get("value") or "", taint.get("effect", "")
        errors += validate_label_name(key, path.child("key"))
        if problems := name_formats.label_value(value):
            errors.append(invalid(path.child("value"), value, ";".join(problems)))
        errors += _validate_effect(effect, path.child("effect"))
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            errors.append(duplicate(path, shown, "taints must be unique by key and effect pair"))
        seen.add((key, effect))
    return errors


def _validate_effect(effect: str, path: Path) -> list[FieldError]:
    if not effect:
        return [required(path)]
    return [] if effect in _EFFECTS else [not_supported(path, effect, _EFFECTS)]


def _validate_pod_cidrs(cidrs: Sequence[str], held: Sequence[str]) -> list[FieldError]:
    errors = [error for at, each in enumerate(cidrs) for error in validate_legacy_cidr(_POD_CIDRS.at(at), each, held)]
    if len(cidrs) < 2:
        return errors
    if len(cidrs) > 2 or len({is_ipv6(each.partition("/")[0]) for each in cidrs}) < 2:
        errors.append(invalid(_POD_CIDRS, list(cidrs), "may specify no more than one CIDR for each IP family"))
    return errors + [duplicate(_POD_CIDRS.at(at), cidrs[at]) for at in sorted(repeated(cidrs))]


def _validate_swap(swap: Mapping[str, Any]) -> list[FieldError]:
    # Kubernetes' errors contain the same path.
    capacity, path = swap.get("capacity"), Path("metadata.nodeSwapStatus.capacity")
    return [] if capacity is None or capacity > 0 else [invalid(path, capacity, NOT_POSITIVE)]


def _validate_features(features: Sequence[str]) -> list[FieldError]:
    """Validate the names and the order of the features that the kubelet declares."""
    errors: list[FieldError] = []
    path = Path("status.declaredFeatures")
    for at, feature in enumerate(features):
        if at and feature == features[at - 1]:
            errors.append(duplicate(path.at(at), feature))
        elif at and feature < features[at - 1]:
            errors.append(invalid(path.at(at), feature, "list must be sorted alphabetically"))
        if problem := _feature_problem(feature):
            errors.append(invalid(path.at(at), feature, f"invalid feature name {quote(feature)}: {problem}"))
    return errors


def _feature_problem(feature: str) -> str:
    if name_formats.length(feature) > _LONGEST_FEATURE:
        return f"must be no more than {_LONGEST_FEATURE} characters"
    return "" if _is_feature(feature) else _FEATURE_FORM


def _validate_addresses(addresses: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    shown = [{"Type": each.get("type", ""), "Address": each.get("address", "")} for each in addresses]
    path = Path("status.addresses")
    return [duplicate(path.at(at), shown[at]) for at in sorted(repeated(shown))]
