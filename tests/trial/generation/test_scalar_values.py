"""Numbers and strings near the limits are proposed on both sides of each limit."""

from __future__ import annotations

from random import Random

import pytest

from ctrlmgr.extensions.formats import format_named
from ctrlmgr.trial.generation.scalar_values import _SAMPLES, numbers, strings


def test_numbers_surround_each_limit() -> None:
    assert {2, 3, 4, 8, 9, 10} <= {*numbers({"type": "integer", "minimum": 3, "maximum": 9})}
    assert {2**31 - 1, 2**31} <= {*numbers({"type": "integer", "format": "int32"})}
    assert {49, 50, 51} <= {*numbers({"type": "integer"}, hints=["x", 50, True])}


def test_the_first_number_is_the_most_usual_one() -> None:
    assert next(numbers({"type": "integer", "minimum": 3})) == 3
    assert next(numbers({"type": "number", "maximum": 2.5})) == 2.5
    assert next(numbers({"type": "integer"})) == 0


def test_multiples_and_one_value_between_them() -> None:
    found = [*numbers({"type": "number", "multipleOf": 0.25, "minimum": 0.3})]
    assert found[0] == 0.5
    assert 0.625 in found
    assert next(numbers({"type": "integer", "multipleOf": 10, "minimum": 11})) == 20


def test_strings_have_lengths_at_each_limit() -> None:
    lengths = {len(each) for each in strings({"type": "string", "minLength": 3, "maxLength": 7}, Random(1))}
    assert lengths == {0, 2, 3, 4, 6, 7, 8}
    long = {"type": "string", "maxLength": 1_000_000}
    assert max(len(each) for each in strings(long, Random(1))) < 100


def test_hints_are_proposed() -> None:
    found = [*strings({"type": "string"}, Random(1), hints=["large", 12])]
    assert "large" in found
    assert 12 in {len(each) for each in found}


def test_strings_of_a_pattern_and_strings_that_narrowly_miss_it() -> None:
    found = [*strings({"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, Random(1))]
    assert found[0].isalpha()
    assert any(len(each) == 5 and each.isalpha() for each in found)
    assert any(each.endswith("!") for each in found)


@pytest.mark.parametrize("name", _SAMPLES)
def test_a_format_accepts_all_samples_except_the_last(name: str) -> None:
    accepts = format_named(name)
    assert accepts is not None
    *valid, refused = _SAMPLES[name]
    assert valid
    assert all(accepts(each) for each in valid)
    assert not accepts(refused)
