"""The revisions of one owner, kept through the API: found, adopted, made, numbered, and let go of.

Guarantees, Kubernetes' (`pkg/controller/history/controller_history.go` and the two controllers that use it):
- What the owner wants now is the newest revision: the one that holds it already, or an older one that does, brought to
  the top by its number, or a new one.
- Beyond the limit the oldest go, but never one that is live.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.workloads.claims import Claimer, Owner
from ctrlmgr.controllers.workloads.pods import owned_or_orphaned
from ctrlmgr.controllers.workloads.revisions import (
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
    """The revision that holds what the owner wants, and how many names were taken so far."""

    revision: Object
    collisions: int


class History:
    """Keeps revisions; `index_by_controller` must index them."""

    def __init__(self, revisions: Lister, event_log: EventLog) -> None:
        """Find them in `revisions`; `event_log` says who has a name that is wanted."""
        self._revisions = revisions
        self._log = event_log
        self._claimer = Claimer(event_log)

    def of(self, owner: Owner, selects: Callable[[Object], bool], client: EngineClient) -> list[Object]:
        """Return the revisions of an owner that it selects, orphans among them being adopted; the oldest first."""
        found = [each for each in owned_or_orphaned(self._revisions, owner.object) if selects(each)]
        return in_order(self._claimer.claim(owner, found, selects, client))

    def create(
        self, wanted: NewRevision, hash_of: Callable[[int], str], collisions: int, client: EngineClient
    ) -> Newest:
        """Create a revision under a name that is free, or find that it is there; `hash_of` hashes it by collisions."""
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
        """Delete the oldest of the revisions, given in order, that are not live by name, but for `limit` of them."""
        for each in beyond(limit, revisions, live):
            try:
                client.delete(each)
            except NotFound:
                continue


def beyond(limit: int, revisions: Sequence[Object], live: Container[str]) -> Sequence[Object]:
    """Return the revisions, given in order, that are too many; a negative limit is none."""
    old = [each for each in revisions if each.name not in live]
    return old[: max(len(old) - limit, 0)] if limit >= 0 else ()


def found_or_raised(revisions: Sequence[Object], data: Mapping[str, Any], client: EngineClient) -> Object | None:
    """Return the newest revision that holds `data`, brought to the top unless it is equal to what is there; or None."""
    same = [each for each in revisions if data_of(each) == data]
    if not same:
        return None
    newest = revisions[-1]
    if equal_to(newest, same[-1:]):
        return newest
    return set_number(same[-1], number_of(newest) + 1, client)


def next_number(revisions: Sequence[Object]) -> int:
    """Return the number of the revision after these, which are in order."""
    return number_of(revisions[-1]) + 1 if revisions else 1


def template_in(revision: Object) -> dict[str, Any]:
    """Return the template that a revision gives its owner."""
    template = ((data_of(revision) or {}).get("spec") or {}).get("template") or {}
    return {key: value for key, value in template.items() if key != "$patch"}
