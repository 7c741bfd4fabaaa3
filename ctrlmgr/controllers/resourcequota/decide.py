"""Computes a quota's status from the objects of its namespace.

Guarantees: all functions are pure. If a resource has no evaluator, the quota's status does not contain the usage of the
resource.

Source: apiserver's `pkg/quota/v1/resources.go` (`CalculateUsage`) and Kubernetes'
`pkg/controller/resourcequota/resource_quota_controller.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.admission.quota.charging import Quota
from ctrlmgr.admission.quota.evaluator import Evaluator
from ctrlmgr.admission.quota.quota_amounts import added, are_equal, masked
from ctrlmgr.api.object import Object


class Status(NamedTuple):
    """The desired status of a quota."""

    hard: Mapping[str, str]
    used: Mapping[str, str]


def counted(
    quota: Quota, evaluators: Iterable[Evaluator], objects: Callable[[Evaluator], Sequence[Object]], now: str
) -> Status:
    """Return the amounts that the `objects` in a quota's namespace use; `now` is the current time (RFC 3339)."""
    names: set[str] = set()
    used: dict[str, str] = {}
    for evaluator in evaluators:
        ours = evaluator.names(quota.wanted)
        if not ours:
            continue
        names.update(ours)
        used = added(used, dict.fromkeys(ours, "0"))
        for obj in objects(evaluator):
            fields = obj.to_dict()
            if quota.has_in_scope(evaluator, fields):
                used = added(used, masked(evaluator.usage(fields, now), ours))
    return Status(quota.wanted, used)


def differs(quota: Quota, status: Status) -> bool:
    """Return whether a quota's status differs from the desired status; different formats of one amount are equal."""
    return not quota.is_counted or not (are_equal(quota.hard, status.hard) and are_equal(quota.used, status.used))


def changes_use(
    quotas: Iterable[Quota], evaluator: Evaluator, old: Object, new: Object | None, now: str
) -> list[Quota]:
    """Return the quotas that an object's change affects; if the new state is None, the object was deleted."""
    concerned = [quota for quota in quotas if evaluator.names(quota.hard)]
    if not concerned or new is None:
        return concerned
    before, after = old.to_dict(), new.to_dict()
    if not are_equal(evaluator.usage(before, now), evaluator.usage(after, now)):
        return concerned
    return [
        quota
        for quota in concerned
        if quota.requirements and quota.has_in_scope(evaluator, before) != quota.has_in_scope(evaluator, after)
    ]
