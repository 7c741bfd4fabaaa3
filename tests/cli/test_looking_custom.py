"""`ctrlmgr get` of custom kinds: names, columns and schema of the moment that is looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.inspection import widgets
from tests.inspection.widgets import Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return widgets.write(f"sqlite:///{tmp_path}/widgets.db")


def test_get_prints_the_columns_and_values_of_then(run: Run, story: Story) -> None:
    def lines(at: int) -> list[list[str]]:
        out = run("get", "wd", "-n", "shop", "--at", str(at), "--database", story.url).out
        return [line.split() for line in out.splitlines()]

    assert lines(story.first) == [["NAME", "COLOR"], ["a", "red"]]
    assert lines(story.second) == [["NAME", "SHAPE"], ["a", "round"]]
    shown = run("get", "widgets", "a", "-n", "shop", "-o", "json", "--database", story.url).out
    assert json.loads(shown)["spec"] == {"shape": "round"}
