"""How large an object may be: the bound of what one write adds to the log.

Guarantees: no write makes an object larger than `MOST_STORED` bytes, whatever defaults, admission, patches or a
conversion have made of it. What is larger already, as an import may leave it, can be made smaller, be written as large
as it is, and be deleted. Terminating objects and writes of a status have some bytes more, so that an object that is as
large as it may be can be finished.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.engine.strategy import State
from ctrlmgr.errors import RequestEntityTooLarge
from ctrlmgr.eventlog.event import EventType, Proposal

MOST_STORED: Final = 3 * 1024 * 1024
"""Bytes of an object in the log, which are its JSON.

Kubernetes has etcd's --max-request-bytes, 1.5 MiB. That is protobuf for its own kinds, in which keys have no names:
their JSON is up to twice as long. It is also the most that a request may send.
"""
_ROOM: Final = 64 * 1024
"""Bytes beyond that for who ends an object, or writes its status."""


def refuse_large(state: State, proposals: Sequence[Proposal], subresource: str) -> None:
    """Raise `RequestEntityTooLarge` if a write to `subresource` stores an object that is larger than it may be."""
    for each in proposals:
        size = len(each.object.body)
        if size > MOST_STORED and each.type is not EventType.DELETED and size > _most(state, each, subresource):
            raise RequestEntityTooLarge(
                f"Request entity is too large: the object has {size} bytes as it is stored: limit is {MOST_STORED}"
            )


def _most(state: State, proposal: Proposal, subresource: str) -> int:
    """Return how many bytes an object may have, given what is there now."""
    obj = proposal.object
    current = None if proposal.type is EventType.ADDED else state.get(obj.resource, obj.key)
    if current is None:
        return MOST_STORED
    if obj.is_terminating and not current.is_terminating:  # its deletion is marked, which happens once
        return len(current.body) + _ROOM
    return max(_with_room(obj, subresource), len(current.body))


def _with_room(obj: Object, subresource: str) -> int:
    return MOST_STORED + _ROOM if obj.is_terminating or subresource == "status" else MOST_STORED
