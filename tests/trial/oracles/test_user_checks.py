"""Checks of the user in CEL and in Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.errors import SettingsError
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.oracles.kept_log import KeptLog
from ctrlmgr.trial.oracles.user_checks import Checks, load, parse
from tests.trial.oracles.played import Played, config_map, widget


@pytest.fixture(scope="module")
def log() -> KeptLog:
    played = Played()
    played.user_create(widget("a", spec={"size": 2}))
    for number in range(3):
        played.operator_create(config_map(f"a-{number}"))
    played.operator_delete("ConfigMap", "a-0")
    played.operator_patch("Widget", "a", {"status": {"ready": True}}, "/status")
    return played.kept()


def found(log: KeptLog, **check: str) -> list[Finding]:
    return Checks(parse({"checks": [check]}, "checks.yaml")).run(log)


def test_a_violated_always_names_the_first_revision(log: KeptLog) -> None:
    third = [each.event.revision for each in log.by_operator][2]
    always = "objects.ConfigMap.filter(c, c.metadata.name.startsWith('a-')).size() <= 2"
    [violation] = found(log, name="two maps", always=always)
    assert violation == Finding("user-check", f"The check 'two maps' is false at revision {third}.", "", third)


@pytest.mark.parametrize(
    "check",
    [
        {"always": "objects.ConfigMap.size() <= 4"},
        {"always": "objects['Widget'].all(w, w.spec.size == 2)"},
        {"always": "!has(objects.Gadget) || objects.Gadget.size() == 0"},
        {"eventually": "objects.Widget.exists(w, has(w.status) && w.status.ready)"},
        {"eventually": "objects.ConfigMap.exists(c, c.metadata.name == 'a-0')"},
    ],
)
def test_fulfilled_checks(log: KeptLog, check: dict[str, str]) -> None:
    assert found(log, **check) == []


def test_an_eventually_that_never_holds(log: KeptLog) -> None:
    [violation] = found(log, eventually="objects.Widget.size() == 5")
    assert violation.message == "The check 'objects.Widget.size() == 5' is not true at any revision."
    assert violation.revision == log.record.ended_at


def test_an_expression_without_a_value_is_a_violation(log: KeptLog) -> None:
    [violation] = found(log, always="objects.Widget.all(w, w.status.ready)")
    assert "cannot be evaluated (no such key: status)" in violation.message


@pytest.mark.parametrize(
    ("document", "error"),
    [
        (None, "a file of checks is a mapping whose key `checks` has a list of checks"),
        ({"checks": []}, "a file of checks is a mapping"),
        ({"checks": [{"name": "x"}]}, "check 1: a check has either `always` or `eventually`"),
        ({"checks": [{"always": "true", "eventually": "true"}]}, "check 1: a check has either"),
        ({"checks": [{"always": "true", "often": "x"}]}, "check 1: a check has either"),
        ({"checks": [{"always": "objects.("}]}, "check 1: always: compilation failed: ERROR"),
        ({"checks": [{"always": "1"}]}, "check 1: always: must evaluate to bool but got int"),
    ],
)
def test_wrong_checks_are_explained(document: Any, error: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(document, "checks.yaml")
    assert f"checks.yaml: {error}" in str(caught.value)


def test_checks_are_read_from_yaml(tmp_path: Path, log: KeptLog) -> None:
    file = tmp_path / "checks.yaml"
    file.write_text('checks: [{always: "objects.Widget.size() < 1"}]')
    assert len(load(file).run(log)) == 1
    file.write_text("checks: [")
    with pytest.raises(SettingsError, match="cannot be read as YAML"):
        load(file)


def test_functions_are_read_from_python(tmp_path: Path, log: KeptLog) -> None:
    file = tmp_path / "checks.py"
    file.write_text("def check_writes(log):\n    if log.by_operator:\n        yield 'the operator wrote something'\n")
    assert load(file).run(log) == [Finding("user-check", "check_writes: the operator wrote something")]
    file.write_text("x = 1")
    with pytest.raises(SettingsError, match="contains no function whose name begins with check_"):
        load(file)
    file.write_text("1 / 0")
    with pytest.raises(SettingsError, match="cannot be run: ZeroDivisionError: division by zero"):
        load(file)


def test_a_function_may_return_findings(log: KeptLog) -> None:
    def check(log: KeptLog) -> Iterator[Finding]:
        yield Finding("mine", "wrong", "Widget shop/a", 3)

    assert Checks(functions=(("check", check),)).run(log) == [Finding("mine", "wrong", "Widget shop/a", 3)]
