"""Tests that other users of the machine have no permissions on the project's files, and that too wide file modes are
narrowed.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from ctrlmgr.private_files import narrow


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def wide(folder: Path, *names: str) -> list[Path]:
    folder.chmod(0o755)
    files = [folder / name for name in names]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.parent.chmod(0o755)
        file.write_text("x")
        file.chmod(0o644)
    return files


def test_files_readable_by_others_are_restricted_and_reported(tmp_path: Path) -> None:
    files = wide(tmp_path, "ctrlmgr.db", "ctrlmgr.db-wal", "ctrlmgr.anchor", "pki/ca.key")
    with structlog.testing.capture_logs() as lines:
        narrow(tmp_path)
        narrow(tmp_path)
    assert [mode(file) for file in files] == [0o600] * 4
    assert (mode(tmp_path), mode(tmp_path / "pki")) == (0o700, 0o700)
    assert len(lines) == 1
    assert str(files[0]) in lines[0]["files"]


def test_a_file_outside_the_directory_is_restricted_if_named(tmp_path: Path) -> None:
    for name in ("data", "other"):
        (tmp_path / name).mkdir()
    (elsewhere,) = wide(tmp_path / "other", "log.sqlite")
    narrow(tmp_path / "data", [elsewhere, tmp_path / "missing"])
    assert mode(elsewhere) == 0o600


def test_foreign_files_in_the_directory_are_unchanged(tmp_path: Path) -> None:
    (note,) = wide(tmp_path, "note.txt")
    (tmp_path / "link.db").symlink_to(note)
    narrow(tmp_path)
    assert mode(note) == 0o644


def test_a_shared_directory_is_unchanged(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    narrow(tmp_path)
    assert mode(tmp_path) == 0o1777


@pytest.mark.parametrize("umask", [0o022, 0o000])
def test_commands_create_files_readable_by_their_user_only(tmp_path: Path, umask: int) -> None:
    database = tmp_path / "data" / "log.db"
    command = [sys.executable, "-m", "ctrlmgr", "migrate", "--database", f"sqlite:///{database}"]
    subprocess.run(
        command, check=True, capture_output=True, umask=umask, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    )
    assert (mode(database.parent), mode(database)) == (0o700, 0o600)
