from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty database, once for each type of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'log.db'}"
    postgres: str = request.getfixturevalue("postgres_url")
    return postgres
