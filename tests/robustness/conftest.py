"""Fixtures with servers that tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.robustness.histories.run import RunSetup, server_of
from tests.robustness.places import on_postgres, on_sqlite
from tests.robustness.serving import ConfiguredServer

HOSTILE = "hostile"
"""The namespace that hostile requests use."""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def setting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunSetup]:
    """A new database for one test, once for each type of database."""
    if request.param == "sqlite":
        yield on_sqlite(tmp_path)
        return
    with on_postgres(tmp_path, request.getfixturevalue("cluster")) as setting:
        yield setting


@pytest.fixture
def served(setting: RunSetup) -> Iterator[ConfiguredServer]:
    """A server for one test, on the new database."""
    server = server_of(setting)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredServer]:
    """A server that the tests attack. The server must not log a traceback, and must shut down gracefully."""
    server = server_of(on_sqlite(tmp_path_factory.mktemp("hostile")))
    try:
        server.start()
        code, answer = server.request("POST", "/api/v1/namespaces", {"metadata": {"name": HOSTILE}})
        assert code == 201, answer
        yield server
        server.stop()
        assert "Traceback" not in server.log, server.log
    finally:
        server.close()
