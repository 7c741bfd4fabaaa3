"""Logs in memory for tests of the trial."""

from __future__ import annotations

import random
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.eventlog import Author, EventType, Proposal
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.testing import FakeClock

OPERATOR = Author("trial-operator")


class Log(MemoryEventLog):
    """A log with short functions for changes."""

    def __init__(self) -> None:
        self.time = FakeClock()
        super().__init__(clock=self.time, random=random.Random(1))

    def put(self, kind: str, name: str, namespace: str = "shop", author: Author = OPERATOR, **fields: Any) -> Object:
        """Create or replace an object; `metadata` in `fields` is added to its metadata."""
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{kind}-{name}", **fields.pop("metadata", {})}
        api_version = fields.pop("api_version", "v1")
        obj = Object.from_dict({"kind": kind, "apiVersion": api_version, "metadata": metadata, **fields})
        before = self.get(obj.resource, obj.key)
        type_ = EventType.MODIFIED if before else EventType.ADDED
        proposal = Proposal(type_, obj, before.revision if before else 0)
        return self.append([proposal], author=author)[0].object
