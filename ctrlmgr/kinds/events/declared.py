"""The declarations of the kinds of `events.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.core import printers
from ctrlmgr.kinds.core.core_event import StrictEventStrategy
from ctrlmgr.kinds.events.event_conversion import from_core, to_core
from ctrlmgr.kinds.kind_declaration import Declaration, StoredAs

KINDS = (
    Declaration(
        "events.k8s.io/v1",
        "Event",
        strategy=StrictEventStrategy(),
        printer=printers.NEW_EVENT,
        stored_as=StoredAs("v1", "Event", to_core, from_core),
    ),
)
