"""Tests of the benchmark page: new results replace the old results of the same benchmark, and other results remain."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.report import Claim, report
from bench.support.table_page import main


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "benchmarks.md"


def ran(capsys: pytest.CaptureFixture[str], folder: Path, name: str, value: float) -> None:
    """Write a result file for a benchmark with this name."""
    folder.mkdir(exist_ok=True)
    report([Claim("keys handed out", value, 100.0, 0.5, "keys/s"), Claim("memory", 7.0, 10.0, 1.0, "MB", True)], [])
    (folder / f"{name}.txt").write_text("100,000 keys, which is no claim\n" + capsys.readouterr().out)


ROW = "| keys handed out | {} keys/s | 100 keys/s | {} | >= 0.5 | {} |"


def test_each_claim_is_a_row(tmp_path: Path, page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, tmp_path / "results", "workqueue", 60.0)
    main(tmp_path / "results", page)
    text = page.read_text()
    assert text.startswith("# Benchmarks\n")
    assert "\n\n## python -m bench.workqueue\n\n| | value |" in text
    assert ROW.format(60, "0.60", "ok") in text
    assert text.endswith("| memory | 7 MB | 10 MB | 0.70 | <= 1 | ok |\n")
    assert "no claim" not in text


def test_rows_of_other_benchmarks_are_kept(tmp_path: Path, page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, tmp_path / "first", "workqueue", 60.0)
    ran(capsys, tmp_path / "first", "memory", 70.0)
    main(tmp_path / "first", page)
    ran(capsys, tmp_path / "second", "workqueue", 40.0)
    ran(capsys, tmp_path / "second", "sqlite", 80.0)
    main(tmp_path / "second", page)
    text = page.read_text()
    names = [line.rsplit(".")[-1] for line in text.splitlines() if line.startswith("## ")]
    assert names == ["memory", "sqlite", "workqueue"]
    rows = [line for line in text.splitlines() if "keys handed out" in line]
    assert rows == [ROW.format(70, "0.70", "ok"), ROW.format(80, "0.80", "ok"), ROW.format(40, "0.40", "**missed**")]


def test_a_second_update_changes_nothing(tmp_path: Path, page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, tmp_path / "results", "workqueue", 60.0)
    main(tmp_path / "results", page)
    before = page.read_text()
    (tmp_path / "none").mkdir()
    main(tmp_path / "none", page)
    assert page.read_text() == before


def test_a_removed_benchmark_is_removed_from_the_page(
    tmp_path: Path, page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page.write_text("# Benchmarks\n\n## python -m bench.of_old\n\n| a | b |\n")
    ran(capsys, tmp_path / "results", "workqueue", 60.0)
    main(tmp_path / "results", page)
    assert "of_old" not in page.read_text()
