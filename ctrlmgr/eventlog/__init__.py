"""The event log: the store of all cluster state.

`log.EventLog` states the guarantees of the event log; `open_log` opens a log.
"""

from ctrlmgr.eventlog.event import (
    Author,
    Cause,
    Event,
    EventType,
    Failure,
    Fence,
    Head,
    Outcome,
    Proposal,
    Reconcile,
    Snapshot,
)
from ctrlmgr.eventlog.imports import Imported
from ctrlmgr.eventlog.log import Appending, EventLog
from ctrlmgr.eventlog.opening import migrate_log, open_log
from ctrlmgr.eventlog.verification import Verification, verify

__all__ = [
    "Appending",
    "Author",
    "Cause",
    "Event",
    "EventLog",
    "EventType",
    "Failure",
    "Fence",
    "Head",
    "Imported",
    "Outcome",
    "Proposal",
    "Reconcile",
    "Snapshot",
    "Verification",
    "migrate_log",
    "open_log",
    "verify",
]
