"""Limits the size of the objects that writes store in the log.

Guarantees: no write makes an object larger than `MOST_STORED` bytes, including the effects of defaults, admission,
patches and conversions. If an object is already larger, for example after an import, writes may keep the object's size
or make it smaller, and it can be deleted. Terminating objects and status writes are allowed some extra bytes, so that
an object of maximum size can still be deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.engine.strategy import State
from ctrlmgr.errors import RequestEntityTooLarge
from ctrlmgr.eventlog.event import EventType, Proposal

MOST_STORED: Final = 3 * 1024 * 1024
"""The maximum size of an object in the log, in bytes of its JSON.

The corresponding limit in Kubernetes is etcd's --max-request-bytes, 1.5 MiB. For built-in kinds, Kubernetes' limit
applies to protobuf, which contains no field names; JSON is up to twice as long. The body of a request has the same size
limit as an object.
"""
_ROOM: Final = 64 * 1024
"""The extra bytes that are allowed for a write that marks a deletion or sets a status."""


def refuse_large(state: State, proposals: Sequence[Proposal], subresource: str) -> None:
    """Raise `RequestEntityTooLarge` if a write to `subresource` stores an object that is too large."""
    for each in proposals:
        size = len(each.object.body)
        if size > MOST_STORED and each.type is not EventType.DELETED and size > _most(state, each, subresource):
            raise RequestEntityTooLarge(
                f"Request entity is too large: the object has {size} bytes as it is stored: limit is {MOST_STORED}"
            )


def _most(state: State, proposal: Proposal, subresource: str) -> int:
    """Return the maximum size of an object in bytes, given its current state."""
    obj = proposal.object
    current = None if proposal.type is EventType.ADDED else state.get(obj.resource, obj.key)
    if current is None:
        return MOST_STORED
    if obj.is_terminating and not current.is_terminating:  # this write marks the deletion, which happens only once
        return len(current.body) + _ROOM
    return max(_with_room(obj, subresource), len(current.body))


def _with_room(obj: Object, subresource: str) -> int:
    return MOST_STORED + _ROOM if obj.is_terminating or subresource == "status" else MOST_STORED
