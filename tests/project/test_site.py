"""Tests that the navigation of the documentation site contains every page once.

`scripts/docs` builds the site and checks links and anchors.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAVIGATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]


def test_every_page_is_in_the_navigation_once() -> None:
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    named = re.findall(r"[\w/-]+\.md", NAVIGATION)
    assert sorted(named) == sorted(pages)


def test_the_parts_follow_diataxis() -> None:
    parts = re.findall(r"^  - ([^:\n]+):", NAVIGATION, re.MULTILINE)
    assert parts == ["Home", "Tutorials", "How-to guides", "Reference", "Explanation"]


def test_ci_builds_the_site() -> None:
    assert "\nscripts/docs " in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
