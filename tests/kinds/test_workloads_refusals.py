"""Tests of refused workloads; the tables in `refusals` contain the cases."""

from __future__ import annotations

from functools import cache

import pytest

from ctrlmgr.engine.features import gates
from tests.kinds.refusals import VALID, Case, Change, cases, patched
from tests.kinds.stage import staged

CASES = cases()


stage = cache(staged)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_invalid_objects_have_kubernetes_errors(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    for gate in case.gates:
        monkeypatch.setitem(gates.ENABLED, gate, True)
    on = stage(case.kind)
    fields = VALID[case.kind]
    for change in case.create:
        fields = patched(fields, change)
    if not case.updates:
        assert error_lines(on.refusal(fields)) == case.causes
        return
    current = on.create(fields)
    *taken, last = case.updates
    for change in taken:
        current = on.update(current, *changed_request(current, change))
    assert error_lines(on.update_refusal(current, *changed_request(current, last))) == case.causes


def changed_request(current: dict[str, object], change: Change) -> tuple[dict[str, object], str]:
    if change.part == "container":
        return patched(current, change), ""
    return change.patch, change.part


def error_lines(causes: list[tuple[str, str]]) -> list[str]:
    return [f"{field}: {message}" for field, message in causes]
