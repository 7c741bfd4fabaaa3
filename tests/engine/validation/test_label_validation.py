from typing import Any

import pytest

from ctrlmgr.api.field import Path
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_label_selector, validate_labels

SELECTOR = Path("spec.selector")


def test_keys_and_values_are_checked_under_the_path_of_the_map() -> None:
    errors = validate_labels({"bad key!": "x", "ok": "bad value!"}, Path("metadata.labels"))
    assert [(error.field, error.body) for error in errors] == [
        ("metadata.labels", f'Invalid value: "bad key!": {name_formats.qualified_name("bad key!")[0]}'),
        ("metadata.labels", f'Invalid value: "bad value!": {name_formats.label_value("bad value!")[0]}'),
    ]


def requirement(operator: str, *values: str, key: str = "a") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("expression", "messages"),
    [
        (requirement("In", "x"), []),
        (requirement("Exists"), []),
        (requirement("In"), ["values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
        (
            requirement("DoesNotExist", "x"),
            ["values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"],
        ),
        (requirement("Gt", "1"), ['operator: Invalid value: "Gt": not a valid selector operator']),
        (
            requirement("In", "x", "-"),
            [f'values[1]: Invalid value: "-": {name_formats.label_value("-")[0]}'],
        ),
        (
            requirement("Exists", key="/"),
            [f'key: Invalid value: "/": {each}' for each in name_formats.qualified_name("/")],
        ),
    ],
)
def test_a_label_selector_expression(expression: dict[str, Any], messages: list[str]) -> None:
    errors = validate_label_selector({"matchExpressions": [expression]}, SELECTOR)
    assert [error.message for error in errors] == [f"spec.selector.matchExpressions[0].{each}" for each in messages]


def test_match_labels_are_checked_and_an_absent_selector_is_valid() -> None:
    (error,) = validate_label_selector({"matchLabels": {"a": "-"}}, SELECTOR)
    assert error.field == "spec.selector.matchLabels"
    assert validate_label_selector(None, SELECTOR) == []


def test_unchanged_values_are_valid() -> None:
    selector = {"matchExpressions": [requirement("In", "-")]}
    assert validate_label_selector(selector, SELECTOR, invalid_values_allowed=True) == []
