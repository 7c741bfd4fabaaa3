"""Tests that the glossary defines only words that the code uses as names."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TERMS = re.findall(r"\*\*([a-z ]+)\*\*", (ROOT / "docs" / "glossary.md").read_text())


@pytest.fixture(scope="module")
def words() -> set[str]:
    """The words in the names of functions, classes and attributes of `ctrlmgr`; two adjacent words of a name also count
    as one entry.
    """
    found: set[str] = set()
    for path in (ROOT / "ctrlmgr").rglob("*.py"):
        for name in set(re.findall(r"(?:\bdef |\bclass |\bself\.)(\w+)", path.read_text())):
            parts = [each.lower() for each in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
            found.update(parts, map("".join, pairwise(parts)))
    return found


@pytest.mark.parametrize("term", TERMS)
def test_a_glossary_term_is_a_name_in_the_code(term: str, words: set[str]) -> None:
    assert term.replace(" ", "") in words
