"""Oracles `data-deleted` and `data-overwritten`: the operator destroys data that the user did not ask to change.

Data are claims, volumes and secrets; only secrets can be overwritten.

A deletion counts as asked for if the user wrote or deleted an object to which the data belongs, or the data itself,
after the data was created. A deletion that follows an older write of the user has its reason in a stale view.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, SECRETS, Resource
from ctrlmgr.eventlog import EventType
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.oracles.kept_log import KeptLog, Step, fields_of, named
from ctrlmgr.trial.oracles.relations import belongs_to, custom_resources, owners_in

DELETED = "data-deleted"
OVERWRITTEN = "data-overwritten"

DATA: Final = frozenset((SECRETS, Resource("", "persistentvolumeclaims"), Resource("", "persistentvolumes")))


def data_deletions(log: KeptLog) -> list[Finding]:
    """Return the operator's deletions of data that no write of the user explains."""
    return [
        Finding(
            DELETED,
            f"The operator deleted {named(step.event.object)}, although the user did not ask for it:"
            f" {_explained(log, step)}.",
            named(step.event.object),
            step.event.revision,
        )
        for step in _deletions(log)
        if not _is_asked_for(log, step)
    ]


def _deletions(log: KeptLog) -> Iterator[Step]:
    """Yield the events with which the operator requested a deletion: those that mark, or that delete at once."""
    for step in log.by_operator:
        obj, before = step.event.object, step.before
        is_requested_before = before is not None and before.is_terminating
        is_requested = step.event.type == EventType.DELETED or obj.is_terminating
        if obj.resource in DATA and is_requested and not is_requested_before:
            yield step


def data_overwrites(log: KeptLog) -> list[Finding]:
    """Return the secrets whose values the operator replaced, although no write of the user explains it."""
    return [
        Finding(
            OVERWRITTEN,
            f"The operator replaced the value of {key} in {named(step.event.object)}, although the user did not ask for"
            f" it: {_explained(log, step)}.",
            named(step.event.object),
            step.event.revision,
        )
        for step, key in _overwrites(log)
        if not _is_asked_for(log, step)
    ]


def _overwrites(log: KeptLog) -> Iterator[tuple[Step, str]]:
    """Yield the first write of the operator that replaced a value, for each secret."""
    seen: set[str] = set()
    for step in log.by_operator:
        event, before = step
        if event.resource != SECRETS or before is None or before.uid != event.object.uid or before.uid in seen:
            continue
        old, new = (fields_of(each).get("data") or {} for each in (before, event.object))
        replaced = [key for key, value in old.items() if key in new and new[key] != value]
        if replaced and event.type == EventType.MODIFIED:
            seen.add(before.uid)
            yield step, replaced[0]


def _is_asked_for(log: KeptLog, deletion: Step) -> bool:
    data = deletion.event.object
    created = log.creators.get(data.uid)
    since = created.revision if created is not None else 0
    written = [
        step.event.object
        for step in log.run
        if since < step.event.revision < deletion.event.revision and log.is_user(step.event)
    ]
    owners = {each.uid for each in owners_in(log.at(deletion.event.revision - 1), data)} if written else set()
    custom = custom_resources(log)
    return any(each.uid in owners or _concerns(custom, each, data) for each in written)


def _concerns(custom: frozenset[Resource], written: Object, data: Object) -> bool:
    """Return whether `written` is the data itself, its namespace, or a custom resource to which the data belongs."""
    if written.uid == data.uid or (written.resource == NAMESPACES and written.name == data.namespace):
        return True
    return written.resource in custom and belongs_to(data, written)


def _explained(log: KeptLog, deletion: Step) -> str:
    created = log.creators.get(deletion.event.object.uid)
    if created is None or not log.is_operator(created):
        return "the operator did not create it"
    return f"the user wrote no related object since its creation at revision {created.revision}"
