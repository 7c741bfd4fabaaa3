"""Why, asked of everything that our endpoints controller wrote in the replay of a real cluster's recording."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import structlog

from ctrlmgr import cli
from ctrlmgr.api.resource import PODS, SERVICES
from ctrlmgr.inspection import causes
from ctrlmgr.inspection.causes import Node
from ctrlmgr.inspection.database import Database, open_database

SMALL = Path(__file__).parents[1] / "recordings" / "small.jsonl.gz"
_WRITES = "SELECT revision, namespace, name FROM timeline WHERE resource = 'endpoints' AND actor = :actor"


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('replayed')}/log.db"
    assert cli.run(["replay", str(SMALL), "--database", url, "--no-progress"]) == 0
    # A command configures logging for its process, here with pytest's captured stderr.
    structlog.reset_defaults()
    logging.getLogger().handlers.clear()
    return url


def test_every_write_of_endpoints_names_the_pod_or_service_it_came_from(replayed: str) -> None:
    with open_database(replayed) as database:
        writes = database.query(_WRITES, {"actor": "system:controller:endpoint-controller"}).rows
        assert len(writes) > 40
        for revision, namespace, name in writes:
            tree = causes.why(database, revision, depth=1)
            assert [each for each in tree.links if explains(each, namespace, name)], revision
            assert {each.revision for each in tree.links} == triggers(database, revision)


def explains(cause: Node, namespace: str, name: str) -> bool:
    """Tell whether a cause is a change of the Service itself, or of a Pod beside it, before what it explains."""
    assert cause.change is not None
    obj = cause.change.object
    return obj.namespace == namespace and (obj.resource == PODS or (obj.resource == SERVICES and obj.name == name))


def triggers(database: Database, revision: int) -> set[int]:
    statement = (
        "SELECT t.revision FROM event AS e JOIN reconcile_trigger AS t ON t.reconcile_id = e.reconcile_id"
        " WHERE e.revision = :revision"
    )
    return {row[0] for row in database.query(statement, {"revision": revision}).rows}
