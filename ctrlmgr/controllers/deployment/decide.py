"""Decides the sizes of a Deployment's ReplicaSets, without writing.

The functions of this module return maps from names of ReplicaSets to sizes. Source: Kubernetes'
`pkg/controller/deployment/{sync,rolling}.go` and `util/deployment_util.go`. In this module, "all" ReplicaSets are the
old ReplicaSets and the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.deployment.deployment_annotations import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    replicas_annotation,
    revision_of,
)
from ctrlmgr.controllers.deployment.view import Deployment
from ctrlmgr.controllers.workloads.controlled_pods import created_at
from ctrlmgr.controllers.workloads.replica_sets import ReplicaSet

HASH_LABEL: Final = "pod-template-hash"


def size(replica_set: Object) -> int:
    """Return the desired number of pods of a ReplicaSet."""
    return replica_set.view(ReplicaSet).replicas


def available(replica_set: Object) -> int:
    """Return the number of available pods of a ReplicaSet."""
    return replica_set.view(ReplicaSet).status.available_replicas


def by_age(replica_sets: Iterable[Object]) -> list[Object]:
    """Return ReplicaSets sorted by creation time, oldest first; ReplicaSets with equal times are sorted by name."""
    return sorted(replica_sets, key=lambda each: (created_at(each), each.name))


def scaled_up(replica_sets: Iterable[Object]) -> list[Object]:
    """Return the ReplicaSets with a desired number above 0 (`FilterActiveReplicaSets`)."""
    return [each for each in replica_sets if size(each) > 0]


def same_template(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two templates are equal except for the hash label."""
    return without_hash(one) == without_hash(other)


def without_hash(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return a template without the hash label, and without empty metadata."""
    metadata = dict(template.get("metadata") or {})
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    kept = {key: value for key, value in {**metadata, "labels": labels}.items() if value not in (None, {}, [])}
    return {"metadata": kept, "spec": template.get("spec") or {}}


def find_new(view: Deployment, replica_sets: Iterable[Object]) -> Object | None:
    """Return the ReplicaSet with the Deployment's template.

    If several ReplicaSets have the template, return the oldest.
    """
    matching = (each for each in by_age(replica_sets) if same_template(each.view(ReplicaSet).template, view.template))
    return next(matching, None)


def is_scaling(view: Deployment, replica_sets: Iterable[Object]) -> bool:
    """Return whether the Deployment has been scaled since its ReplicaSets were scaled (`isScalingEvent`)."""
    sizes = (replicas_annotation(each, DESIRED_REPLICAS) for each in scaled_up(replica_sets))
    return any(each is not None and each != view.replicas for each in sizes)


def size_of_new(view: Deployment, others: int, current: int) -> int:
    """Return the size that the new ReplicaSet must get (`NewRSNewReplicas`).

    The new ReplicaSet currently has the size `current`, and the other ReplicaSets have `others` pods in total.
    """
    if not view.is_rolling:
        return view.replicas
    room = view.replicas + view.surge_alone - others - current
    if room <= 0:
        return current
    return current + min(room, view.replicas - current)


class Sizes(NamedTuple):
    """The new sizes of ReplicaSets, by the ReplicaSets' names."""

    sizes: Mapping[str, int]
    shared: bool = False
    """Whether the new sizes result from proportional scaling. Proportional scaling updates the annotations of all
    ReplicaSets, even of ReplicaSets whose size does not change.
    """


def scale(view: Deployment, new: Object | None, old: Sequence[Object]) -> Sizes:
    """Return the new sizes of the ReplicaSets of a scaled or paused Deployment (`scale`)."""
    replica_sets = [*old, *((new,) if new is not None else ())]
    up = scaled_up(replica_sets)
    if len(up) <= 1:
        only = up[0] if up else new or next(iter(reversed(by_age(old))), None)
        return Sizes({} if only is None else {only.name: view.replicas})
    if new is not None and is_saturated(view, new):
        return Sizes({each.name: 0 for each in scaled_up(old)})
    return Sizes(_proportional(view, up), shared=True) if view.is_rolling else Sizes({})


def is_saturated(view: Deployment, new: Object) -> bool:
    """Return whether the new ReplicaSet has all desired pods of the Deployment, and all of them are available."""
    desired = view.replicas
    return size(new) == desired == replicas_annotation(new, DESIRED_REPLICAS) and available(new) == desired


def _proportional(view: Deployment, replica_sets: Sequence[Object]) -> dict[str, int]:
    """Distribute a change of the Deployment's size in proportion to the sizes of ReplicaSets.

    The largest ReplicaSet gets the remainder of the change.
    """
    allowed = view.replicas + view.surge if view.replicas else 0
    to_add = allowed - sum(map(size, replica_sets))
    ordered = _larger_first(replica_sets, newer_first=to_add > 0) if to_add else by_age(replica_sets)
    sizes, added = {}, 0
    for each in ordered:
        share = _share(view, each, to_add, added)
        sizes[each.name] = size(each) + share
        added += share
    if to_add:
        first = ordered[0].name
        sizes[first] = max(sizes[first] + to_add - added, 0)
    return sizes


def _larger_first(replica_sets: Sequence[Object], *, newer_first: bool) -> list[Object]:
    ages = [*reversed(by_age(replica_sets))] if newer_first else by_age(replica_sets)
    return sorted(ages, key=lambda each: -size(each))


def _share(view: Deployment, replica_set: Object, to_add: int, added: int) -> int:
    if to_add == added:
        return 0
    fraction = _fraction(view, replica_set)
    return min(fraction, to_add - added) if to_add > 0 else max(fraction, to_add - added)


def _fraction(view: Deployment, replica_set: Object) -> int:
    """Return the change of a ReplicaSet's size, which is proportional to the Deployment's size in its annotation."""
    current = size(replica_set)
    if not view.replicas:
        return -current
    before = replicas_annotation(replica_set, MAX_REPLICAS) or view.status.replicas
    if not before:
        return 0
    return int(current * (view.replicas + view.surge) / before + 0.5) - current


def shrink_old(view: Deployment, new: Object, old: Sequence[Object]) -> dict[str, int]:
    """Return the sizes of the old ReplicaSets that can shrink now (`reconcileOldReplicaSets`).

    Unavailable pods are removed first, then pods of the oldest ReplicaSets. The old ReplicaSets shrink only as long as
    the minimum number of available pods is kept. Pods of the new ReplicaSet that are not ready yet reduce the number of
    pods that can be removed.
    """
    up = scaled_up(old)
    least = view.replicas - view.unavailable
    room = sum(map(size, (*up, new))) - least - (size(new) - available(new))
    if not up or room <= 0:
        return {}
    sizes: dict[str, int] = {}
    for each in by_age(up):
        unavailable = size(each) - available(each)
        if unavailable < 0:  # The ReplicaSet's status is outdated, so its number of available pods is unreliable.
            return sizes
        if taken := min(room, unavailable):
            sizes[each.name] = size(each) - taken
            room -= taken
    return _without_spare(up, sizes, sum(map(available, (*up, new))) - least)


def _without_spare(old: Sequence[Object], sizes: Mapping[str, int], spare: int) -> dict[str, int]:
    """Return the sizes of the ReplicaSets without `spare` available pods; the oldest ReplicaSets lose pods first."""
    left = dict(sizes)
    for each in by_age(old):
        current = left.get(each.name, size(each))
        taken = min(current, max(spare, 0))
        if taken:
            left[each.name] = current - taken
            spare -= taken
    return left


def to_clean_up(view: Deployment, old: Iterable[Object]) -> list[Object]:
    """Return the old ReplicaSets to delete: they exceed the limit and have no pods. The lowest revisions come first."""
    if view.history_limit is None:
        return []
    alive = [each for each in by_age(old) if not each.is_terminating]
    alive.sort(key=lambda each: revision_of(each) or 0)
    surplus = max(len(alive) - view.history_limit, 0)
    return [each for each in alive[:surplus] if _is_scaled_down(each)]


def _is_scaled_down(replica_set: Object) -> bool:
    status = replica_set.view(ReplicaSet).status
    is_observed = (replica_set.metadata.generation or 0) <= status.observed_generation
    return not status.replicas and not size(replica_set) and is_observed
