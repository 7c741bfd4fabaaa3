"""Compacts the history that API clients can read, as kube-apiserver compacts etcd (`storage/etcd3/compact.go`).

Guarantees: nothing is removed from the log. A revision stays readable for at least the interval, and at most for twice
the interval. The reconciler is level-based: the result depends on the clock and the log alone, and the oldest revision
never decreases. So several servers may run it.
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
    """Make `revision` the oldest one that API clients may read; return whether the oldest one was lower before.

    Raises the errors of `client`, such as a conflict with another server that does the same.
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
    """Raises the oldest revision that API clients may read; a timer enqueues its key `API`."""

    def __init__(self, event_log: EventLog, interval: float, *, clock: Clock) -> None:
        """Keep revisions of the last `interval` seconds."""
        self._log = event_log
        self._interval = interval
        self._clock = clock

    def reconcile(self, key: Key, client: Client) -> None:
        """Raise the oldest revision to the revision of `interval` seconds ago."""
        revision = self._log.revision_at(self._clock.now() - int(self._interval * 1_000_000))
        current = self._log.get(API_COMPACTIONS, OLDEST)
        if current is not None and current.revision == revision:
            return  # Since then, only the last compaction was written.
        if compact_api(self._log, client, revision):
            log.debug("compacted API history", oldest=revision)
