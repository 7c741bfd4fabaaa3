"""Tests of `ctrlmgr get` for custom kinds: names, columns and schema are those of the selected point in time."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.eventlog import Author, EventType, Proposal, open_log
from ctrlmgr.testing import FakeClock
from tests.cli.conftest import Run
from tests.inspection import widgets
from tests.inspection.widgets import WidgetHistory


@pytest.fixture
def story(tmp_path: Path) -> WidgetHistory:
    return widgets.write(f"sqlite:///{tmp_path}/widgets.db")


def test_get_prints_the_columns_and_values_at_the_revision(run: Run, story: WidgetHistory) -> None:
    def lines(at: int) -> list[list[str]]:
        out = run("get", "wd", "-n", "shop", "--at", str(at), "--database", story.url).out
        return [line.split() for line in out.splitlines()]

    assert lines(story.first) == [["NAME", "COLOR"], ["a", "red"]]
    assert lines(story.second) == [["NAME", "SHAPE"], ["a", "round"]]
    shown = run("get", "widgets", "a", "-n", "shop", "-o", "json", "--database", story.url).out
    assert json.loads(shown)["spec"] == {"shape": "round"}


@pytest.mark.parametrize(
    "kind",
    [
        *("backups", "backup", "Backup", "backups.stable.example.com", "backup.stable.example.com"),
        *("backups.v1.stable.example.com", "backup.v1.stable.example.com"),
    ],
)
def test_a_kind_without_a_definition_is_found_by_any_of_its_names(run: Run, tmp_path: Path, kind: str) -> None:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    metadata = {"name": "nightly", "namespace": "default", "uid": "1"}
    fields = {"kind": "Backup", "apiVersion": "stable.example.com/v1", "metadata": metadata}
    backup = Object(Resource("stable.example.com", "backups"), json.dumps(fields).encode())
    log = open_log(url, clock=FakeClock(), random=random.Random(1), migrate=True)
    log.append([Proposal(EventType.ADDED, backup, 0)], author=Author("a"))
    log.close()
    assert run("get", kind, "-o", "name", "--database", url).out == "backup.stable.example.com/nightly\n"
    assert "nothing" in run("get", "nothing", "--database", url).err


@pytest.mark.parametrize("kind", ["widgets", "widget", "Widget", "wd", "widgets.{group}", "widget.v1.{group}"])
def test_a_defined_kind_is_found_by_any_of_its_names(run: Run, story: WidgetHistory, kind: str) -> None:
    group = "example.com"
    assert "a" in run("get", kind.format(group=group), "-n", "shop", "--database", story.url).out
