"""`ctrlmgr record` and a file that exists already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctrlmgr.cli import ExitCode
from tests.cli.conftest import Run
from tests.recording.samples import SMALL, small_lines, write_lines


@pytest.fixture
def url(run: Run, tmp_path: Path) -> str:
    """The URL of a log with the small recording in it."""
    url = f"sqlite:///{tmp_path}/incident.db"
    assert run("import", str(SMALL), "--database", url).code == 0
    return url


def recorded(run: Run, url: str, path: Path, *flags: str) -> str:
    finished = run("record", "--database", url, "-o", str(path), *flags)
    assert finished.code == 0, finished.err
    return finished.err


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def test_a_file_that_exists_is_left_alone(run: Run, url: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("precious")
    refused = run("record", "--database", url, "-o", str(path))
    assert refused.code == ExitCode.USAGE
    assert f"{path} exists; --append goes on in it, --force writes over it" in refused.err
    assert path.read_text() == "precious"


def test_an_empty_file_is_as_good_as_none(run: Run, url: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.touch()
    recorded(run, url, path)
    assert len(lines(path)) == 421


def test_it_is_written_over_if_one_says_so(run: Run, url: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("no recording")
    recorded(run, url, path, "--force")
    assert len(lines(path)) == 421


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz"])
def test_it_is_gone_on_with_behind_what_it_says(run: Run, url: str, tmp_path: Path, name: str) -> None:
    whole, part = tmp_path / "whole.jsonl", tmp_path / name
    recorded(run, url, whole)
    beginning = tmp_path / "beginning.db"
    assert run("fork", "--at", "500", "--from", url, "--database", f"sqlite:///{beginning}").code == 0
    recorded(run, f"sqlite:///{beginning}", part)
    assert "up to revision 772" in recorded(run, url, part, "--append")
    assert "0 changes" in recorded(run, url, part, "--append")
    again = f"sqlite:///{tmp_path}/again.db"
    assert run("import", str(part), "--database", again).code == 0
    for at in ("400", "600", "772"):
        asked = ("get", "endpoints", "-A", "--at", at, "-o", "json", "--database")
        assert json.loads(run(*asked, again).out) == json.loads(run(*asked, url).out)


def test_what_cannot_be_gone_on_with_is_refused_and_stays(run: Run, url: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write_lines(path, [*small_lines()[:9], b"{"])
    before = path.read_bytes()
    refused = run("record", "--database", url, "-o", str(path), "--append")
    assert refused.code != 0
    assert "Traceback" not in refused.err
    assert path.read_bytes() == before
    shorter = f"sqlite:///{tmp_path}/shorter.db"
    assert run("fork", "--at", "500", "--from", url, "--database", shorter).code == 0
    recorded(run, url, path, "--force")
    before = path.read_bytes()
    refused = run("record", "--database", shorter, "-o", str(path), "--append")
    assert (refused.code, path.read_bytes()) == (ExitCode.USAGE, before)
    assert "behind the 772 at which the file ends" in refused.err


def test_a_further_file_takes_no_name_that_is_taken(run: Run, url: str, tmp_path: Path) -> None:
    (tmp_path / "r.2.jsonl").write_text("precious")
    recorded(run, url, tmp_path / "r.jsonl", "--rotate", "200KB")
    assert (tmp_path / "r.2.jsonl").read_text() == "precious"
    assert (tmp_path / "r.3.jsonl").exists()


@pytest.mark.parametrize("flags", [["--append", "--force"], ["--append", "--rotate", "1MB"]])
def test_what_cannot_be_meant_together_is_refused(run: Run, url: str, tmp_path: Path, flags: list[str]) -> None:
    refused = run("record", "--database", url, "-o", str(tmp_path / "r.jsonl"), *flags)
    assert (refused.code, (tmp_path / "r.jsonl").exists()) == (ExitCode.USAGE, False)
