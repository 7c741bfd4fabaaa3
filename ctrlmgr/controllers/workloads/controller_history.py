"""The ControllerRevisions of one owner: finds, adopts, creates, renumbers and deletes them through the API.

Guarantees, Kubernetes' (`pkg/controller/history/controller_history.go` and the two controllers that use it):
- The newest revision holds the owner's current template. It is the existing newest one, or an older equal one with a
  new number, or a new one.
- Beyond the limit the oldest revisions are deleted, but never a live one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.workloads.controlled_pods import owned_or_orphaned
from ctrlmgr.controllers.workloads.controller_ref_manager import Claimer, Owner
from ctrlmgr.controllers.workloads.controller_revisions import (
    NewRevision,
    data_of,
    equal_to,
    existing,
    in_order,
    number_of,
    set_number,
)
from ctrlmgr.errors import AlreadyExists, NotFound
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Lister


class Newest(NamedTuple):
    """The revision with the owner's current template, and the number of name collisions so far."""

    revision: Object
    collisions: int


class History:
    """Manages revisions; `index_by_controller` must index them."""

    def __init__(self, revisions: Lister, event_log: EventLog) -> None:
        """Read `revisions`; `event_log` is read for the object that already has a name."""
        self._revisions = revisions
        self._log = event_log
        self._claimer = Claimer(event_log)

    def of(self, owner: Owner, selects: Callable[[Object], bool], client: EngineClient) -> list[Object]:
        """Return the revisions of an owner that it selects, after adopting orphans; oldest first."""
        found = [each for each in owned_or_orphaned(self._revisions, owner.object) if selects(each)]
        return in_order(self._claimer.claim(owner, found, selects, client))

    def create(
        self, wanted: NewRevision, hash_of: Callable[[int], str], collisions: int, client: EngineClient
    ) -> Newest:
        """Create a revision under a free name, or return an equal one; `hash_of` returns its hash by collisions."""
        while True:
            named = wanted.named(hash_of(collisions))
            try:
                return Newest(client.create(named), collisions)
            except AlreadyExists as error:
                found = existing(self._log, named, error)
                if data_of(found) == wanted.data:
                    return Newest(found, collisions)
                collisions += 1

    def delete_beyond(
        self, limit: int, revisions: Sequence[Object], live: Container[str], client: EngineClient
    ) -> None:
        """Delete the oldest of the ordered revisions that are not live by name, except `limit` of them."""
        for each in beyond(limit, revisions, live):
            try:
                client.delete(each)
            except NotFound:
                continue


def beyond(limit: int, revisions: Sequence[Object], live: Container[str]) -> Sequence[Object]:
    """Return the ordered revisions beyond the limit; a negative limit means no limit."""
    old = [each for each in revisions if each.name not in live]
    return old[: max(len(old) - limit, 0)] if limit >= 0 else ()


def found_or_raised(revisions: Sequence[Object], data: Mapping[str, Any], client: EngineClient) -> Object | None:
    """Return the newest revision with `data`, renumbered to be the newest of all if it is not; None without one."""
    same = [each for each in revisions if data_of(each) == data]
    if not same:
        return None
    newest = revisions[-1]
    if equal_to(newest, same[-1:]):
        return newest
    return set_number(same[-1], number_of(newest) + 1, client)


def next_number(revisions: Sequence[Object]) -> int:
    """Return the number of the next revision after these, which are ordered."""
    return number_of(revisions[-1]) + 1 if revisions else 1


def template_in(revision: Object) -> dict[str, Any]:
    """Return the template in a revision."""
    template = ((data_of(revision) or {}).get("spec") or {}).get("template") or {}
    return {key: value for key, value in template.items() if key != "$patch"}
