"""Oracle `no-recovery`."""

from __future__ import annotations

from ctrlmgr.trial.oracles.recovery import recovery
from tests.trial.oracles.played import Played, config_map, widget


def changed() -> Played:
    """Return a run with a rest at size 1, and then a change to size 2."""
    played = Played()
    played.user_create(widget("a", spec={"size": 1}))
    played.operator_create(config_map("a-config", {"size": "1", "at": "2026-01-01T00:00:00Z"}))
    played.user_patch("Widget", "a", {"spec": {"size": 2}})
    played.operator_patch("ConfigMap", "a-config", {"data": {"size": "2", "at": "2026-01-01T00:00:05Z"}})
    played.operator_create(config_map("a-second"))
    return played


def test_a_value_that_does_not_return_is_found() -> None:
    played = changed()
    played.user_patch("Widget", "a", {"spec": {"size": 1}})
    played.operator_delete("ConfigMap", "a-second")
    [found] = recovery(played.kept())
    assert found.object == "ConfigMap shop/a-config"
    assert "data.size was '1' and is '2'" in found.message


def test_an_object_that_remains_is_found() -> None:
    played = changed()
    played.user_patch("Widget", "a", {"spec": {"size": 1}})
    played.operator_patch("ConfigMap", "a-config", {"data": {"size": "1"}})
    [found] = recovery(played.kept())
    assert found.object == "ConfigMap shop/a-second"
    assert "it exists now" in found.message


def test_a_recovered_state_is_no_finding() -> None:
    played = changed()
    played.user_patch("Widget", "a", {"spec": {"size": 1}})
    played.operator_patch("ConfigMap", "a-config", {"data": {"size": "1"}})
    played.operator_delete("ConfigMap", "a-second")
    assert recovery(played.kept()) == []


def test_only_moments_of_rest_are_compared() -> None:
    played = changed()
    assert recovery(played.kept()) == []
    played.user_patch("Widget", "a", {"spec": {"size": 1}})
    assert recovery(played.kept(quiet=False)) == []


def test_objects_with_random_names_are_counted() -> None:
    played = Played()
    played.user_create(widget("a", spec={"size": 1}))
    named = config_map("", generateName="a-job-")
    first = played.operator_create(named)
    played.user_patch("Widget", "a", {"spec": {"size": 2}})
    played.operator_delete("ConfigMap", first["metadata"]["name"])
    played.user_patch("Widget", "a", {"spec": {"size": 1}})
    played.operator_create(named)
    assert recovery(played.kept()) == []
    played.operator_create(named)
    [found] = recovery(played.kept())
    assert found.object == "ConfigMap shop/a-job-*"
    assert "1 then 2 objects" in found.message
