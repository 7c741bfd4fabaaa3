"""Counting: what a quota's status should say, from the objects of its namespace.

Guarantees: pure. What is not counted by any evaluator that is known now keeps no number: nothing is known of it.

Rules come from apiserver's `pkg/quota/v1/resources.go` (`CalculateUsage`) and Kubernetes'
`pkg/controller/resourcequota/resource_quota_controller.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.admission.quota.amounts import added, are_equal, masked
from ctrlmgr.admission.quota.charging import Quota
from ctrlmgr.admission.quota.evaluator import Evaluator
from ctrlmgr.api.object import Object


class Status(NamedTuple):
    """What a quota's status should say."""

    hard: Mapping[str, str]
    used: Mapping[str, str]


def counted(
    quota: Quota, evaluators: Iterable[Evaluator], objects: Callable[[Evaluator], Sequence[Object]], now: str
) -> Status:
    """Count what `objects` of a quota's namespace use; `now` is RFC 3339."""
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
    """Whether a quota's status says anything else; the amounts count, not how they are written."""
    return not quota.is_counted or not (are_equal(quota.hard, status.hard) and are_equal(quota.used, status.used))


def changes_use(
    quotas: Iterable[Quota], evaluator: Evaluator, old: Object, new: Object | None, now: str
) -> list[Quota]:
    """Return the quotas for which it matters that an object has changed, or (None) has gone."""
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
