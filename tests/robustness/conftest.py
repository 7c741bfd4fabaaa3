"""Servers that tests share: one for what is sent to it, others for what is done to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.robustness.places import on_postgres, on_sqlite
from tests.robustness.run import Setting, server_of
from tests.robustness.serving import Served


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def setting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Setting]:
    """A database of the test's own, on each kind there is."""
    if request.param == "sqlite":
        yield on_sqlite(tmp_path)
        return
    with on_postgres(tmp_path, request.getfixturevalue("cluster")) as setting:
        yield setting


@pytest.fixture
def served(setting: Setting) -> Iterator[Served]:
    """A server of the test's own, on that database."""
    server = server_of(setting)
    try:
        server.start()
        yield server
    finally:
        server.close()
