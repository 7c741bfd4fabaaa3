from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_a_controller_of_ones_own_shows_all_reasons_of_its_write(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "limits_controller.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "1 ADDED    namespaces shop by alice",
        "2 MODIFIED namespaces shop by alice",
        "3 ADDED    configmaps shop/limits by system:controller:limits because of revisions [1, 2]",
    ]


def test_every_example_is_run_here() -> None:
    assert [path.name for path in sorted(EXAMPLES.glob("*.py"))] == ["limits_controller.py"]
