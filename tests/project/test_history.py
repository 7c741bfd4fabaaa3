"""Tests of the form and length of the changelog, and of commit messages."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
SECTIONS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
LONGEST = 60


def test_the_changelog_is_ordered_by_version_and_kind_of_change() -> None:
    versions = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", version) for version in versions[1:])
    for version in CHANGELOG.split("\n## ")[1:]:
        titles = re.findall(r"^### (.*)$", version, re.MULTILINE)
        assert titles == [title for title in SECTIONS if title in titles]


def test_the_unreleased_part_is_short() -> None:
    unreleased = CHANGELOG.split("\n## ")[1]
    assert len(unreleased.strip().splitlines()) <= LONGEST, "merge entries, and drop what users do not notice"


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("server: reject bodies without a length\n\nThey cost memory.\n", ""),
        ("server, cli: reject bodies\n# a comment of git\n", ""),
        ("Merge branch 'other'\n", ""),
        (f"server: {'x' * 64}\n", ""),
        (f"server: {'x' * 65}\n", "more than 72 characters"),
        (f"docs: {'µ' * 66}\n", ""),
        ("Reject bodies\n", "area: what"),
        ("Server: reject bodies\n", "area: what"),
        ("server: reject bodies.\n", "full stop"),
        ("server: reject bodies\nThey cost memory.\n", "an empty line"),
    ],
)
def test_a_commit_message_is_checked(tmp_path: Path, message: str, problem: str) -> None:
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text(message, encoding="utf-8")
    done = subprocess.run([ROOT / "scripts" / "commit-message", file], capture_output=True, text=True, check=False)
    assert (done.returncode != 0) is bool(problem), done.stderr
    assert problem in done.stderr


def test_pre_commit_calls_the_check_for_messages() -> None:
    settings = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hook = next(each for each in settings["repos"][0]["hooks"] if each["id"] == "commit-message")
    assert (hook["entry"], hook["stages"]) == ("scripts/commit-message", ["commit-msg"])
    assert "commit-msg" in settings["default_install_hook_types"]
