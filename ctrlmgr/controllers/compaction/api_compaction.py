"""Compacts the history that API clients can read, as kube-apiserver compacts etcd (`storage/etcd3/compact.go`).

Guarantees: the compaction of the API's history removes no events from the log. A revision stays readable for at least
the interval, and at most for twice the interval. The reconciler is level-based, because the result depends only on the
clock and the log. The oldest readable revision never decreases, so several servers may run the reconciler.
"""

from __future__ import annotations

from typing import Final

import structlog

from ctrlmgr.api.resource import Key, Revision
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock
from ctrlmgr.eventlog import EventLog
from ctrlmgr.eventlog.api_history import API_COMPACTIONS, OLDEST, compaction_object, oldest_for_clients

log = structlog.get_logger(__name__)

API: Final = Key("", "api")
"""The key of the reconciler."""


def compact_api(event_log: EventLog, client: Client, revision: Revision) -> bool:
    """Make `revision` the oldest revision that API clients may read.

    Return whether the oldest readable revision was lower before. Raises the errors of `client`, such as a conflict with
    another server that writes the same revision.
    """
    current = event_log.get(API_COMPACTIONS, OLDEST)
    if revision <= oldest_for_clients(event_log):
        return False
    if current is None:
        client.create(compaction_object(revision, {"name": OLDEST.name}))
    else:
        client.update(compaction_object(revision, current.to_dict()["metadata"]).at(current.revision))
    return True


class ApiCompactionReconciler:
    """A reconciler that raises the oldest revision that API clients may read; a timer enqueues the key `API`."""

    def __init__(self, event_log: EventLog, interval: float, *, clock: Clock) -> None:
        """Create a reconciler that keeps the revisions of the last `interval` seconds."""
        self._log = event_log
        self._interval = interval
        self._clock = clock

    def reconcile(self, key: Key, client: Client) -> None:
        """Raise the oldest revision that API clients may read to the revision of `interval` seconds ago."""
        revision = self._log.revision_at(self._clock.now() - int(self._interval * 1_000_000))
        current = self._log.get(API_COMPACTIONS, OLDEST)
        if current is not None and current.revision == revision:
            return  # Since then, only the last compaction was written.
        if compact_api(self._log, client, revision):
            log.debug("compacted API history", oldest=revision)
