"""Tests that the table of Kubernetes' conformance tests names each test function in this folder exactly once."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "custom-resources.md"
ROW = re.compile(r"^\| (.+) \| `(test_\w+)\.py::(test_\w+)` \|$", re.MULTILINE)
TITLES = 22
"""The titles of Kubernetes 1.36's conformance tests of CustomResourceDefinitions that need no node."""


def test_every_conformance_test_has_an_equivalent() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert len(rows) == len({title for title, _, _ in rows}) == len({name for _, _, name in rows}) == TITLES
    for _, module, name in rows:
        assert callable(getattr(importlib.import_module(f"{__package__}.{module}"), name))
