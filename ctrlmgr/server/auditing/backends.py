"""Where audit events go: to a file, line by line or many at a time; and into a database that can be asked.

Guarantees: what could not be kept is counted under kube-apiserver's metric and logged, and the request goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from ctrlmgr.audit.batches import Batches, Batching
from ctrlmgr.audit.event import DECISION, REASON, Record
from ctrlmgr.audit.log_file import LogFile
from ctrlmgr.audit.telling import WHOLE, Form, Telling
from ctrlmgr.clock import Clock
from ctrlmgr.inspection.requests import Row, Store
from ctrlmgr.metrics import AUDIT_ERRORS

log = structlog.get_logger(__name__)

_TO_STORE = Batching(buffer_size=20_000, max_size=1_000, max_wait=0.25)


class ToFile:
    """Writes each event before the server goes on: a `Backend`."""

    def __init__(self, file: LogFile, form: Form = WHOLE, *, is_strict: bool = False) -> None:
        """Write to `file`, events as `form` has them; if it `is_strict`, what cannot be written may not be done."""
        self._file = file
        self._form = form
        self._fails = False
        self.is_strict = is_strict

    def tell(self, event: Telling) -> bool:
        """Append a line; return whether that could be done."""
        line = self._form(event)
        if line is None:
            return False
        self.write([line])
        return not self._fails

    def write(self, lines: Sequence[bytes]) -> None:
        """Append lines; says once that it cannot, and once that it can again."""
        try:
            self._file.write(b"".join(lines))
        except OSError as error:
            AUDIT_ERRORS.labels("log").inc(len(lines))
            if not self._fails:
                log.error("audit events are lost", error=str(error))
            self._fails = True
            return
        if self._fails:
            log.info("audit events are written again")
        self._fails = False

    def start(self) -> None:
        """Nothing has to be started."""

    def stop(self) -> None:
        """Close the file."""
        self._file.close()


class ToFileInBatches:
    """Writes many events at a time, on a thread of its own: a `Backend`."""

    is_strict = False

    def __init__(self, file: ToFile, batching: Batching, form: Form = WHOLE, *, clock: Clock) -> None:
        """Write to `file`, events as `form` has them."""
        self._file = file
        self._form = form
        self._batches = Batches(batching, file.write, name="audit log", clock=clock, dropped=_dropped)

    def tell(self, event: Telling) -> bool:
        """Have a line appended soon; return whether it is small enough."""
        line = self._form(event)
        if line is None:
            return False
        self._batches.add(line)
        return True

    def start(self) -> None:
        """Start the thread."""
        self._batches.start()

    def stop(self) -> None:
        """Write what is left, and close the file."""
        self._batches.stop()
        self._file.stop()


class ToStore:
    """Notes how requests ended, many at a time on a thread of its own: a `Register`."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        """Write to `store`."""
        self._store = store
        self._batches: Batches[Row] = Batches(_TO_STORE, self._write, name="audit store", clock=clock, dropped=_dropped)

    def note(self, record: Record, now: int) -> None:
        """Have a request noted soon."""
        asked, status = record.attributes, record.status
        user, other = record.user, record.impersonated
        self._batches.add(
            Row(
                record.id,
                record.received,
                (now - record.received) / 1_000_000,
                user.name if user is not None else None,
                other.name if other is not None else None,
                asked.verb,
                asked.group if asked.is_resource else None,
                asked.resource if asked.is_resource else None,
                asked.subresource,
                asked.namespace,
                record.name,
                record.uri,
                record.code,
                status.reason if status is not None else "",
                status.message if status is not None and record.code >= 400 else "",
                record.annotations.get(DECISION),
                record.annotations.get(REASON),
                record.sources[0] if record.sources else "",
                record.agent,
                record.revision or None,
            )
        )

    def _write(self, rows: Sequence[Row]) -> None:
        if not self._store.write(rows):
            AUDIT_ERRORS.labels("store").inc(len(rows))

    def start(self) -> None:
        """Start the thread."""
        self._batches.start()

    def stop(self) -> None:
        """Write what is left, and close the database."""
        self._batches.stop()
        self._store.close()


def _dropped(count: int) -> None:
    AUDIT_ERRORS.labels("buffered").inc(count)
