"""Tests of regular expressions: matches and errors are the same as in Go, and the number of steps is limited."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.regexp import PatternError, compiled
from ctrlmgr.work_budget import TooMuchWork, bounded
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
def test_errors_of_invalid_patterns_equal_gos(pattern: str, words: str) -> None:
    with pytest.raises(PatternError) as refused:
        compiled(pattern)
    assert str(refused.value) == f"error parsing regexp: {words}"


@pytest.mark.parametrize(("pattern", "matching", "other"), MATCHED)
def test_a_pattern_matches_like_in_go(pattern: str, matching: str, other: str) -> None:
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
def test_if_python_and_go_agree_on_a_pattern_they_agree_on_every_text(pattern: str, text: str) -> None:
    assert compiled(pattern).search(text) == bool(re.search(pattern.replace("$", r"\Z"), text, re.ASCII))


def test_every_search_takes_linear_time() -> None:
    pattern = compiled("^(a+)+$")  # a backtracking matcher would not end

    def search(text: str) -> None:
        assert not pattern.search(text)

    assert growth(lambda size: "a" * size + "b", search, 10_000) <= WORST


BITS = "".join("ab"[at * at % 7 < 3] for at in range(10_000))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a|b)*a(a|b){999}$", BITS),
        ("(?:[a-z]{1,1000}b)", "x" * 10_000),
        (r"^(\p{Lu}|\P{Lu})*$", "".join(map(chr, range(0x4E00, 0x9E00)))),
        ("|".join(f"{letter}{{1000}}" for letter in "abcdefghijklmnopqrstuvwxyz"), "a"),
    ],
)
def test_a_search_with_too_many_steps_is_stopped(pattern: str, text: str) -> None:
    with pytest.raises(TooMuchWork):
        compiled(pattern).search(text)


@pytest.mark.parametrize(("pattern", "text"), [("a*b|a", "a" * 10_000), ("a", "b" * 100_000), ("[a-z]{1,500}c", BITS)])
def test_finding_all_matches_is_stopped_at_the_same_limit(pattern: str, text: str) -> None:
    with pytest.raises(TooMuchWork):
        compiled(pattern).spans(text)


def test_steps_are_drawn_from_the_enclosing_budget() -> None:
    def search_often() -> None:
        for at in range(100):
            compiled(f"^b{{{at}}}$").search("b" * at)

    with pytest.raises(TooMuchWork), bounded(1000):
        search_often()
    search_often()


def test_a_long_text_alone_does_not_exceed_the_limit() -> None:
    assert compiled("^[a-z ]*$").search("some words " * 50_000)


@given(st.sampled_from(_SHARED[:1] + _SHARED[2:]), st.text("abcfoxAB-09 \n", max_size=12))
def test_matches_have_the_positions_python_and_go_agree_on(pattern: str, text: str) -> None:
    found = [match.span() for match in re.finditer(pattern.replace("$", r"\Z"), text, re.ASCII)]
    # Python finds an empty match directly after a match, and Go does not
    wanted = [span for at, span in enumerate(found) if span[0] != span[1] or at == 0 or found[at - 1][1] != span[0]]
    assert compiled(pattern).spans(text) == wanted
