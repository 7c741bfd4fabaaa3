"""The ControllerRevisions of one owner: finds, adopts, creates, renumbers and deletes revisions through the API.

Guarantees, as in Kubernetes (`pkg/controller/history/controller_history.go` and the controllers of DaemonSets and
StatefulSets):
- The newest revision contains the owner's current template. If the newest existing revision does not contain the
  template, an older equal revision is renumbered, or a new revision is created.
- If there are more revisions than the limit, the oldest revisions are deleted. Live revisions, which existing pods use,
  are never deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.workloads.controlled_pods import owned_or_orphaned
from ctrlmgr.controllers.workloads.controller_ref_manager import ControllerRefManager, Owner
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


class NewestRevision(NamedTuple):
    """The revision with the owner's current template, and the number of name collisions so far."""

    revision: Object
    collisions: int


class History:
    """Manages the revisions of one owner; the informer of revisions needs the index that `index_by_controller` adds."""

    def __init__(self, revisions: Lister, event_log: EventLog) -> None:
        """Create an instance that reads revisions from `revisions`.

        If an object with the name of a new revision already exists, the instance reads that object from `event_log`.
        """
        self._revisions = revisions
        self._log = event_log
        self._claimer = ControllerRefManager(event_log)

    def of(self, owner: Owner, selects: Callable[[Object], bool], client: EngineClient) -> list[Object]:
        """Adopt orphans, and return the revisions that an owner selects, the oldest first."""
        found = [each for each in owned_or_orphaned(self._revisions, owner.object) if selects(each)]
        return in_order(self._claimer.claim(owner, found, selects, client))

    def create(
        self, desired: NewRevision, hash_of: Callable[[int], str], collisions: int, client: EngineClient
    ) -> NewestRevision:
        """Create a revision with a free name, or return an existing equal revision.

        The function `hash_of` takes a number of collisions, and returns the hash.
        """
        while True:
            named = desired.named(hash_of(collisions))
            try:
                return NewestRevision(client.create(named), collisions)
            except AlreadyExists as error:
                found = existing(self._log, named, error)
                if data_of(found) == desired.data:
                    return NewestRevision(found, collisions)
                collisions += 1

    def delete_beyond(
        self, limit: int, revisions: Sequence[Object], live: Container[str], client: EngineClient
    ) -> None:
        """Delete the oldest revisions in the ordered list that are not live; `limit` of them are kept.

        The argument `live` contains the names of live revisions.
        """
        for each in beyond(limit, revisions, live):
            try:
                client.delete(each)
            except NotFound:
                continue


def beyond(limit: int, revisions: Sequence[Object], live: Container[str]) -> Sequence[Object]:
    """Return the oldest revisions of the ordered list that exceed the limit; a negative limit means no limit."""
    old = [each for each in revisions if each.name not in live]
    return old[: max(len(old) - limit, 0)] if limit >= 0 else ()


def found_or_raised(revisions: Sequence[Object], data: Mapping[str, Any], client: EngineClient) -> Object | None:
    """Return the newest revision with `data`; None if no revision has this data.

    If another revision is newer, renumber the returned revision.
    """
    same = [each for each in revisions if data_of(each) == data]
    if not same:
        return None
    newest = revisions[-1]
    if equal_to(newest, same[-1:]):
        return newest
    return set_number(same[-1], number_of(newest) + 1, client)


def next_number(revisions: Sequence[Object]) -> int:
    """Return the number for a new revision that follows these ordered revisions."""
    return number_of(revisions[-1]) + 1 if revisions else 1


def template_in(revision: Object) -> dict[str, Any]:
    """Return the template that a revision contains."""
    template = ((data_of(revision) or {}).get("spec") or {}).get("template") or {}
    return {key: value for key, value in template.items() if key != "$patch"}
