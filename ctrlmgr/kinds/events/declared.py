"""The declarations of the kinds of `events.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.core import printers
from ctrlmgr.kinds.core.event import StrictEventStrategy
from ctrlmgr.kinds.declaration import Declaration, StoredAs
from ctrlmgr.kinds.events.versions import from_core, to_core

KINDS = (
    Declaration(
        "events.k8s.io/v1",
        "Event",
        strategy=StrictEventStrategy(),
        printer=printers.NEW_EVENT,
        stored_as=StoredAs("v1", "Event", to_core, from_core),
    ),
)
