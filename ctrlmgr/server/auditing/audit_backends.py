"""Implements the audit backends: log files, written line by line or in batches, and a database for queries.

Guarantees: if a backend cannot write an audit event, the backend logs the failure and counts the event in
kube-apiserver's metric, and the request continues.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from ctrlmgr.audit.batches import Batches, Batching
from ctrlmgr.audit.log_file import LogFile
from ctrlmgr.audit.request_events import WHOLE, Form, StageEvent, lines, together
from ctrlmgr.clock import Clock
from ctrlmgr.inspection.audited_requests import Row, Store
from ctrlmgr.metrics import AUDIT_ERRORS

log = structlog.get_logger(__name__)

_TO_STORE = Batching(buffer_size=20_000, max_size=20_000, max_wait=0.25, qps=1.0)
"""The settings of the batches. Each batch is stored as a row, so at most one batch is written per second.

An event waits at most 0.25 s in a batch.
"""


class ToFile:
    """A `Backend` that writes each event to a file before the request continues."""

    def __init__(self, file: LogFile, form: Form = WHOLE, *, is_strict: bool = False) -> None:
        """Create a backend that writes audit events to `file`, formatted by `form`.

        If `is_strict` is set, a request whose audit event cannot be written is refused.
        """
        self._file = file
        self._form = form
        self._fails = False
        self.is_strict = is_strict

    def process_events(self, events: Sequence[StageEvent]) -> bool:
        """Append a line for each audit event; return whether all lines were written."""
        encoded, count = together(events, self._form)
        if count:
            self.write(encoded, count)
        return count == len(events) and not self._fails

    def write(self, encoded: bytes, count: int) -> None:
        """Append `count` lines to the file; log the first failure, and the first success after failures."""
        try:
            self._file.write(encoded)
        except OSError as error:
            AUDIT_ERRORS.labels("log").inc(count)
            if not self._fails:
                log.error("audit events lost", error=str(error))
            self._fails = True
            return
        if self._fails:
            log.info("audit log writable again")
        self._fails = False

    def start(self) -> None:
        """Do nothing, because this backend has no thread."""

    def stop(self) -> None:
        """Close the file."""
        self._file.close()


class ToFileInBatches:
    """A `Backend` that writes events to a file in batches, on its own thread."""

    is_strict = False

    def __init__(self, file: ToFile, batching: Batching, form: Form = WHOLE, *, clock: Clock) -> None:
        """Create a backend that writes audit events to `file`, formatted by `form`."""
        self._file = file
        self._form = form
        self._batches: Batches[bytes] = Batches(batching, self._write, name="audit log", clock=clock, dropped=_dropped)

    def _write(self, encoded: Sequence[bytes]) -> None:
        self._file.write(b"".join(encoded), len(encoded))

    def process_events(self, events: Sequence[StageEvent]) -> bool:
        """Queue audit events for writing; return False if an event exceeds the size limit."""
        encoded = lines(events, self._form)
        self._batches.add(encoded)
        return len(encoded) == len(events)

    def start(self) -> None:
        """Start the thread."""
        self._batches.start()

    def stop(self) -> None:
        """Write the queued audit events, and close the file."""
        self._batches.stop()
        self._file.stop()


class ToStore:
    """A `Register` that stores the outcome of requests in batches, on its own thread."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        """Create a register that writes to `store`."""
        self._store = store
        self._batches: Batches[Row] = Batches(_TO_STORE, self._write, name="audit store", clock=clock, dropped=_dropped)

    def note(self, events: Sequence[StageEvent]) -> None:
        """Queue the outcomes of requests; `events` contains the last event of each request."""
        self._batches.add([_row(event) for event in events])

    def _write(self, rows: Sequence[Row]) -> None:
        if not self._store.write(rows):
            AUDIT_ERRORS.labels("store").inc(len(rows))

    def start(self) -> None:
        """Start the thread."""
        self._batches.start()

    def stop(self) -> None:
        """Write the queued outcomes, and close the database."""
        self._batches.stop()
        self._store.close()


def _row(event: StageEvent) -> Row:
    record = event.record
    verb, _, group, _, resource, part, namespace, _, _, _, is_resource = record.attributes
    head, status = record.head, record.status
    user, other, (decision, reason, _) = record.user, record.impersonated, record.ruling
    return Row(
        head.id,
        record.received,
        (event.now - record.received) / 1_000_000,
        user.name if user is not None else None,
        other.name if other is not None else None,
        verb,
        group if is_resource else None,
        resource if is_resource else None,
        part,
        namespace,
        record.name,
        head.uri,
        record.code,
        status.reason if status is not None else "",
        status.message if status is not None and record.code >= 400 else "",
        decision,
        reason,
        head.sources[0] if head.sources else "",
        head.agent,
        record.revision or None,
    )


def _dropped(count: int) -> None:
    AUDIT_ERRORS.labels("buffered").inc(count)
