"""Tests of custom kinds at past revisions: names, columns and schema are those of the selected point in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.errors import NotFound
from ctrlmgr.inspection import historical_state, resource_lookup
from ctrlmgr.inspection.database import open_database
from ctrlmgr.inspection.historical_custom_kinds import CustomKindsAt
from tests.inspection import widgets
from tests.inspection.widgets import WidgetHistory


@pytest.fixture
def story(tmp_path: Path) -> WidgetHistory:
    return widgets.write(f"sqlite:///{tmp_path}/widgets.db")


@pytest.mark.parametrize("name", ["widgets", "Widget", "wd", "widget.example.com", "wd.v1.example.com"])
def test_a_kind_is_found_by_the_names_of_its_definition_at_the_revision(story: WidgetHistory, name: str) -> None:
    with open_database(story.url) as database:
        found = resource_lookup.find(database, name, story.first)
        assert (str(found.resource), found.namespaced, found.singular) == (
            "widgets.example.com",
            True,
            "widget.example.com",
        )
        with pytest.raises(NotFound):
            resource_lookup.find(database, "wd", story.before)


def test_a_category_includes_custom_kinds(story: WidgetHistory) -> None:
    with open_database(story.url) as database:
        named = [str(each.resource) for each in resource_lookup.find_all(database, "all")]
        assert named[-1] == "widgets.example.com"
        assert "pods" in named
        assert "widgets.example.com" not in [
            str(each.resource) for each in resource_lookup.find_all(database, "all", 1)
        ]


def test_an_object_is_decoded_with_the_schema_of_its_revision(story: WidgetHistory) -> None:
    with open_database(story.url) as database:
        for at, spec in ((story.first, {"color": "red"}), (story.second, {"shape": "round"})):
            [obj] = historical_state.objects(database, resource_lookup.find(database, "wd", at).resource, at=at)
            assert CustomKindsAt(database, at).shown(obj).to_dict()["spec"] == spec
