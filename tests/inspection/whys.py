"""Checks the result of `ctrlmgr why` for every write of Endpoints in a replayed recording, by comparison with the log.

For a write of the endpoints controller, the causes must include a change of the Service, or of a pod that the Service
selects. For a write of the namespace controller, the causes must include a change of the namespace, or of an object in
the namespace. Run `python -m tests.inspection.whys RECORDING` to check any recording.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import structlog

from ctrlmgr import cli
from ctrlmgr.api.resource import NAMESPACES, PODS, SERVICES
from ctrlmgr.controllers.endpoints.controller import CONTROLLER_NAME as ENDPOINT_CONTROLLER
from ctrlmgr.controllers.namespace.controller import CONTROLLER_NAME as NAMESPACE_CONTROLLER
from ctrlmgr.inspection import causes
from ctrlmgr.inspection.causes import Node
from ctrlmgr.inspection.database import Database, open_database

_WRITES = (
    "SELECT revision, namespace, name, controller FROM timeline"
    " WHERE resource = 'endpoints' AND reconcile_id <> 0 ORDER BY revision"
)
_SERVICE = (
    "SELECT body FROM history WHERE resource = 'services' AND namespace = :namespace AND name = :name"
    " AND revision < :revision ORDER BY revision DESC LIMIT 2"
)
_TRIGGERS = (
    "SELECT t.revision FROM event AS e JOIN reconcile_trigger AS t ON t.reconcile_id = e.reconcile_id"
    " WHERE e.revision = :revision"
)


class _Spec(msgspec.Struct):
    selector: dict[str, str] | None = None


class _Service(msgspec.Struct):
    spec: _Spec


def replay(recording: Path, url: str) -> None:
    """Replay a recording into a new log."""
    assert cli.run(["replay", str(recording), "--database", url, "--no-progress", "-o", "json"]) == 0
    # Restore the configuration of logging, which a command changes for its process (here to pytest's captured stderr).
    structlog.reset_defaults()
    logging.getLogger().handlers.clear()


def unexplained(database: Database) -> tuple[int, list[str]]:
    """Return the number of checked writes, and the errors in the results of `why`."""
    writes = database.query(_WRITES).rows
    return len(writes), [wrong for write in writes for wrong in _check(database, *write)]


def _check(database: Database, revision: int, namespace: str, name: str, controller: str) -> Iterator[str]:
    links = causes.why(database, revision, depth=1).links
    place = f"{revision} endpoints {namespace}/{name} by {controller}"
    if {each.revision for each in links} != {row[0] for row in database.query(_TRIGGERS, {"revision": revision}).rows}:
        yield f"{place}: not all its triggers"
    if any(each.change is None or each.revision >= revision for each in links):
        yield f"{place}: a cause that is not in the log before it"
    elif controller == ENDPOINT_CONTROLLER:
        where = {"namespace": namespace, "name": name, "revision": revision}
        bodies = [row[0] for row in database.query(_SERVICE, where).rows]
        selectors = [msgspec.json.decode(body, type=_Service).spec.selector for body in bodies]
        if not any(_explains(each, namespace, name, [each for each in selectors if each]) for each in links):
            yield f"{place}: neither its service nor a pod of it"
    elif controller != NAMESPACE_CONTROLLER or not any(_is_within(each, namespace) for each in links):
        yield f"{place}: not its namespace"


def _explains(cause: Node, namespace: str, name: str, selectors: list[dict[str, str]]) -> bool:
    """Return whether a cause is a change of the Service, or of a pod that the Service selects or selected before."""
    assert cause.change is not None
    obj, before = cause.change.object, cause.change.before
    if obj.resource == SERVICES:
        return (obj.namespace, obj.name) == (namespace, name)
    labels = [dict(each.labels) for each in (obj, before) if each is not None]
    return (
        obj.resource == PODS
        and obj.namespace == namespace
        and any(selector.items() <= each.items() for selector in selectors for each in labels)
    )


def _is_within(cause: Node, namespace: str) -> bool:
    assert cause.change is not None
    obj = cause.change.object
    return (obj.name if obj.resource == NAMESPACES else obj.namespace) == namespace


def main() -> None:
    """Check one recording, and print the result."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/log.db"
        replay(Path(sys.argv[1]), url)
        with open_database(url) as database:
            count, wrong = unexplained(database)
    found = [*wrong, f"{count} writes of Endpoints, {len(wrong)} of them not explained"]
    sys.stderr.write("\n".join(found) + "\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
