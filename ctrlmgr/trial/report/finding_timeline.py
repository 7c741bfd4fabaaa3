"""The part of a run's log that explains a finding."""

from __future__ import annotations

from collections import deque
from typing import Final

from ctrlmgr.eventlog import EventLog
from ctrlmgr.eventlog.event import Event
from ctrlmgr.trial.running.quiescence import matters
from ctrlmgr.trial.trial_runner import Reported

_MOST_EVENTS: Final = 12


def timeline(reported: Reported, log: EventLog) -> list[Event]:
    """Return the last events before a finding: all writes of the operator, and all changes of the finding's object."""
    until = reported.finding.revision or reported.record.ended_at
    key = reported.finding.object.rpartition(" ")[2]
    found: deque[Event] = deque(maxlen=_MOST_EVENTS)
    for event in log.scan(start=reported.record.started_at + 1):
        if event.revision > until:
            break
        is_operator = event.actor == reported.record.user
        if matters(event) and (is_operator or (key and str(event.key) == key)):
            found.append(event)
    return [*found]
