"""Determines the urgency of a change: the priority with which the keys of the change are queued.

The rule is that of controller-runtime (`handler.TypedFuncs`), with the additional priority URGENT for changes for whose
effect a user waits.
"""

from __future__ import annotations

from ctrlmgr.api.object import Object
from ctrlmgr.informer import Change
from ctrlmgr.workqueue import CHANGE, LOW, URGENT


def priority_of(change: Change) -> int:
    """Return the priority of `change`, by the first of the following rules that applies.

    - LOW: the object is in an initial list, or in a resync that found no difference.
    - URGENT: the object was deleted, or its deletion was requested.
    - URGENT: a request, not a reconcile, changed the object's desired state (`metadata.generation`).
    - CHANGE: any other change, including an edit of a kind without a generation.
    """
    old, new = change.old, change.new
    if change.is_listed or (old is not None and new is not None and old.revision == new.revision):
        return LOW
    if new is None or new.is_terminating:
        return URGENT
    if change.is_request and old is not None and _generation(new) > _generation(old):
        return URGENT
    return CHANGE


def _generation(obj: Object) -> int:
    return obj.metadata.generation or 0
