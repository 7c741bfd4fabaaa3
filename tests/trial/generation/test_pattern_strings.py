"""Generated strings match their pattern, and have the requested length."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.trial.generation.pattern_strings import matches, matching_strings
from tests.trial.generation.kinds import QUANTITY

PATTERNS = [
    r"^\d+\.\d+\.\d+$",
    QUANTITY,
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    r"^(0|(([0-9]+)w)?(([0-9]+)d)?)$",
    "^(True|False|Unknown)$",
    "[^/]+",
    "(?i)^abc$",
    r"^\S+@\S+$",
    r"^\p{Lu}+$",
    r"\bword\b",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_each_string_matches(pattern: str, seed: int) -> None:
    found = matching_strings(pattern, Random(seed), count=3)
    assert found
    assert len({*found}) == len(found)
    assert all(matches(pattern, each) for each in found)


@settings(deadline=None)
@given(seed=st.integers(0, 1_000), least=st.integers(0, 30))
def test_strings_have_the_requested_length(seed: int, least: int) -> None:
    found = matching_strings("^[a-z]+(-[a-z]+)*$", Random(seed), least=least, most=least + 20, count=2)
    assert found
    assert all(least <= len(each) <= least + 20 for each in found)


def test_an_impossible_pattern_has_no_strings() -> None:
    assert matching_strings("^a{3}$", Random(1), most=2) == []
    assert matching_strings("(", Random(1)) == []
    assert not matches("(", "(")


def test_equal_random_numbers_give_equal_strings() -> None:
    assert matching_strings(QUANTITY, Random(7), count=3) == matching_strings(QUANTITY, Random(7), count=3)
