"""Tests of `ctrlmgr why` for each write of Endpoints by our controllers, in replays of real recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.inspection.database import open_database
from tests.inspection.whys import replay, unexplained
from tests.recording.samples import LARGER, SMALL


@pytest.mark.parametrize(
    ("recording", "least"),
    [(path, 55 if path == SMALL else 400) for path in (SMALL, *LARGER) if path.stem != "large.jsonl"],
    ids=lambda value: value.stem if isinstance(value, Path) else None,
)
def test_every_write_of_endpoints_names_its_causes(recording: Path, least: int, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    replay(recording, url)
    with open_database(url) as database:
        count, wrong = unexplained(database)
    assert wrong == []
    assert count >= least
