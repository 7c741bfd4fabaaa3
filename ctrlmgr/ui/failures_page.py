"""Returns the failing reconciles in a log that one user may see.

Guarantees: a user that may list all objects sees every failure. A user without this right sees only the failures of
objects that the user may see. Users that may not list all objects do not see the error and the traceback, because both
may contain the names of other objects.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.errors import NotFound
from ctrlmgr.eventlog import Failure
from ctrlmgr.inspection import moment_parser, resource_lookup
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.failing_reconciles import as_json, failures
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader
from ctrlmgr.ui.visibility import Visibility

UNTOLD: Final = "(only users who may list everything are shown the error)"


class Failures:
    """Reads the failing reconciles from a log."""

    def __init__(self, reader: Reader) -> None:
        """Create an instance that queries the log with `reader`."""
        self._reader = reader

    def failures(self, parameters: Parameters) -> dict[str, Any]:
        """Return the reconciles that fail now, or failed at the revision `at`, beginning with the newest failure."""
        at = parameters.number("at", 0)

        def answer(database: Database) -> dict[str, Any]:
            moment = moment_parser.recorded_at(database, at) if at else None
            found = seen_failures(database, parameters.visibility, at=moment)
            return {"failures": [_failure_row(database, each) for each in found]}

        return self._reader.ask(answer)


def number_of_failures(database: Database, visibility: Visibility) -> int:
    """Return the number of current failures that a user may see.

    The page requests this number every second.
    """
    if visibility.limit:
        return len(seen_failures(database, visibility))
    return int(database.query("SELECT count(*) FROM failure WHERE ended_at IS NULL").rows[0][0])


def seen_failures(
    database: Database, visibility: Visibility, *, at: int | None = None, ended: bool = False
) -> list[Failure]:
    """Return the failures that a user may see.

    The arguments `at` and `ended` are those of `inspection.failing_reconciles`.
    """
    found = failures(database, at=at, ended=ended)
    if not visibility.limit:
        return found
    return [
        msgspec.structs.replace(each, error=UNTOLD, traceback="")
        for each in found
        if _is_seen(database, visibility, each)
    ]


def _is_seen(database: Database, visibility: Visibility, failure: Failure) -> bool:
    resource = resource_of(database, failure.kind)
    return resource is not None and visibility.sees(resource, Key.parse(failure.key))


def resource_of(database: Database, kind: str) -> Resource | None:
    """Return the resource of a kind; None if the log contains no objects of the kind."""
    try:
        return resource_lookup.find(database, kind).resource if kind else None
    except NotFound:
        return None


def _failure_row(database: Database, failure: Failure) -> dict[str, Any]:
    resource = resource_of(database, failure.kind)
    return {**as_json([failure])[0], "resource": str(resource) if resource else ""}
