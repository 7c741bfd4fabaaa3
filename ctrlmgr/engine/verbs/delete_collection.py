"""Deletes the objects of a collection: the verb deletecollection (apiserver `registry/generic/registry/store.go`)."""

from __future__ import annotations

from ctrlmgr.engine.operations import Append, Operation
from ctrlmgr.engine.request_options import DeleteOptions
from ctrlmgr.engine.verbs.delete import decide_delete
from ctrlmgr.engine.writes.attempts import RETRIES, Decision, decide_and_append
from ctrlmgr.engine.writes.write_context import Request
from ctrlmgr.errors import AlreadyExists, Conflict, NotFound

_DELETED_TOGETHER = 100
"""The maximum number of objects of a collection that one append deletes."""


def delete_objects(requests: list[Request], options: DeleteOptions) -> Operation[None]:
    """Delete the objects of `requests`, several in one append. The first error ends the operation."""
    for request in requests:
        request.is_of_collection = True
    for start in range(0, len(requests), _DELETED_TOGETHER):
        yield from _delete_all(requests[start : start + _DELETED_TOGETHER], options)


def _delete_all(requests: list[Request], options: DeleteOptions) -> Operation[None]:
    """Delete objects in one append, or one by one if the log refuses the append; skip objects that do not exist."""
    decisions: list[Decision] = []
    for request in requests:
        try:
            decisions.append((yield from decide_delete(request, options)))
        except NotFound:
            continue
    proposals = [proposal for decision in decisions for proposal in decision.proposals]
    if not proposals:
        return
    try:
        yield Append(proposals, requests[0].requester.author)
    except (AlreadyExists, Conflict, NotFound):
        for request in requests:
            yield from _delete_one(request, options)


def _delete_one(request: Request, options: DeleteOptions) -> Operation[None]:
    try:
        yield from decide_and_append(request, lambda: decide_delete(request, options), limit=RETRIES)
    except NotFound:
        return
