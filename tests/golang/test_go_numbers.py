from __future__ import annotations

from collections.abc import Callable

import pytest

from ctrlmgr.golang.go_numbers import parse_int, parse_uint, write_float

SYNTAX, RANGE = "invalid syntax", "value out of range"
MANY = "9" * 5000


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (parse_int, "0", 0),
        (parse_int, "+7", 7),
        (parse_int, "-0", 0),
        (parse_int, "-9223372036854775808", -(2**63)),
        (parse_int, "9223372036854775807", 2**63 - 1),
        (parse_int, "0" * 5000 + "9223372036854775807", 2**63 - 1),
        (parse_int, "9223372036854775808", RANGE),
        (parse_int, "-9223372036854775809", RANGE),
        (parse_int, "-" + MANY, RANGE),
        (parse_int, "", SYNTAX),
        (parse_int, "+", SYNTAX),
        (parse_int, "--1", SYNTAX),
        (parse_int, "1_0", SYNTAX),
        (parse_int, " 1", SYNTAX),
        (parse_int, "0x1", SYNTAX),
        (parse_int, "١", SYNTAX),
        (parse_uint, "0", 0),
        (parse_uint, "18446744073709551615", 2**64 - 1),
        (parse_uint, "0" * 5000 + "1", 1),
        (parse_uint, "18446744073709551616", RANGE),
        (parse_uint, MANY, RANGE),
        (parse_uint, "-1", SYNTAX),
        (parse_uint, "+1", SYNTAX),
        (parse_uint, "1.5", SYNTAX),
        (parse_uint, "", SYNTAX),
    ],
)
def test_numbers(read: Callable[[str], int], text: str, expected: int | str) -> None:
    if isinstance(expected, int):
        assert read(text) == expected
        return
    with pytest.raises(ValueError, match=expected) as refused:
        read(text)
    name = "ParseInt" if read is parse_int else "ParseUint"
    assert str(refused.value) == f'strconv.{name}: parsing "{text}": {expected}'


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (3.0, "3"),
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (100000.0, "100000"),
        (1e6, "1e+06"),
        (1234567.0, "1.234567e+06"),
        (123456.5, "123456.5"),
        (1e-4, "0.0001"),
        (-2.5e-5, "-2.5e-05"),
        (1e21, "1e+21"),
        (1e300, "1e+300"),
        (9007199254740993.0, "9.007199254740992e+15"),
    ],
)
def test_a_float_is_formatted_like_go(number: float, text: str) -> None:
    assert write_float(number) == text
