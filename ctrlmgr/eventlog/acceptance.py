"""Whether a proposal may become an event: the one rule of optimistic concurrency, as pure functions.

The memory and SQLite logs call them under their lock; PostgreSQL's append function says the same in SQL, and the
contract suite holds all three to the same answers.
"""

from __future__ import annotations

from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Revision
from ctrlmgr.errors import AlreadyExists, ApiError, Conflict, Fenced, NotFound
from ctrlmgr.eventlog.event import EventType, Fence, Proposal


class Slot(NamedTuple):
    """What the log knows at a resource, namespace and name: its newest event, and whether the object exists."""

    head: Revision
    exists: bool


EMPTY = Slot(0, False)


def refusal(proposal: Proposal, slot: Slot) -> ApiError | None:
    """Return why `proposal` cannot follow what is at `slot`, in Kubernetes' words; None if it can."""
    if proposal.type is EventType.ADDED:
        return already_exists(proposal.object) if slot.exists else None
    if not slot.exists:
        return not_found(proposal.object)
    if proposal.expected is not None and proposal.expected != slot.head:
        return conflict(proposal.object, proposal.expected, slot.head)
    return None


def namespace_refusal(proposal: Proposal, slot: Slot) -> ApiError | None:
    """Return why `proposal` cannot be made within what is at its Namespace's `slot`; None if it can."""
    if proposal.within is None or (slot.exists and proposal.within == slot.head):
        return None
    what = f'{NAMESPACES} "{proposal.object.namespace}"'
    return modified(what, proposal.within, slot.head) if slot.exists else NotFound(f"{what} not found")


def already_exists(obj: Object) -> AlreadyExists:
    """Return the refusal of a creation where something exists."""
    return AlreadyExists(f'{obj.resource} "{obj.name}" already exists')


def not_found(obj: Object) -> NotFound:
    """Return the refusal of a change to what does not exist."""
    return NotFound(f'{obj.resource} "{obj.name}" not found')


def conflict(obj: Object, expected: Revision, actual: Revision) -> Conflict:
    """Return the refusal of a change made on top of another revision than the current one."""
    return modified(f'{obj.resource} "{obj.name}"', expected, actual)


def modified(what: str, expected: Revision, actual: Revision) -> Conflict:
    """Return the refusal of what rests on another revision of an object than the current one."""
    return Conflict(
        f"Operation cannot be fulfilled on {what}: the object has been modified; "
        "please apply your changes to the latest version and try again",
        expected=expected,
        actual=actual,
    )


def fence_refusal(fence: Fence | None, current_term: int) -> Fenced | None:
    """Return why an append under `fence` is refused while its lease is in `current_term`; None if it is not."""
    if fence is None:
        return None
    if fence.takeover:
        if fence.term > current_term:
            return None
        message = f"lease {fence.lease} is in term {current_term} already, so term {fence.term} cannot start"
        return Fenced(message, current=current_term)
    if fence.term == current_term:
        return None
    message = f"term {fence.term} of lease {fence.lease} is over: the current one is {current_term}"
    return Fenced(message, current=current_term)
