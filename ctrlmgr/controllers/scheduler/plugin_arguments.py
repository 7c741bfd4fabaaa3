"""Checks the arguments of plugins (`pluginConfig`) as kube-scheduler does, and applies them to a profile.

Source of the messages: `pkg/scheduler/apis/config/validation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from ctrlmgr.engine.validation.label_validation import validate_label_name
from ctrlmgr.scheduling.node_selection import NodeAffinity
from ctrlmgr.scheduling.profile import (
    BASIC,
    LEAST,
    MOST,
    RATIO,
    Profile,
    ShapePoint,
    Strategy,
    WeightedResource,
)
from ctrlmgr.scheduling.scheduling_view import SpreadConstraint
from ctrlmgr.scheduling.spread import HARD, SOFT

_LARGEST_SCORE: Final = 10
_HIGHEST_WEIGHT: Final = 100


class _Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    kind: str = ""
    api_version: str = ""


class _Resource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = ""
    weight: int = 0


class _Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    utilization: int = 0
    score: int = 0


class _Ratio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    shape: tuple[_Point, ...] = ()


class _Strategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    type: str = ""
    resources: tuple[_Resource, ...] = ()
    requested_to_capacity_ratio: _Ratio | None = None


class FitArgs(_Args, frozen=True):
    """NodeResourcesFitArgs."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: _Strategy = _Strategy(LEAST)


class BalancedArgs(_Args, frozen=True):
    """NodeResourcesBalancedAllocationArgs."""

    resources: tuple[_Resource, ...] = ()


class InterPodAffinityArgs(_Args, frozen=True):
    """InterPodAffinityArgs."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(_Args, frozen=True):
    """NodeAffinityArgs."""

    added_affinity: NodeAffinity | None = None


class SpreadArgs(_Args, frozen=True):
    """PodTopologySpreadArgs."""

    default_constraints: tuple[SpreadConstraint, ...] = ()
    defaulting_type: str = "System"


class PreemptionArgs(_Args, frozen=True):
    """DefaultPreemptionArgs."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


class VolumeArgs(_Args, frozen=True):
    """VolumeBindingArgs."""

    bind_timeout_seconds: int = 600
    shape: tuple[_Point, ...] | None = None


def _fit(args: FitArgs, path: Path, profile: Profile) -> tuple[Profile, list[FieldError]]:
    errors = [
        error
        for index, name in enumerate(args.ignored_resources)
        for error in validate_label_name(name, path.child("ignoredResources").at(index))
    ]
    for index, group in enumerate(args.ignored_resource_groups):
        at = path.child("ignoredResourceGroups").at(index)
        if "/" in group:
            errors.append(invalid(at, group, "resource group name can't contain '/'"))
        errors += validate_label_name(group, at)
    given = args.scoring_strategy
    errors += _strategy(given, path.child("scoringStrategy"))
    ratio = given.requested_to_capacity_ratio
    shape = tuple(ShapePoint(each.utilization, each.score) for each in ratio.shape) if ratio is not None else ()
    changed = replace(
        profile,
        ignored_resources=frozenset(args.ignored_resources),
        ignored_groups=frozenset(args.ignored_resource_groups),
        strategy=Strategy(given.type, _resources(given.resources), shape),
    )
    return changed, errors


def _resources(given: Sequence[_Resource]) -> tuple[WeightedResource, ...]:
    return tuple(WeightedResource(each.name, each.weight or 1) for each in given) or BASIC


def _strategy(given: _Strategy, path: Path) -> list[FieldError]:
    errors = []
    if given.type not in (LEAST, MOST, RATIO):
        errors.append(not_supported(path.child("type"), given.type, {LEAST, MOST, RATIO}))
    for index, (name, weight) in enumerate(_resources(given.resources)):
        if not 0 < weight <= _HIGHEST_WEIGHT:
            problem = f"resource weight of {name} not in valid range (0, 100]"
            errors.append(invalid(path.child("resources").at(index).child("weight"), weight, problem))
    ratio = given.requested_to_capacity_ratio
    at = path.child("requestedToCapacityRatio")
    if given.type == RATIO and ratio is None:
        errors.append(required(at, "must be specified when type is RequestedToCapacityRatio"))
    elif given.type == RATIO and ratio is not None:
        errors += _shape(ratio.shape, at.child("shape"))
    elif ratio is not None:
        errors.append(forbidden(at, "must be nil when type is not RequestedToCapacityRatio"))
    return errors


def _shape(shape: Sequence[_Point], path: Path) -> list[FieldError]:
    if not shape:
        return [required(path, "at least one point must be specified")]
    errors = []
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            at = path.at(index).child("utilization")
            errors.append(invalid(at, shape[index].utilization, "values must be sorted in increasing order"))
            break
    for index, point in enumerate(shape):
        for name, value, most in (("utilization", point.utilization, 100), ("score", point.score, _LARGEST_SCORE)):
            if not 0 <= value <= most:
                errors.append(invalid(path.at(index).child(name), value, f"not in valid range [0, {most}]"))
    return errors


def _balanced(args: BalancedArgs, path: Path, profile: Profile) -> tuple[Profile, list[FieldError]]:
    errors: list[FieldError] = []
    resources = _resources(args.resources)
    for index, (name, weight) in enumerate(resources):
        at = path.child("resources").at(index)
        if name in [each.name for each in resources[:index]]:
            errors.append(duplicate(at.child("name"), name))
        if weight != 1:
            errors.append(invalid(at.child("weight"), weight, "must be 1"))
    return replace(profile, balanced=resources), errors


def _affinity(args: InterPodAffinityArgs, path: Path, profile: Profile) -> tuple[Profile, list[FieldError]]:
    weight = args.hard_pod_affinity_weight
    at = path.child("hardPodAffinityWeight")
    errors = [] if 0 <= weight <= _HIGHEST_WEIGHT else [invalid(at, weight, "not in valid range [0, 100]")]
    ignores = args.ignore_preferred_terms_of_existing_pods
    return replace(profile, hard_affinity_weight=weight, ignores_preferences=ignores), errors


def _node_affinity(args: NodeAffinityArgs, path: Path, profile: Profile) -> tuple[Profile, list[FieldError]]:
    return replace(profile, added_affinity=args.added_affinity), []


def _spread(args: SpreadArgs, path: Path, profile: Profile) -> tuple[Profile, list[FieldError]]:
    constraints, kind = args.default_constraints, args.defaulting_type
    at = path.child("defaultingType")
    errors = []
    if kind not in ("System", "List"):
        errors.append(not_supported(at, kind, ["System", "List"]))
    elif kind == "System" and constraints:
        errors.append(invalid(at, kind, "when .defaultConstraints are not empty"))
    for index, each in enumerate(constraints):
        errors += _constraint(each, path.child("defaultConstraints").at(index))
        pairs = [(one.topology_key, one.when_unsatisfiable) for one in constraints[: index + 1]]
        if pairs[-1] in pairs[:-1]:
            errors.append(duplicate(path.child("defaultConstraints").at(index), f"{{{pairs[-1][0]}, {pairs[-1][1]}}}"))
    return replace(profile, default_spread=constraints if kind == "List" else None), errors


def _constraint(given: SpreadConstraint, path: Path) -> list[FieldError]:
    errors = []
    if given.max_skew <= 0:
        errors.append(invalid(path.child("maxSkew"), given.max_skew, "not in valid range (0, inf)"))
    if not given.topology_key:
        errors.append(required(path.child("topologyKey"), "can not be empty"))
    else:
        errors += validate_label_name(given.topology_key, path.child("topologyKey"))
    if given.when_unsatisfiable not in (HARD, SOFT):
        errors.append(not_supported(path.child("whenUnsatisfiable"), given.when_unsatisfiable, {HARD, SOFT}))
    if given.label_selector is not None:
        problem = "constraint must not define a selector, as they deduced for each pod"
        errors.append(forbidden(path.child("labelSelector"), problem))
    return errors


def _preemption(args: PreemptionArgs, path: Path, profile: Profile) -> tuple[Profile, list[FieldError]]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    of, fewest = path.child("minCandidateNodesPercentage"), path.child("minCandidateNodesAbsolute")
    errors = [] if 0 <= percentage <= 100 else [invalid(of, percentage, "not in valid range [0, 100]")]
    if absolute < 0:
        errors.append(invalid(fewest, absolute, "not in valid range [0, inf)"))
    if percentage == absolute == 0:
        errors.append(invalid(of, 0, "cannot be zero at the same time as minCandidateNodesAbsolute"))
        errors.append(invalid(fewest, 0, "cannot be zero at the same time as minCandidateNodesPercentage"))
    return replace(profile, candidates_percentage=percentage, fewest_candidates=absolute), errors


def _volumes(args: VolumeArgs, path: Path, profile: Profile) -> tuple[Profile, list[FieldError]]:
    seconds = args.bind_timeout_seconds
    errors = []
    if seconds < 0:
        problem = "invalid BindTimeoutSeconds, should not be a negative value"
        errors.append(invalid(path.child("bindTimeoutSeconds"), seconds, problem))
    if args.shape is not None:
        problem = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        errors.append(invalid(path.child("shape"), msgspec.to_builtins(args.shape), problem))
    return replace(profile, bind_timeout=float(seconds)), errors


_Apply = Callable[[Any, Path, Profile], tuple[Profile, list[FieldError]]]

ARGUMENTS: Final[dict[str, tuple[type[_Args], _Apply]]] = {
    "NodeResourcesFit": (FitArgs, _fit),
    "NodeResourcesBalancedAllocation": (BalancedArgs, _balanced),
    "InterPodAffinity": (InterPodAffinityArgs, _affinity),
    "NodeAffinity": (NodeAffinityArgs, _node_affinity),
    "PodTopologySpread": (SpreadArgs, _spread),
    "DefaultPreemption": (PreemptionArgs, _preemption),
    "VolumeBinding": (VolumeArgs, _volumes),
}
"""For each plugin that has arguments: the type of the arguments, and the function that checks and applies them."""
