"""Tests of device selectors: allowed names and the cost of expressions."""

from __future__ import annotations

import pytest

from ctrlmgr.api.field import ROOT
from ctrlmgr.engine.cel_functions import DEVICE_FUNCTIONS
from ctrlmgr.engine.features import gates
from ctrlmgr.expressions.environment import Environment
from ctrlmgr.expressions.types import DYN
from ctrlmgr.expressions.values import EvalError
from ctrlmgr.kinds.resource.selectors import validate_selectors

DEAR = " && ".join(["device.attributes.all(d, device.attributes[d].all(a, device.attributes.exists(e, e == d)))"] * 12)


def selector_errors(expression: str) -> list[str]:
    return [each.body for each in validate_selectors([{"cel": {"expression": expression}}], ROOT)]


@pytest.mark.parametrize(
    "expression",
    [
        "device.driver == 'd.x'",
        "device.attributes['d.x'].model",
        "device.attributes['d.x'].model == 'm' && 'serial' in device.attributes['d.x']",
        "device.capacity['d.x'].memory.compareTo(quantity('1Gi')) >= 0",
        "cel.bind(own, device.attributes['d.x'], own.fast && own.version.isGreaterThan(semver('1.0.0')))",
        "device.allowMultipleAllocations",
    ],
)
def test_selectors_can_read_attributes_of_a_device(expression: str) -> None:
    assert selector_errors(expression) == []


def test_a_bound_name_must_be_an_identifier() -> None:
    (body,) = selector_errors("cel.bind(a.b, 1, true)")
    assert "1:11: cel.bind() variable names must be simple identifiers" in body


def test_a_selector_returns_a_boolean() -> None:
    words = "must evaluate to bool or the unknown type, not map(string, google.protobuf.Any)"
    assert selector_errors("device.attributes['d.x']") == [f"Invalid value: \"device.attributes['d.x']\": {words}"]


def test_the_cost_and_the_length_of_a_selector_are_limited() -> None:
    assert selector_errors(DEAR) == ["Forbidden: too complex, exceeds cost limit"]
    assert selector_errors(f"{' ' * 10240}true") == ["Too long: may not be more than 10240 bytes"]


def test_the_feature_gate_enables_multiple_allocations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gates.ENABLED, "DRAConsumableCapacity", False)
    (body,) = selector_errors("device.allowMultipleAllocations")
    assert "undefined field 'allowMultipleAllocations'" in body


def test_the_feature_gate_enables_list_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    looped, included = (
        "device.attributes['d.x'].models.all(m, m == 'a')",
        "device.attributes['d.x'].models.includes('a')",
    )
    assert "expression of type 'any' cannot be range of a comprehension" in selector_errors(looped)[0]
    assert "undeclared reference to 'includes'" in selector_errors(included)[0]
    monkeypatch.setitem(gates.ENABLED, "DRAListTypeAttributes", True)
    assert [selector_errors(looped), selector_errors(included), selector_errors("device.attributes['d.x'].models")] == [
        [],
        [],
        [],
    ]


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [(["a", "b"], True), (["a"], False), ("b", True), ("a", False), (["a"] * 48 + ["b"], None)],
)
def test_includes_matches_attributes(attribute: object, expected: bool | None) -> None:
    expression = Environment({"a": DYN}, DEVICE_FUNCTIONS).compile("a.includes('b')")
    if expected is None:
        with pytest.raises(EvalError, match="cannot be applied to lists longer than 48 values"):
            expression.evaluate({"a": attribute})
    else:
        assert expression.evaluate({"a": attribute})[0] is expected
