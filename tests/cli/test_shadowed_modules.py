"""Tests of commands in a working directory with files that have the names of Python's standard modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
APP = """from ctrlmgr import App, Context, Kind
app = App("shop")
class Shop(Kind, api_version="example.com/v1"): ...
@app.controller(Shop)
def shops(shop: Shop, context: Context) -> None: ...
"""


@pytest.mark.parametrize("name", ["attr", "calendar", "click", "json", "logging", "queue", "secrets", "typing"])
def test_python_m_finds_its_modules(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text(APP)
    command = [sys.executable, "-m", "ctrlmgr", "crd", f"{name}.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "name: shops.example.com" in done.stdout


@pytest.mark.parametrize("name", ["operator", "types"])
def test_exec_starts_beside_modules_that_shadow_the_standard_library(
    run: Run, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / f"{name}.py").write_text(APP)
    assert run("exec", "--app", f"{name}.py", "--", "true").code == 0
