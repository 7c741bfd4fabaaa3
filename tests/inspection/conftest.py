"""Fixtures with the history that `story.py` writes, in each type of database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from ctrlmgr.inspection.database import Database, open_database
from ctrlmgr.testing.postgres import PostgresCluster
from tests.inspection import story


@pytest.fixture(scope="session")
def sqlite_story(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a SQLite file with the history."""
    return story.write(f"sqlite:///{tmp_path_factory.mktemp('story')}/log.db")


@pytest.fixture(scope="session")
def postgres_story(cluster: PostgresCluster) -> Iterator[str]:
    """The URL of a PostgreSQL database with the history."""
    with cluster.database(f"story_{uuid4().hex}", template="migrated") as url:
        yield story.write(url)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def story_url(request: pytest.FixtureRequest) -> str:
    """The URL of a database with the history, once for each type of database."""
    url: str = request.getfixturevalue(f"{request.param}_story")
    return url


@pytest.fixture
def database(story_url: str) -> Iterator[Database]:
    """An open database with the history."""
    with open_database(story_url) as opened:
        yield opened


@pytest.fixture
def past_url(sqlite_story: str, tmp_path: Path) -> str:
    """A copy of the database with the history, which the test may change."""
    return story.write(f"sqlite:///{tmp_path}/log.db")
