"""Oracle `observed-generation`."""

from __future__ import annotations

from typing import Any

from ctrlmgr.trial.oracles.generation_reports import observed_generations
from tests.trial.oracles.played import Played, widget


def report(played: Played, generation: int, **status: Any) -> None:
    played.operator_patch("Widget", "a", {"status": {"observedGeneration": generation, **status}}, "/status")


def created() -> Played:
    played = Played()
    played.user_create(widget("a", spec={"size": 1}))
    return played


def test_a_status_that_stays_behind_is_found() -> None:
    played = created()
    report(played, 1)
    played.user_patch("Widget", "a", {"spec": {"size": 2}})
    [found] = observed_generations(played.kept())
    assert found.message == (
        "The status of Widget shop/a is not truthful:"
        " status.observedGeneration stays at 1, although the generation is 2."
    )
    assert observed_generations(played.kept(quiet=False)) == []
    report(played, 2)
    assert observed_generations(played.kept()) == []


def test_a_generation_that_does_not_exist_is_found() -> None:
    played = created()
    report(played, 7)
    [found] = observed_generations(played.kept())
    assert "status.observedGeneration is 7, a generation that does not exist yet" in found.message


def test_a_step_back_is_found() -> None:
    played = created()
    played.user_patch("Widget", "a", {"spec": {"size": 2}})
    report(played, 2)
    report(played, 1)
    report(played, 2)
    [found] = observed_generations(played.kept())
    assert "went back from 2 to 1" in found.message


def test_conditions_are_read_unless_the_whole_status_is_up_to_date() -> None:
    played = created()
    condition = {"type": "Ready", "status": "True", "observedGeneration": 1}
    played.operator_patch("Widget", "a", {"status": {"conditions": [condition]}}, "/status")
    played.user_patch("Widget", "a", {"spec": {"size": 2}})
    [found] = observed_generations(played.kept())
    assert "status.conditions[Ready].observedGeneration stays at 1" in found.message
    report(played, 2)
    assert observed_generations(played.kept()) == []


def test_statuses_of_others_and_of_deleted_objects_are_no_findings() -> None:
    played = created()
    with played.step():
        played.send(
            "PATCH", "/apis/example.com/v1/namespaces/shop/widgets/a/status", {"status": {"observedGeneration": 9}}
        )
    report(played, 1)
    played.user_patch("Widget", "a", {"spec": {"size": 2}})
    played.user_delete("Widget", "a")
    assert observed_generations(played.kept()) == []
