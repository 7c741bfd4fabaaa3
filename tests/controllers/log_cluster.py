"""A log with real caches and another writer; the base class of test clusters whose controllers run step by step."""

from __future__ import annotations

import random

from ctrlmgr.admission.plugin_registry import default_chain
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Resource, Revision
from ctrlmgr.authentication.user_names import service_account_of
from ctrlmgr.client import ControllerRunner, EngineClient, InformerState
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.engine.write_engine import WriteEngine
from ctrlmgr.eventlog.event import Author, EventType, Proposal
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer import EventWindow, Informers
from ctrlmgr.testing import FakeClock
from tests.authorization.bootstrap.controllers import rights_of
from tests.controllers.stage_context import HandContext
from tests.engine.stage import builtin_kinds

WEB = Key("default", "web")


class LogCluster:
    """`put` and `delete` write to the log as a client does; `informers` have not synced yet."""

    def __init__(self, log: MemoryEventLog | None = None) -> None:
        """Start with an empty log, or with the log of another cluster whose process has ended."""
        self.clock = FakeClock()
        self.log = log or MemoryEventLog(clock=self.clock, random=random.Random(0))
        self.feed = EventWindow(self.log, clock=self.clock)
        self.informers = Informers(self.log, self.feed, clock=self.clock)
        self.informers.informer(NAMESPACES)
        self.state = InformerState(self.informers, self.log)
        self.engine = WriteEngine(
            builtin_kinds(),
            self.state,
            clock=self.clock,
            random=random.Random(self.log.head().revision),
            admission=default_chain(builtin_kinds(), self.clock),
        )

    def client(self, actor: str) -> EngineClient:
        """Return the client of the controller with this name; the client's ServiceAccount has the permissions of the
        controller's role.
        """
        run, account = ControllerRunner(self.log, self.state, self._reach), service_account_of(actor)
        rights = rights_of(account.user) if account is not None else None
        return EngineClient(self.engine, run, Requester(actor), canonical=True, rights=rights)

    def context(self, actor: str, drawn: random.Random) -> HandContext:
        """Return the parameters for creating controllers that write as `actor`."""
        client = self.client(actor)
        return HandContext(
            informers=self.informers,
            event_log=self.log,
            engine=self.engine,
            clock=self.clock,
            random=drawn,
            writer=lambda descriptor: client,
        )

    def _reach(self, revision: Revision, patience: float) -> bool:
        self.feed.catch_up()
        self.follow()
        return self.informers.revision >= revision

    def put(self, *objects: Object) -> None:
        """Create or replace objects with the writes of another client."""
        for obj in objects:
            stored = self.log.get(obj.resource, obj.key)
            kind = EventType.MODIFIED if stored else EventType.ADDED
            self.log.append([Proposal(kind, obj, stored.revision if stored else 0)], author=Author("client"))

    def delete(self, resource: Resource, key: Key) -> None:
        """Delete an object with a write of another client."""
        stored = self.log.get(resource, key)
        assert stored is not None
        self.log.append([Proposal(EventType.DELETED, stored, stored.revision)], author=Author("client"))

    def follow(self) -> None:
        """Update the caches to the newest revision of the log."""
        while self.informers.step():
            pass
