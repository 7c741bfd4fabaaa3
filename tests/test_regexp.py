"""Patterns are Go's: what they match, what is refused and with which words, and how long it takes at most."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.regexp import PatternError, compiled
from tests.robustness.attack.growth import WORST, growth

REFUSED = [
    ("(", "missing closing ): `(`"),
    (")", "unexpected ): `)`"),
    ("a**", "invalid nested repetition operator: `**`"),
    ("x{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
    ("*a", "missing argument to repetition operator: `*`"),
    ("a|*", "missing argument to repetition operator: `*`"),
    ("[a", "missing closing ]: `[a`"),
    ("[z-a]", "invalid character class range: `z-a`"),
    ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
    (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
    ("a{1001}", "invalid repeat count: `{1001}`"),
    ("a{2,1}", "invalid repeat count: `{2,1}`"),
    ("(a{100}){100}", "invalid repeat count: `{100}`"),
    ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
    ("(?P<n", "invalid named capture: `(?P<n`"),
    ("(?P<x y>a)", "invalid named capture: `(?P<x y>`"),
    ("a\\", "trailing backslash at end of expression: ``"),
    (r"\q", r"invalid escape sequence: `\q`"),
    (r"\1", r"invalid escape sequence: `\1`"),
]

MATCHED = [
    (r"^\d+$", "12", "1a"),
    ("a$", "ba", "a\n"),
    ("(?m)^b$", "a\nb\nc", "ab"),
    ("(?s)a.b", "a\nb", "ab"),
    ("a.b", "axb", "a\nb"),
    ("(?i)ABC", "xabcx", "ab"),
    ("(?i:A)b", "ab", "aB"),
    (r"\bfoo\b", "a foo b", "afoob"),
    (r"\Qa.b\E", "a.b", "axb"),
    ("[[:alpha:]_]+-", "a_-", "1-"),
    ("[^[:^digit:]]", "5", "a"),
    (r"^\p{Lu}\P{Lu}$", "Ab", "AB"),
    (r"^\p{Greek}$", "λ", "l"),
    (r"^[\w.-]{2,3}$", "a-b", "a b"),
    (r"^\x41\x{1F600}$", "A\U0001f600", "A"),
    ("^(?P<name>ab)+$", "abab", "aba"),
    ("^(?:a|ab)(?:c|bcd)$", "abcd", "abc d"),
    ("a{,2}", "a{,2}", "aa"),
]


@pytest.mark.parametrize(("pattern", "words"), REFUSED)
def test_what_go_refuses_is_refused_in_its_words(pattern: str, words: str) -> None:
    with pytest.raises(PatternError) as refused:
        compiled(pattern)
    assert str(refused.value) == f"error parsing regexp: {words}"


@pytest.mark.parametrize(("pattern", "matching", "other"), MATCHED)
def test_a_pattern_matches_what_it_matches_in_go(pattern: str, matching: str, other: str) -> None:
    assert compiled(pattern).search(matching)
    assert not compiled(pattern).search(other)


_SHARED = [
    "^a+$",
    "^(a|b)*c",
    r"\bfoo\b",
    "(?i)abc",
    "x*",
    "a??b",
    "^(ab){2,}$",
    "[^a]b",
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
]


@given(st.sampled_from(_SHARED), st.text("abcfoxAB-09 \n", max_size=12))
def test_where_python_and_go_agree_on_a_pattern_they_agree_on_every_text(pattern: str, text: str) -> None:
    assert compiled(pattern).search(text) == bool(re.search(pattern.replace("$", r"\Z"), text, re.ASCII))


def test_no_pattern_makes_a_search_take_more_than_linear_time() -> None:
    pattern = compiled("^(a+)+$")  # backtracking would not end

    def search(text: str) -> None:
        assert not pattern.search(text)

    assert growth(lambda size: "a" * size + "b", search, 10_000) <= WORST
