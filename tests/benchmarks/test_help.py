from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from bench.report import run

PROGRAMS = [path for path in sorted(Path(__file__).parents[2].glob("bench/*.py")) if "import Claim" in path.read_text()]


def test_help_describes_the_benchmark_and_measures_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--help"])
    with pytest.raises(SystemExit) as ended:
        run(lambda arguments: pytest.fail("it was run"), "Measures something.")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("Measures something.\n")


def test_without_help_the_benchmark_runs_with_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--check"])
    with pytest.raises(SystemExit) as ended:
        run(lambda arguments: len(arguments) + 6, "Measures something.")
    assert ended.value.code == 7


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_every_benchmark_has_help(path: Path) -> None:
    calls = {ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)}
    assert calls & {"run", "argparse.ArgumentParser"}, f"{path} has no --help"
