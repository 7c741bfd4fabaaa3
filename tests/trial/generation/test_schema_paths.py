"""Each property that a user writes is listed with its path."""

from __future__ import annotations

from ctrlmgr.trial.generation.schema_paths import dotted, places
from tests.trial.generation.kinds import SPEC, kind_of


def test_every_property_is_listed_once_and_parents_come_first() -> None:
    _, version = kind_of(SPEC)
    paths = [str(each) for each in places(version.raw_schema or {}, {"spec": {"labels": {"a": "b"}}})]
    assert paths[0] == "spec"
    assert len({*paths}) == len(paths)
    assert {"spec.ports[0].name", "spec.backup.schedule", "spec.labels.a", "spec.zones[0]"} <= {*paths}
    assert paths.index("spec.ports") < paths.index("spec.ports[0]") < paths.index("spec.ports[0].name")
    assert not [each for each in paths if each.startswith(("status", "metadata"))]


def test_hints_are_constants_of_the_rules_above_and_neighbouring_values() -> None:
    _, version = kind_of(SPEC)
    found = {str(each): each.hints for each in places(version.raw_schema or {}, {"spec": {"minimum": 4, "maximum": 6}})}
    assert {"large", 3, 6} <= {*found["spec.minimum"]}
    assert 4 not in found["spec.minimum"]
    assert 6 not in found["spec.backup.schedule"]


def test_paths_are_shown_as_in_field_errors() -> None:
    assert dotted(("spec", "ports", 0, "name")) == "spec.ports[0].name"
