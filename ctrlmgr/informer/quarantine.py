"""The quarantine removes handlers that raise, so that the process continues without them.

Guarantees: each removal is logged with the traceback of the error, counted, and reported until the process ends. A
removed handler has missed a change and is never called again. If the log itself fails, no handler caused the error, so
no handler is removed.
"""

from __future__ import annotations

import threading

import structlog
from prometheus_client import Gauge

from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.errors import Expired, Fenced, LogClosed, LogCorrupt, LogRolledBack, LogUnavailable, SchemaOutdated

log = structlog.get_logger(__name__)

_QUARANTINED = Gauge(
    "informer_quarantined_handlers",
    "Event handlers that were removed because they raised an error",
    ["resource", "handler"],
)

_LOG_ITSELF = (Expired, Fenced, LogClosed, LogCorrupt, LogRolledBack, LogUnavailable, SchemaOutdated)


class Quarantine:
    """The removed handlers of one process; thread-safe."""

    def __init__(self) -> None:
        """Create a quarantine without removed handlers."""
        self._lock = threading.Lock()
        self._held: list[str] = []

    def holds(self, error: Exception) -> bool:
        """Return whether the handler itself caused an error; only such errors remove a handler."""
        return not isinstance(error, _LOG_ITSELF)

    def take(self, resource: Resource, handler: str, key: Key | None, error: Exception) -> None:
        """Record that a handler of a resource raised an error, at the object with this key."""
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
        """Return a description of the removed handlers; None if no handler was removed."""
        with self._lock:
            held = ", ".join(self._held)
        return f"{held} raised an error and was removed; the log has the traceback" if held else None
