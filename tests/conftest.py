from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import structlog
from hypothesis import settings

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import migrate_log
from ctrlmgr.metrics import TURNS
from ctrlmgr.testing.postgres import PostgresCluster
from tests.server.turns import LONGEST_TURN

# Each run uses the same examples; long forms of tests use more random ones.
settings.register_profile("same", derandomize=True)
settings.load_profile("same")

TEMPLATE = "migrated"
_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Restore the configuration of logging after a command ran in this process, because the command's log stream is
    closed after the test.
    """
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    if root.handlers != handlers:
        root.handlers[:] = handlers
        root.setLevel(level)


@pytest.fixture(autouse=True)
def loops_are_never_busy_for_long(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test if a step of a server's event loop in this process took too long."""
    TURNS.longest = 0.0
    yield
    if request.node.get_closest_marker("long_turns") is None:
        assert TURNS.longest <= LONGEST_TURN, "an event loop blocked for too long; the log says with what"


@pytest.fixture(scope="session")
def cluster() -> Iterator[PostgresCluster]:
    """A temporary PostgreSQL server with one migrated database that tests copy; if PostgreSQL's programs are missing,
    the tests fail with the reason.
    """
    with PostgresCluster() as cluster:
        cluster.execute(f"CREATE DATABASE {TEMPLATE}")
        migrate_log(cluster.url(TEMPLATE), clock=SystemClock(), random=random.Random(1))
        yield cluster


@pytest.fixture
def postgres_url(cluster: PostgresCluster) -> Iterator[str]:
    """The URL of a migrated, empty database that no other test uses."""
    with cluster.database(f"log_{next(_numbers)}", template=TEMPLATE) as url:
        yield url


@pytest.fixture
def postgres_urls(cluster: PostgresCluster) -> Iterator[Iterator[str]]:
    """A function that returns URLs of migrated, empty databases."""
    with ExitStack() as databases:
        yield (databases.enter_context(cluster.database(f"log_{number}", template=TEMPLATE)) for number in _numbers)
