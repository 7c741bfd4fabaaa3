from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.engine.patch.go_value import go_type, json_type, plain


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1, "x y", None], "a": {"c": True}}, "map[a:map[c:true] b:[1 x y <nil>]]"),
        ({}, "map[]"),
        ([], "[]"),
        (False, "false"),
        (-3, "-3"),
        (0.0, "0"),
        (1.5, "1.5"),
        (-0.25, "-0.25"),
        (100000.0, "100000"),
        (1000000.0, "1e+06"),
        (123456789.0, "1.23456789e+08"),
        (-2.5e21, "-2.5e+21"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1.25e-7, "1.25e-07"),
    ],
)
def test_values_are_formatted_like_go(value: Any, text: str) -> None:
    assert plain(value) == text


def test_types_have_gos_names() -> None:
    values: list[Any] = [{}, [], "", True, 1, 1.0, None]
    assert list(map(go_type, values)) == [
        "map[string]interface {}", "[]interface {}", "string", "bool", "int64", "float64", "%!s(<nil>)"
    ]  # fmt: skip
    assert list(map(json_type, values)) == ["object", "array", "string", "bool", "number", "number", "null"]
