"""Records a span of each reconcile, which continues the trace of the changes that triggered the reconcile.

Guarantees:
- The parent of a reconcile's span is the append of its newest traced trigger; the span links to the appends of its
  other traced triggers. The event log contains these trace contexts, so the append may be that of another process.
- A reconcile that has asked for a requeue within `_CONTINUED` seconds is the parent of the requeued reconcile, unless
  that one has traced triggers. A later reconcile is periodic work, and starts a new trace.
- A log that cannot be read loses the parent of the span, and does not fail the reconcile.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from ctrlmgr.api.resource import Key
from ctrlmgr.errors import LogError
from ctrlmgr.eventlog import EventLog
from ctrlmgr.tracing import spans
from ctrlmgr.workqueue import Delivery

_CONTINUED: Final = 5.0
"""The maximum number of seconds of a requeue that continues a trace."""
_TRIGGERS: Final = 100
"""The maximum number of triggers whose trace contexts are read; the newest triggers are read."""


class ReconcileSpans:
    """The spans of one controller's reconciles."""

    def __init__(self, controller: str, log: EventLog) -> None:
        """Create the spans of a controller; `log` contains the trace contexts of triggers."""
        self._name = f"reconcile {controller}"
        self._log = log
        # The trace contexts of reconciles that asked for a requeue. Only one worker uses a key at a time.
        self._requeued: dict[Key, str] = {}

    def of(self, delivery: Delivery[Key]) -> AbstractContextManager[object]:
        """Return the span of a reconcile; the span is current while its context is open."""
        if not spans.is_on():
            return spans.span(self._name)
        earlier = self._requeued.pop(delivery.item, "")
        contexts = self._contexts(delivery) or ([earlier] if earlier else [""])
        parent = contexts[-1]
        links = [each for each in dict.fromkeys(contexts) if each != parent]
        key = str(delivery.item)
        return spans.span(self._name, parent=parent, links=links, key=key, attempt=delivery.attempt)

    def requeued(self, key: Key, seconds: float) -> None:
        """Remember the current span as the parent of the key's next reconcile, which starts in `seconds`."""
        if seconds <= _CONTINUED and (context := spans.sampled()):
            self._requeued[key] = context

    def _contexts(self, delivery: Delivery[Key]) -> list[str]:
        """Return the trace contexts of the triggers, oldest first."""
        if not delivery.triggers:
            return []
        try:
            return [*self._log.traces(delivery.triggers[-_TRIGGERS:]).values()]
        except LogError:
            return []
