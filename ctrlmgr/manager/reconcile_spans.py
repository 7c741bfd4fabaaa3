"""Records a span of each reconcile, which continues the trace of the changes that triggered the reconcile.

Guarantees:
- The parent of a reconcile's span is the append of its newest traced trigger; the span links to the appends of its
  other traced triggers. The event log contains these trace contexts, so the append can be one of another process.
- If a reconcile asks for a requeue within `_CONTINUED` seconds, its span is the parent of the requeued reconcile's
  span, unless the requeued reconcile has traced triggers. A reconcile that is requeued later is periodic work, and
  starts a new trace.
- If the log cannot be read, the span has no parent, and the reconcile does not fail.
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
"""The maximum delay of a requeue, in seconds, for which the requeued reconcile continues the trace."""
_TRIGGERS: Final = 100
"""The maximum number of triggers whose trace contexts are read from the log; older triggers are ignored."""


class ReconcileSpans:
    """The spans of one controller's reconciles."""

    def __init__(self, controller: str, log: EventLog) -> None:
        """Create the spans of a controller; `log` contains the trace contexts of triggers."""
        self._name = f"reconcile {controller}"
        self._log = log
        # By key, the trace context of a reconcile that asked for a requeue. Only one worker uses a key at a time.
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
        """Record the current span as the parent of the key's next reconcile, which starts in `seconds` seconds."""
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
