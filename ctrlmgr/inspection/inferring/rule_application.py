"""Applies the inference rules to a log's events.

Guarantees: causes are inferred only for imported events, because the log records the reconciles of all other events.
For an event to which no rule applies, only one query is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.inferring.cause_rules import infer
from ctrlmgr.inspection.inferring.inference import Inference
from ctrlmgr.inspection.inferring.object_history import LoggedPast

_STRETCHES = "SELECT after_revision, last_revision FROM log_import ORDER BY after_revision"
_PLACE = """
SELECT o.resource, o.namespace, o.name FROM event AS e JOIN object AS o ON o.id = e.object_id
WHERE e.revision = :revision AND e.reconcile_id = 0"""


class Inferring:
    """Infers the causes of events in one log; an instance serves one thread and one query."""

    def __init__(self, database: Database) -> None:
        """Create an instance that reads from `database`."""
        self._database = database
        self._past = LoggedPast(database)
        self._stretches: Sequence[tuple[Revision, Revision]] | None = None

    def of(self, revision: Revision) -> Inference | None:
        """Return the inference for an event; None if the event was not imported or no rule has a result."""
        if not self._is_imported(revision):
            return None
        rows = self._database.query(_PLACE, {"revision": revision}).rows
        if not rows:
            return None
        kind, namespace, name = rows[0]
        story = self._past.history(Resource.parse(kind), Key(namespace, name), until=revision + 1)
        return infer(story[-1], self._past) if story and story[-1].revision == revision else None

    def _is_imported(self, revision: Revision) -> bool:
        if self._stretches is None:
            self._stretches = [(row[0], row[1]) for row in self._database.query(_STRETCHES).rows]
        return any(after < revision <= last for after, last in self._stretches)
