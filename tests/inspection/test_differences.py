"""Tests of the pure functions that compute differences of two states, and which author wrote each field."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection.differences import ABSENT, content, differences
from ctrlmgr.inspection.field_authors import blame, values
from ctrlmgr.inspection.historical_state import Author, Change
from tests.inspection.story import obj

READY, STARTED = {"type": "Ready", "status": "True"}, {"type": "Started", "status": "True"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="nothing"),
        pytest.param({"a": 1}, {"a": 2}, [("a", 1, 2)], id="a value"),
        pytest.param({}, {"a": None}, [("a", ABSENT, None)], id="null is not nothing"),
        pytest.param({"a": {"b": 1}}, {"a": {"c": 1}}, [("a.b", 1, ABSENT), ("a.c", ABSENT, 1)], id="fields of a map"),
        pytest.param({"a": {"b.c/d": 1}}, {"a": {"b.c/d": 2}}, [('a."b.c/d"', 1, 2)], id="a name that needs quotes"),
        pytest.param({"a": 1}, {"a": [1]}, [("a", 1, [1])], id="another type"),
        pytest.param({"a": [1, 2, 3]}, {"a": [2, 3]}, [("a[0]", 1, ABSENT)], id="an item less at the front"),
        pytest.param({"a": [1, 3]}, {"a": [1, 2, 3]}, [("a[1]", ABSENT, 2)], id="an item more in the middle"),
        pytest.param(
            {"c": [STARTED, READY]},
            {"c": [{**READY, "status": "False"}, STARTED]},
            [("c[type=Ready].status", "True", "False")],
            id="items with names may change places",
        ),
        pytest.param({"c": [READY]}, {"c": []}, [("c[type=Ready]", READY, ABSENT)], id="an item with a name goes"),
        pytest.param(
            {"c": [READY, READY]},
            {"c": [READY]},
            [("c[1]", READY, ABSENT)],
            id="names that two share do not count",
        ),
    ],
)
def test_differences_are_listed(before: Any, after: Any, expected: list[tuple[str, Any, Any]]) -> None:
    assert list(differences(before, after)) == expected


def test_managed_fields_are_omitted_by_default() -> None:
    managed = obj("Pod", "a", meta={"managedFields": [{"manager": "kubectl"}]})
    assert "managedFields" not in content(managed)["metadata"]
    assert "managedFields" in content(managed, managed_fields=True)["metadata"]
    assert content(None) == {}


def lived(*states: Any, first: EventType = EventType.ADDED) -> list[Change]:
    """Return the history of an object whose spec had these values at the revisions 1, 2, 3 and so on; None stands for a
    deletion.
    """
    changes: list[Change] = []
    before: Object | None = None
    kind = first
    for revision, spec in enumerate(states, 1):
        after = obj("Pod", "a", spec=spec) if spec is not None else before
        assert after is not None
        now = EventType.DELETED if spec is None else kind
        author = Author("alice", "", 0, 0, "", "", 0)
        changes.append(Change(revision, now, revision, author, after, before))
        kind, before = (EventType.ADDED, None) if spec is None else (EventType.MODIFIED, after)
    return changes


def blamed(history: list[Change]) -> dict[str, int]:
    return {each.path: each.change.revision for each in blame(history) if each.path.startswith("spec")}


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        pytest.param([{"a": 1}, {"a": 1, "b": 1}], {"spec.a": 1, "spec.b": 2}, id="a field that came later"),
        pytest.param([{"a": 1}, {"a": 2}, {"a": 1}], {"spec.a": 3}, id="there and back again"),
        pytest.param([{"a": {"b": 1}}, {"a": {}}], {"spec.a": 2}, id="what became empty"),
        pytest.param([{"a": {}}, {"a": {"b": 1}}], {"spec.a.b": 2}, id="what was empty"),
        pytest.param([{"a": [1]}, {"a": [2, 1]}], {"spec.a[0]": 2, "spec.a[1]": 1}, id="an item that moved"),
        pytest.param(
            [{"c": [READY]}, {"c": [STARTED, READY]}, {"c": [{**READY, "status": "False"}, STARTED]}],
            {
                "spec.c[type=Ready].type": 1,
                "spec.c[type=Ready].status": 3,
                "spec.c[type=Started].type": 2,
                "spec.c[type=Started].status": 2,
            },
            id="items with names",
        ),
        pytest.param([{"a": 1}, None, {"a": 1}], {"spec.a": 3}, id="created again it is another object"),
        pytest.param([{"a": 1}, None], {}, id="what is deleted has no fields"),
        pytest.param([], {}, id="what never was has none either"),
    ],
)
def test_the_newest_change_that_gave_a_field_its_value_is_blamed(states: list[Any], expected: dict[str, int]) -> None:
    assert blamed(lived(*states)) == expected


def test_a_value_possibly_older_than_the_oldest_event_is_marked_uncertain() -> None:
    found = {each.path: each.certain for each in blame(lived({"a": 1}, {"a": 1, "b": 2}, first=EventType.MODIFIED))}
    assert (found["spec.a"], found["spec.b"]) == (False, True)


def test_every_value_of_a_field_is_listed() -> None:
    found = values(lived({"a": 1, "b": {"c": 1}}, {"a": 2}, {"a": 2, "b": {"c": 3}}))
    assert [(each.value, each.change.revision) for each in found["spec.a"]] == [(1, 1), (2, 2)]
    assert [(each.value, each.change.revision) for each in found["spec.b.c"]] == [(1, 1), (3, 3)]
    assert [(each.value, each.change.revision) for each in found["spec.b"]] == [(ABSENT, 2)]
