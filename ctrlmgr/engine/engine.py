"""The engine: all verbs that read and write objects, based on the state of one cacher."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from ctrlmgr.api.resource import DEFINITIONS, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.engine.admission_attributes import NO_ADMISSION, Admission
from ctrlmgr.engine.aggregated_groups import API_SERVICES
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Listing, Operation, Target
from ctrlmgr.engine.request_options import (
    Body,
    DeleteOptions,
    ListOptions,
    Requester,
    WriteOptions,
)
from ctrlmgr.engine.subresources import SUBRESOURCES, Handler
from ctrlmgr.engine.verbs import read_verbs
from ctrlmgr.engine.verbs.delete_collection import delete_objects
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.engine.watch_cache.log_history import History
from ctrlmgr.engine.watch_cache.watch import Selection, Start
from ctrlmgr.engine.write_engine import WriteEngine
from ctrlmgr.eventlog.log import EventLog


class Engine(WriteEngine):
    """All verbs that read and write objects, based on the state of a cacher.

    Only the thread that owns the cacher may call the methods of an engine.
    """

    def __init__(
        self,
        kinds: Kinds,
        cacher: Cacher,
        log: EventLog,
        *,
        clock: Clock,
        random: Random,
        admission: Admission = NO_ADMISSION,
        subresources: Mapping[str, Handler] = SUBRESOURCES,
    ) -> None:
        """Create an engine for `kinds` that reads objects from `cacher`; the engine's commands read `log`.

        The class `WriteEngine` describes the other arguments.
        """
        super().__init__(kinds, cacher, clock=clock, random=random, admission=admission, subresources=subresources)
        self.cacher = cacher
        self._log = log
        cacher.follow(DEFINITIONS, lambda: kinds.refresh(cacher.list(DEFINITIONS)))
        cacher.follow(API_SERVICES, lambda: kinds.announce(cacher.list(API_SERVICES)))

    def list(self, kind: Kind, namespace: str | None, options: ListOptions) -> Operation[Listing]:
        """Return the objects of one namespace, in etcd's order, or one page of them.

        A namespace of None means all namespaces.
        """
        return read_verbs.list_objects(self.cacher, self._log, kind, namespace, options, self._random)

    def watch(self, kind: Kind, namespace: str | None, options: ListOptions) -> Operation[Start]:
        """Return the start of a watch; `Cacher.changes_after` and `history` return the changes after this start."""
        return read_verbs.start_watch(self.cacher, self._log, kind, namespace, options, self._random)

    def history(self, selection: Selection, revision: Revision, limit: int) -> Operation[History]:
        """Return changes that the cacher no longer holds; raises `Expired` if the log was compacted beyond them."""
        return read_verbs.history(self._log, selection, revision, limit)

    def delete_collection(
        self,
        kind: Kind,
        namespace: str | None,
        list_options: ListOptions,
        body: Body | None,
        options: DeleteOptions,
        requester: Requester,
    ) -> Operation[Listing]:
        """Delete all objects that a list returns, and return the list.

        The deletion of a collection is not atomic: the first error ends the operation.
        """
        options = self.options_of(body, options)
        listing = yield from self.list(kind, namespace, list_options)
        write = WriteOptions(dry_run=bool(options.dry_run))
        yield from delete_objects(
            [self.request(Target(kind, *obj.key), write, requester) for obj in listing.objects], options
        )
        return listing
