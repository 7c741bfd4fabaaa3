"""Optimistic concurrency: pure functions that decide whether the log accepts a proposal.

The memory and SQLite logs call these functions under their lock. The append function in PostgreSQL implements the same
rules in SQL. The contract suite tests that all three logs accept and refuse the same proposals.
"""

from __future__ import annotations

from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Revision
from ctrlmgr.errors import AlreadyExists, ApiError, Conflict, Fenced, NotFound
from ctrlmgr.eventlog.event import EventType, Fence, Proposal


class Slot(NamedTuple):
    """The state of one object: the revision of its newest event, and whether the object exists."""

    head: Revision
    exists: bool


EMPTY = Slot(0, False)


def refusal(proposal: Proposal, slot: Slot) -> ApiError | None:
    """Return the error that refuses `proposal`, given the current state of its object; None if it is accepted."""
    if proposal.type is EventType.ADDED:
        return already_exists(proposal.object) if slot.exists else None
    if not slot.exists:
        return not_found(proposal.object)
    if proposal.expected is not None and proposal.expected != slot.head:
        return conflict(proposal.object, proposal.expected, slot.head)
    return None


def namespace_refusal(proposal: Proposal, slot: Slot) -> ApiError | None:
    """Return the error if the proposal's Namespace is missing or not at revision `within`; otherwise None."""
    if proposal.within is None or (slot.exists and proposal.within == slot.head):
        return None
    what = f'{NAMESPACES} "{proposal.object.namespace}"'
    return modified(what, proposal.within, slot.head) if slot.exists else NotFound(f"{what} not found")


def already_exists(obj: Object) -> AlreadyExists:
    """Return the error for creating an object that exists already."""
    return AlreadyExists(f'{obj.resource} "{obj.name}" already exists')


def not_found(obj: Object) -> NotFound:
    """Return the error for changing an object that does not exist."""
    return NotFound(f'{obj.resource} "{obj.name}" not found')


def conflict(obj: Object, expected: Revision, actual: Revision) -> Conflict:
    """Return the error for a change whose expected revision is not the object's current revision."""
    return modified(f'{obj.resource} "{obj.name}"', expected, actual)


def modified(what: str, expected: Revision, actual: Revision) -> Conflict:
    """Return the conflict error for `what`, whose current revision is not the expected one."""
    return Conflict(
        f"Operation cannot be fulfilled on {what}: the object has been modified; "
        "please apply your changes to the latest version and try again",
        expected=expected,
        actual=actual,
    )


def fence_refusal(fence: Fence | None, current_term: int) -> Fenced | None:
    """Return the error for an append under `fence`, given the current term of its lease; None if the fence is valid."""
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
