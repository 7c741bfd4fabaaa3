"""Handlers that raised: they are told of nothing any more, and the process goes on without them.

Guarantees: what took a handler out is logged with its traceback, counted, and stays known until the process ends, for
nothing brings a handler back that has missed a change. What says that the log itself cannot be trusted or reached is no
handler's failure, and is not kept here.
"""

from __future__ import annotations

import threading

import structlog
from prometheus_client import Gauge

from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.errors import Expired, Fenced, LogClosed, LogCorrupt, LogRolledBack, LogUnavailable, SchemaOutdated

log = structlog.get_logger(__name__)

_QUARANTINED = Gauge(
    "informer_quarantined_handlers", "Handlers that raised and hear of nothing any more", ["resource", "handler"]
)

_LOG_ITSELF = (Expired, Fenced, LogClosed, LogCorrupt, LogRolledBack, LogUnavailable, SchemaOutdated)


class Quarantine:
    """The handlers of one process that raised; any thread may ask."""

    def __init__(self) -> None:
        """Start with none."""
        self._lock = threading.Lock()
        self._held: list[str] = []

    def holds(self, error: Exception) -> bool:
        """Whether an error is a handler's own, so that the handler can be taken out."""
        return not isinstance(error, _LOG_ITSELF)

    def take(self, resource: Resource, handler: str, key: Key | None, error: Exception) -> None:
        """Note that a handler of a resource raised, over the object with that key."""
        with self._lock:
            self._held.append(f"{handler} ({resource})")
        _QUARANTINED.labels(str(resource), handler).set(1)
        log.error(
            "removed an informer handler that raised an error",
            handler=handler,
            resource=str(resource),
            object=str(key) if key is not None else "",
            exc_info=error,
        )

    def problem(self) -> str | None:
        """Return which handlers hear of nothing any more; None if all do."""
        with self._lock:
            held = ", ".join(self._held)
        return f"{held} raised an error and was removed; the log has the traceback" if held else None
