"""Oracles `leaked-object` and `deletion-never-ends`: what remains after a custom resource was deleted.

An object is leaked if the operator created it for a custom resource, and if it still exists after the resource is gone.
Objects with another existing owner are not leaked. A deletion never ends if the object still has finalizers when
the run has become quiet.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.eventlog import Event, EventType
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.oracles.kept_log import KeptLog, named
from ctrlmgr.trial.oracles.relations import belongs_to, custom_resources, owners_in

LEAKED = "leaked-object"
ENDLESS_DELETION = "deletion-never-ends"


def leaked_objects(log: KeptLog) -> list[Finding]:
    """Return the objects that the operator created for custom resources that are gone."""
    if not log.record.became_quiet:
        return []
    custom = custom_resources(log)
    gone = [*_gone(log, custom)]
    living = [each for each in log.end.values() if each.resource in custom]
    return [each for obj in log.end.values() for each in _leak(log, obj, gone, living)]


def _gone(log: KeptLog, custom: frozenset[Resource]) -> Iterator[Event]:
    """Yield the last deletion of each custom resource that does not exist at the end of the run."""
    last = {step.place: step.event for step in log.run if step.event.type == EventType.DELETED}
    for place, event in last.items():
        if place.resource in custom and place not in log.end:
            yield event


def _leak(log: KeptLog, obj: Object, gone: list[Event], living: list[Object]) -> Iterator[Finding]:
    created = log.creators.get(obj.uid)
    if created is None or not log.is_operator(created) or created.revision <= log.record.started_at:
        return
    if next(owners_in(log.end, obj), None) is not None or any(belongs_to(obj, each) for each in living):
        return
    for event in gone:
        owner = event.object
        if owner.uid != obj.uid and _lived_at(log, owner, created.revision) and belongs_to(obj, owner):
            message = (
                f"The operator created {named(obj)} for {named(owner)}, and left it when {owner.name} was deleted."
            )
            yield Finding(LEAKED, message, named(obj), event.revision)
            return


def _lived_at(log: KeptLog, owner: Object, revision: int) -> bool:
    """Return whether an object with the name of the deleted owner existed before a revision."""
    return any(
        each.revision < revision for each in log.events if each.resource == owner.resource and each.key == owner.key
    )


def endless_deletions(log: KeptLog) -> list[Finding]:
    """Return the objects whose deletion was requested, and whose finalizers remain at the end of a quiet run."""
    if not log.record.became_quiet:
        return []
    return [
        Finding(
            ENDLESS_DELETION,
            f"The deletion of {named(obj)} never ends: the finalizer {obj.metadata.finalizers[0]} is not removed.",
            named(obj),
            _requested_at(log, obj),
        )
        for obj in log.end.values()
        if obj.is_terminating and obj.metadata.finalizers
    ]


def _requested_at(log: KeptLog, obj: Object) -> int:
    requests = [each.revision for each in log.events if each.object.uid == obj.uid and each.object.is_terminating]
    return requests[0]
