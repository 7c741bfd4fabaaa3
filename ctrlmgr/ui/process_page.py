"""Returns the current state of this process (workqueues and health checks), and the history of leaders.

Guarantees: the state of queues and health checks is read without waiting. Errors of the database are reported
separately, so that the page shows all other data even if the database is unavailable.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ctrlmgr import __version__
from ctrlmgr.api.resource import LEASES
from ctrlmgr.clock import Clock
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.inspection import moment_parser
from ctrlmgr.inspection.database import Database
from ctrlmgr.metrics import Durations, QueueReading, queue_readings
from ctrlmgr.server.pages.health import Health
from ctrlmgr.ui.failures_page import number_of_failures
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader

_TERMS = 200
_LEADERS = """
SELECT s.term, o.name, lease.body, first.actor, s.first_revision, s.last_revision, s.writes,
    first.recorded_at, last.recorded_at
FROM (
    SELECT e.term, min(e.revision) AS first_revision, max(e.revision) AS last_revision, count(*) AS writes
    FROM event AS e WHERE e.term <> 0 AND e.revision <= :until GROUP BY e.term
) AS s
JOIN event AS first ON first.revision = s.first_revision
JOIN event AS last ON last.revision = s.last_revision
LEFT JOIN object AS o ON o.id = first.object_id AND o.resource = 'leases.coordination.k8s.io'
LEFT JOIN event AS lease ON lease.revision = s.first_revision AND o.id IS NOT NULL
ORDER BY s.first_revision DESC LIMIT :limit"""


class Process:
    """Reads the state of one process."""

    def __init__(
        self, reader: Reader, health: Sequence[Health], *, clock: Clock, role: str = "", own: Collection[str] = ()
    ) -> None:
        """Create an instance with the checks of `health` and the queries of `reader`.

        `role` is the role of the process. `own` contains the names of the controllers of apps.
        """
        self._own = own
        self._reader = reader
        self._health = health
        self._clock = clock
        self._role = role
        self._started_at = clock.now()

    def status(self, parameters: Parameters) -> dict[str, Any]:
        """Return the newest revision of the log, and other facts that the page needs before it can show any view.

        The facts include the limit of the user's permissions. A view without content shows this limit.
        """
        fields: dict[str, Any] = {"now": self._clock.now(), "history": self._reader.has_history, "version": __version__}
        if not self._reader.has_history:
            return {**fields, "head": 0, "headAt": 0, "failing": 0, "reason": str(self._reader.unavailable)}

        def answer(database: Database) -> dict[str, Any]:
            head = self._reader.head(database)
            failing = number_of_failures(database, parameters.visibility)
            return {"head": head, "headAt": moment_parser.recorded_at(database, head), "failing": failing}

        return {**fields, **self._reader.ask(answer), "unseen": parameters.visibility.limit}

    def queues(self, parameters: Parameters) -> dict[str, Any]:
        """Return the metrics of every workqueue of this process.

        The page computes rates from two successive responses.
        """
        readings = queue_readings()
        return {
            "now": self._clock.now(),
            "queues": [_queue(name, reading, self._own) for name, reading in readings.items()],
        }

    def leaders(self, parameters: Parameters) -> dict[str, Any]:
        """Return the newest terms of leaders, beginning with the newest."""

        def answer(database: Database) -> dict[str, Any]:
            parameters.visibility.check_list(LEASES, "kube-system")
            filters = {"until": self._reader.head(database), "limit": _TERMS}
            return {"now": self._clock.now(), "terms": [_term(*row) for row in database.query(_LEADERS, filters).rows]}

        return self._reader.ask(answer)

    def health(self, parameters: Parameters) -> dict[str, Any]:
        """Return every health check with its problem, and facts about the process and the log."""
        checks = [
            {"name": of.name, "checks": [{"name": each.name, "problem": each.problem()} for each in of.checks]}
            for of in self._health
        ]
        return {"now": self._clock.now(), "endpoints": checks, "process": self._process(), "log": self._log()}

    def _process(self) -> dict[str, Any]:
        return {
            "version": __version__,
            "python": platform.python_version(),
            "pid": os.getpid(),
            "role": self._role,
            "startedAt": self._started_at,
            "threads": threading.active_count(),
            "memory": _resident(),
        }

    def _log(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"database": self._reader.dialect}

        def answer(database: Database) -> dict[str, Any]:
            head = self._reader.head(database)
            uuid = database.query("SELECT uuid FROM log_head WHERE id = 1").rows[0][0]
            floors = dict(database.query("SELECT resource, floor FROM compaction_floor ORDER BY resource").rows)
            return {"uuid": uuid, "head": head, "headAt": moment_parser.recorded_at(database, head), "floors": floors}

        try:
            return {**fields, **self._reader.ask(answer)}
        except CtrlmgrError as error:
            return {**fields, "problem": str(error)}


def _term(
    term: int, lease: str | None, body: str | None, actor: str, first: int, last: int, writes: int, *times: int
) -> dict[str, Any]:
    holder = msgspec.json.decode(body).get("spec", {}).get("holderIdentity") if body else None
    began, ended = times
    span = {"from": began, "to": ended, "firstRevision": first, "lastRevision": last}
    return {"term": term, "lease": lease or "", "holder": holder or actor, "writes": writes, **span}


def _queue(name: str, reading: QueueReading, own: Collection[str]) -> dict[str, Any]:
    return {
        "name": name,
        "own": name in own,
        "depth": reading.depth,
        "adds": reading.adds,
        "retries": reading.retries,
        "queued": _durations(reading.queued),
        "worked": _durations(reading.worked),
        "running": len(reading.running),
        "longest": max(reading.running, default=0.0),
    }


def _durations(durations: Durations) -> dict[str, float]:
    return {"count": sum(durations.counts), "total": durations.total}


def _resident() -> int | None:
    """Return the resident memory of the process in bytes; None if the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
