"""Returns a rollout in the form of `ctrlmgr rollout`, for users that may see the workload's pods.

Guarantees: the returned rollout is the rollout that was running at the requested revision. If no rollout was running,
the last earlier rollout is returned. If the object has no rollouts, or its history was compacted, the field `why` says
so.
"""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.resource import PODS
from ctrlmgr.errors import BadRequest, Expired, Forbidden, NotFound
from ctrlmgr.inspection import rollout_timeline
from ctrlmgr.inspection.database import Database
from ctrlmgr.ui.object_page import place_of, plain
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader

_NONE = (BadRequest, Expired, Forbidden, NotFound)


class Rollouts:
    """Reads rollouts of workloads from a log."""

    def __init__(self, reader: Reader) -> None:
        """Create an instance that queries the log with `reader`."""
        self._reader = reader

    def rollout(self, parameters: Parameters) -> dict[str, Any]:
        """Return the rollout of the object at the revision `at`; the result has no `steps` if there is no rollout."""

        def answer(database: Database) -> dict[str, Any]:
            resource, key = place_of(parameters)
            parameters.visibility.check(resource, key)
            try:
                for told_of in (PODS, rollout_timeline.REPLICA_SETS):
                    parameters.visibility.check_list(told_of, key.namespace)
                at = self._reader.moment(database, parameters)
                found = rollout_timeline.rollout(database, resource, key, until=at)
                past = parameters.visibility.past(database)
                resources = (resource, PODS, rollout_timeline.REPLICA_SETS)
                if found.began.revision <= max(past.hidden_until(each, key.namespace) for each in resources):
                    raise NotFound(f'{resource} "{key}" never had a template')
            except _NONE as error:
                return {"why": str(error)}
            return {**rollout_timeline.as_json(found), "edits": [plain(each) for each in found.edits]}

        return self._reader.ask(answer)
