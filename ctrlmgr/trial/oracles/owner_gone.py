"""Oracle `owner-gone`: objects whose owner does not exist.

An owner reference is wrong if its uid never existed in the run, or if the owner is in another namespace: Kubernetes'
garbage collector deletes such objects. At the end of the run, no object may remain whose owners are all gone.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctrlmgr.api.object import Object
from ctrlmgr.eventlog import EventType
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.oracles.kept_log import KeptLog, named, written_by

ORACLE = "owner-gone"


def owner_gone(log: KeptLog) -> list[Finding]:
    """Return the objects that the operator created with a wrong owner, and the objects that outlived their owners."""
    wrong = [*_wrong_owners(log)]
    reported = {each.object for each in wrong}
    return [*wrong, *(each for each in _outlived(log) if each.object not in reported)]


def _wrong_owners(log: KeptLog) -> Iterator[Finding]:
    for _, steps in written_by(log.by_operator):
        for step in steps:
            obj = step.event.object
            problem = "" if step.event.type == EventType.DELETED else _problem(log, obj)
            if problem:
                message = f"The operator wrote {named(obj)} with {problem}; the garbage collector deletes the object."
                yield Finding(ORACLE, message, named(obj), step.event.revision)
                break


def _problem(log: KeptLog, obj: Object) -> str:
    for reference in obj.metadata.owner_references or ():
        created = log.creators.get(reference.uid)
        shown = f"the owner {reference.kind} {reference.name}"
        if created is None:
            return f"{shown}, whose uid never existed"
        owner = created.object
        if owner.namespace and owner.namespace != obj.namespace:
            return f"{shown} in another namespace, {owner.namespace}"
    return ""


def _outlived(log: KeptLog) -> Iterator[Finding]:
    if not log.record.became_quiet:
        return
    living = {each.uid for each in log.end.values()}
    for obj in log.end.values():
        owners = obj.metadata.owner_references or ()
        is_new = log.creators[obj.uid].revision > log.record.started_at if obj.uid in log.creators else False
        if is_new and owners and not any(each.uid in living for each in owners):
            shown = f"{owners[0].kind} {owners[0].name}"
            message = f"{named(obj)} still exists at the end of the run, although its owner {shown} is gone."
            yield Finding(ORACLE, message, named(obj), log.record.ended_at)
