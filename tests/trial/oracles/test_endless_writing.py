"""Oracles `endless-writing`, `growing-generation` and `field-fight`."""

from __future__ import annotations

from ctrlmgr.trial.oracles.endless_writing import endless_writing, field_fights, growing_generations
from tests.trial.oracles.played import Played, config_map, widget


def test_a_status_with_a_new_time_in_each_write_is_found() -> None:
    played = Played()
    played.user_create(widget("a"))
    for second in range(12):
        status = {"ready": True, "checkedAt": f"2026-01-01T00:00:{second:02}Z"}
        played.operator_patch("Widget", "a", {"status": status}, "/status")
    [found] = endless_writing(played.kept(quiet=False))
    assert found.object == "Widget shop/a"
    assert "it wrote the object 12 times after the last step, 11 times without a change" in found.message
    assert endless_writing(played.kept()) == []


def test_writes_that_lead_to_new_states_are_no_endless_writing() -> None:
    played = Played()
    played.user_create(widget("a"))
    for letter in "abcdefghijkl":
        played.operator_patch("Widget", "a", {"status": {"phase": letter}}, "/status")
    assert endless_writing(played.kept(quiet=False)) == []


def test_writes_before_the_last_step_are_not_counted() -> None:
    played = Played()
    played.user_create(widget("a"))
    for number in range(12):
        played.operator_patch("Widget", "a", {"status": {"number": number}}, "/status")
    played.user_create(widget("b"))
    assert endless_writing(played.kept(quiet=False)) == []


def test_an_operator_that_changes_its_own_spec_again_and_again_is_found() -> None:
    played = Played()
    played.user_create(widget("a", spec={"size": 1}))
    for size in range(2, 9):
        played.operator_patch("Widget", "a", {"spec": {"size": size}})
    [found] = growing_generations(played.kept(quiet=False))
    assert "changed the spec of Widget shop/a 7 times without a change by the user" in found.message
    assert "its generation grew to 8" in found.message


def test_a_few_changes_of_the_spec_are_no_growing_generation() -> None:
    played = Played()
    played.user_create(widget("a", spec={"size": 1}))
    for size in range(2, 9):
        played.operator_patch("Widget", "a", {"spec": {"color": str(size)}})
        played.user_patch("Widget", "a", {"spec": {"size": size}})
    played.operator_patch("Widget", "a", {"spec": {"size": 20}})
    assert growing_generations(played.kept(quiet=False)) == []


def test_two_users_that_fight_over_a_field_are_found() -> None:
    played = Played()
    played.user_create(widget("a"))
    played.operator_create(config_map("a-config", {"mode": "fast"}))
    for _ in range(5):
        played.user_patch("ConfigMap", "a-config", {"data": {"mode": "slow"}})
        played.operator_patch("ConfigMap", "a-config", {"data": {"mode": "fast"}})
    [found] = field_fights(played.kept(quiet=False))
    assert found.message == (
        "alice and trial-operator fight over data.mode of ConfigMap shop/a-config: each sets its own value, 10 times."
    )


def test_a_corrected_change_is_no_fight() -> None:
    played = Played()
    played.operator_create(config_map("a-config", {"mode": "fast"}))
    played.user_patch("ConfigMap", "a-config", {"data": {"mode": "slow"}})
    played.operator_patch("ConfigMap", "a-config", {"data": {"mode": "fast"}})
    for number in range(9):
        played.user_patch("ConfigMap", "a-config", {"data": {"input": str(number)}})
        played.operator_patch("ConfigMap", "a-config", {"data": {"output": str(number)}})
    assert field_fights(played.kept()) == []
