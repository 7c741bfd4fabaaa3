"""Tests of the public Python interface: its names are typed and documented, and importing it loads no unnecessary
modules.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ctrlmgr
import ctrlmgr.testing

ROOT = Path(__file__).parents[2]
SURFACE = (Path(__file__).parent / "public.txt").read_text().split()


def test_the_public_api_equals_the_checked_in_list() -> None:
    names = [name for name in ctrlmgr.__all__ if not name.startswith("_")]
    testing = [f"testing.{name}" for name in ctrlmgr.testing.__all__]
    assert sorted([*names, *testing]) == sorted(SURFACE), "a change of the public surface is a decision: public.txt"


@pytest.mark.parametrize("name", SURFACE)
def test_public_names_exist_with_docstrings(name: str) -> None:
    module, _, last = name.rpartition(".")
    found = getattr(ctrlmgr.testing if module else ctrlmgr, last)
    assert found.__doc__


@pytest.mark.parametrize(
    ("stub", "module"), [("ctrlmgr/__init__.pyi", ctrlmgr), ("ctrlmgr/testing/__init__.pyi", ctrlmgr.testing)]
)
def test_type_checkers_see_the_same_names(stub: str, module: object) -> None:
    tree = ast.parse((ROOT / stub).read_text())
    names = {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert names == {name for name in getattr(module, "__all__") if not name.startswith("_")}  # noqa: B009  # of any module


@pytest.mark.parametrize("name", [name for name in SURFACE if not name.startswith("testing.")])
def test_each_public_name_is_documented(name: str) -> None:
    pages = "".join(
        (ROOT / "docs" / "operators" / page).read_text() for page in ("kinds.md", "controllers.md", "admission.md")
    )
    assert f"`{name}" in pages


def test_importing_ctrlmgr_loads_few_modules() -> None:
    script = "import sys, ctrlmgr; print([name for name in sys.modules if name.startswith(('ctrlmgr.', 'msgspec'))])"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert told.stdout.strip() == "[]"


def test_unknown_attributes_are_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Shop'"):
        ctrlmgr.Shop  # type: ignore[attr-defined]  # noqa: B018  # that is what is tested
    assert "App" in dir(ctrlmgr)
