"""Tests of files that are reloaded when they change: certificates, tokens, configurations and signing keys."""

from __future__ import annotations

import os
from pathlib import Path

import structlog.testing

from ctrlmgr.authentication.followed_files import FollowedFiles
from ctrlmgr.errors import SettingsError


class NumberFile:
    """A followed file whose content is a number."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.counted: list[str] = []
        self.followed = FollowedFiles("numbers", [file], self.counted.append)
        self.number = int(file.read_text())

    def reload(self) -> bool:
        return self.followed.reload(self.take)

    def take(self) -> bool:
        try:
            number = int(self.file.read_text())
        except (OSError, ValueError) as error:
            raise SettingsError(f"{self.file}: {error}") from error
        changed = number != self.number
        self.number = number
        return changed


def test_a_changed_file_is_loaded_once(tmp_path: Path) -> None:
    file = tmp_path / "n"
    file.write_text("1")
    numbers = NumberFile(file)
    assert not numbers.reload(), "nothing changed"
    file.write_text("22")
    assert (numbers.reload(), numbers.number, numbers.reload()) == (True, 22, False)
    file.write_text("022")
    assert not numbers.reload(), "it says what it said"
    assert numbers.counted == ["success"]


def test_an_invalid_file_is_logged_once_and_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "n"
    file.write_text("1")
    numbers = NumberFile(file)
    with structlog.testing.capture_logs() as told:
        for broken in (lambda: file.write_text("one"), file.unlink):
            broken()
            assert (numbers.reload(), numbers.reload(), numbers.number) == (False, False, 1)
        file.write_text("3")
        assert (numbers.reload(), numbers.number) == (True, 3)
    assert numbers.counted == ["failure", "failure", "success"]
    assert [each["log_level"] for each in told] == ["warning", "warning", "info"]
    assert "invalid literal" in told[0]["error"]


def test_a_replaced_file_has_changed(tmp_path: Path) -> None:
    file, other = tmp_path / "n", tmp_path / "other"
    file.write_text("1")
    other.write_text("2")
    numbers = NumberFile(file)
    status = file.stat()
    other.rename(file)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (numbers.reload(), numbers.number) == (True, 2), "same size, same time"
