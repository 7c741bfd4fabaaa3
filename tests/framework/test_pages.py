"""Runs the Python code on the documentation pages for operator developers, page by page, and the tests that these pages
contain.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ctrlmgr import App
from ctrlmgr.testing import Harness

PAGES = sorted((Path(__file__).parents[2] / "docs" / "operators").glob("*.md"))


@pytest.fixture
def module() -> Iterator[ModuleType]:
    """The module in which the code of a page runs; msgspec needs a module to resolve annotations."""
    made = ModuleType("page")
    sys.modules["page"] = made
    yield made
    del sys.modules["page"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.stem))
def test_the_python_of_the_pages_runs(page: Path, module: ModuleType) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = vars(module)
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    for test in tests:
        test()
    apps = {id(value): value for value in names.values() if isinstance(value, App)}
    for app in apps.values():
        Harness(app)
    assert bool(blocks) == (page.stem not in ("words", "cluster", "install", "first-operator"))
