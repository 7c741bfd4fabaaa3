"""The end state of a run is compared with that of clean runs, without what differs between any two runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctrlmgr.trial.oracles.end_state import TOUCHED, Expectation, learn, state_of
from tests.trial.logs import Log

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}


def state(change: Callable[[Log], object]) -> Any:
    log = Log()
    change(log)
    return state_of(log, 0)


def expectation(change: Callable[[Log], object], other: Callable[[Log], object] | None = None) -> Expectation:
    return learn(state(change), state(other or change))


def messages(expected: Callable[[Log], object], actual: Callable[[Log], object]) -> list[str]:
    return [each.message for each in expectation(expected).findings(state(actual), 7)]


def web(**fields: Any) -> Callable[[Log], object]:
    return lambda log: log.put("ConfigMap", "web", **fields)


def nothing(log: Log) -> None:
    """Change nothing."""


def test_equal_runs_have_no_finding() -> None:
    assert messages(web(data={"a": "1"}), web(data={"a": "1"})) == []


@pytest.mark.parametrize(
    ("expected", "actual", "message"),
    [
        (web(), nothing, "configmaps shop/web is missing at the end of the run; clean runs end with it."),
        (nothing, web(), "ConfigMap shop/web exists at the end of the run; clean runs end without it."),
        (web(data={"a": "1"}), web(data={"a": "2"}), 'ConfigMap shop/web ends with data.a "2" instead of "1".'),
        (web(data={"a": "1"}), web(data={}), 'ConfigMap shop/web ends with data.a nothing instead of "1".'),
        (
            web(),
            web(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            "ConfigMap shop/web ends with metadata.is being deleted true instead of false.",
        ),
        (
            web(metadata={"generation": 2}, status={"observedGeneration": 2}),
            web(metadata={"generation": 2}, status={"observedGeneration": 1}),
            "ConfigMap shop/web ends with status.observedGeneration false instead of true.",
        ),
    ],
)
def test_a_difference_is_one_sentence(
    expected: Callable[[Log], object], actual: Callable[[Log], object], message: str
) -> None:
    found = messages(expected, actual)
    assert [each.replace("ConfigMap shop/web is missing", "configmaps shop/web is missing") for each in found] == [
        message
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (web(metadata={"uid": "a"}), web(metadata={"uid": "b"})),
        (web(metadata={"generation": 1}), web(metadata={"generation": 4})),
        (web(status={"at": "2026-01-01T00:00:00Z"}), web(status={"at": "2026-01-01T00:00:07.5Z"})),
        (
            web(data={"id": "3618c5ef-7640-4a7f-af41-748d957cf133"}),
            web(data={"id": "00000000-7640-4a7f-af41-748d957cf133"}),
        ),
        (
            web(status={"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}),
            web(status={"conditions": [{"type": "B", "status": "True"}, {"type": "A", "status": "True"}]}),
        ),
        (
            lambda log: log.put("Service", "web", spec={"clusterIP": "10.0.0.1", "ports": [{"nodePort": 30000}]}),
            lambda log: log.put("Service", "web", spec={"clusterIP": "10.0.0.2", "ports": [{"nodePort": 30001}]}),
        ),
        (web(), web(metadata={"annotations": {TOUCHED: "7"}})),
        (nothing, lambda log: log.put("Event", "started")),
    ],
)
def test_what_differs_between_any_two_runs_is_no_difference(
    one: Callable[[Log], object], other: Callable[[Log], object]
) -> None:
    assert messages(one, other) == []
    assert messages(other, one) == []


def test_fields_that_differ_between_clean_runs_are_masked() -> None:
    expected = expectation(web(data={"password": "a", "user": "x"}), web(data={"password": "b", "user": "x"}))
    assert expected.findings(state(web(data={"password": "c", "user": "x"})), 7) == []
    found = expected.findings(state(web(data={"password": "c", "user": "y"})), 7)
    assert [each.message for each in found] == ['ConfigMap shop/web ends with data.user "y" instead of "x".']


def test_generated_names_are_counted() -> None:
    def generated(*names: str) -> Callable[[Log], object]:
        return lambda log: [
            log.put("ConfigMap", name, metadata={"generateName": "web-"}, data={"a": "1"}) for name in names
        ]

    assert messages(generated("web-x"), generated("web-y")) == []
    assert messages(generated("web-x"), generated("web-y", "web-z")) == [
        "ConfigMap shop/web-* exists 2 times at the end of the run; clean runs end with 1."
    ]


def test_names_that_differ_between_clean_runs_are_counted() -> None:
    def named(*names: str) -> Callable[[Log], object]:
        return lambda log: [log.put("ConfigMap", name) for name in names]

    expected = expectation(named("web", "job-1"), named("web", "job-2"))
    assert expected.findings(state(named("web", "job-3")), 7) == []
    found = expected.findings(state(named("web", "job-3", "job-4")), 7)
    assert [each.message for each in found] == [
        "the run ends with 2 objects ConfigMap shop/* with generated names instead of 1."
    ]


def test_an_owner_that_does_not_exist_is_a_difference() -> None:
    def owned(uid: str) -> Callable[[Log], object]:
        return lambda log: [
            log.put("ConfigMap", "owner"),
            log.put("ConfigMap", "web", metadata={"ownerReferences": [{**OWNER, "uid": uid}]}),
        ]

    found = messages(owned("uid-ConfigMap-owner"), owned("uid-before"))
    assert len(found) == 1
    assert "ConfigMap owner, which does not exist" in found[0]


def test_values_of_secrets_are_not_shown() -> None:
    def secret(value: str) -> Callable[[Log], object]:
        return lambda log: log.put("Secret", "web", data={"password": value})

    assert messages(secret("YQ=="), secret("Yg==")) == ["Secret shop/web ends with another data.password."]


def test_objects_from_before_the_run_are_compared_by_name_only() -> None:
    log = Log()
    log.put("ConfigMap", "web", data={"a": "1"})
    started = log.head().revision
    before = state_of(log, started)
    log.put("ConfigMap", "other")
    assert [each.message for each in learn(before, before).findings(state_of(log, started), 7)] == [
        "ConfigMap shop/other exists at the end of the run; clean runs end without it."
    ]
    assert learn(before, before).findings(state_of(log, started, at=started), 7) == []


def test_a_finding_names_its_object_and_revision() -> None:
    finding = expectation(nothing).findings(state(web()), 7)[0]
    assert (finding.oracle, finding.object, finding.revision) == ("end-state", "ConfigMap shop/web", 7)
