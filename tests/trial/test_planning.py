"""Plans are made from the writes of clean runs."""

from __future__ import annotations

from ctrlmgr.api.resource import PODS
from ctrlmgr.trial.oracles.end_state import Name, State
from ctrlmgr.trial.perturbation_plan import FAMILIES, Perturbation, Plan
from ctrlmgr.trial.planning import plans
from ctrlmgr.trial.scenario import Delete, Scenario, Target, Wait
from tests.trial.finished import finished

CREATE = "create configmaps shop/web"
UPDATE = "update widgets.example.com/status shop/a"
PATCH = "patch widgets.example.com shop/a"
TARGET = Target("example.com/v1", "Widget", "shop", "a")
SCENARIO = Scenario((Delete(TARGET), Wait(), Delete(TARGET), Delete(TARGET)))


def planned(family: str, *writes: str, others: tuple[str, ...] | None = None) -> list[Plan]:
    return plans(finished(*writes), finished(*(writes if others is None else others)), SCENARIO, [family])


def test_the_operator_crashes_before_and_after_each_write() -> None:
    assert planned("crash", CREATE, UPDATE) == [
        Plan((Perturbation(kind, write),)) for write in (CREATE, UPDATE) for kind in ("crash-before", "crash-after")
    ]


def test_equal_writes_are_perturbed_twice_and_refused_writes_never() -> None:
    found = planned("crash", CREATE, f"409 {CREATE}", f"404 {PATCH}", CREATE, CREATE, CREATE)
    assert [each.perturbations[0].occurrence for each in found] == [1, 1]
    assert [each.perturbations[0].occurrence for each in planned("crash", CREATE, CREATE, CREATE)] == [1, 1, 2, 2]


def test_names_that_differ_between_clean_runs_are_left_open() -> None:
    found = planned("crash", "create pods shop/a-1", "create nodes n1", others=("create pods shop/a-2",))
    assert [each.perturbations[0].write for each in found[::2]] == ["create pods shop/*", "create nodes *"]


def test_races_are_lost_where_the_server_can_refuse_a_write() -> None:
    (plan,) = planned("race", CREATE, UPDATE, PATCH, "create pods shop/web-*", "delete pods shop/a")
    assert [each.write for each in plan.perturbations] == [CREATE, UPDATE, "delete pods shop/a"]


def test_each_answer_is_given_to_all_writes_in_one_run() -> None:
    found = planned("answers", CREATE, CREATE, UPDATE)
    assert [each.perturbations[0].kind for each in found] == [
        "answer-429",
        "answer-500",
        "answer-503",
        "answer-504",
        "answer-lost",
    ]
    assert all([each.write for each in plan.perturbations] == [CREATE, UPDATE] for plan in found)


def test_each_used_right_is_taken_once() -> None:
    (plan,) = planned("rights", CREATE)
    assert plan.perturbations == (Perturbation("right-taken", right="list widgets.example.com", seconds=3.0),)


def test_the_server_is_behind_after_each_write() -> None:
    found = planned("stale", CREATE, UPDATE)
    assert [[each.kind for each in plan.perturbations] for plan in found] == [
        ["stale-restart"],
        ["stale-restart"],
        ["stale-watch", "stale-watch"],
    ]


def test_watches_end_expire_and_are_late() -> None:
    found = planned("watches", CREATE)
    assert [each.perturbations[0].kind for each in found] == [
        "watch-end",
        "watch-expire",
        "no-bookmarks",
        "late-events",
    ]
    assert found[-1].perturbations[0].resource == "widgets.example.com"


def test_the_operator_misses_the_state_between_two_changes() -> None:
    assert planned("unobserved") == [
        Plan((Perturbation("unobserved", step=1, until=3),)),
        Plan((Perturbation("unobserved", step=3, until=4),)),
    ]


def test_pods_are_lost_if_there_are_pods() -> None:
    assert planned("nodes") == []
    with_pods = finished(end=State({Name(PODS, "shop", "web-0"): [{}]}, {}))
    found = plans(with_pods, with_pods, SCENARIO, ["nodes"])
    assert found == [Plan((Perturbation("pods-lost", step=step),)) for step in (1, 2, 3, 4)]


def test_an_operator_without_writes_has_no_plan_for_writes() -> None:
    without_writes = [family for family in FAMILIES if family not in ("rights", "watches", "unobserved")]
    assert plans(finished(), finished(), SCENARIO, without_writes) == []
    assert plans(finished(CREATE), finished(CREATE), SCENARIO, []) == []
