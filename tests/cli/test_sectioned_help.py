"""Tests that `ctrlmgr serve --help` describes a screenful of options, and `--help-all` describes every option, by
section.
"""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from ctrlmgr.cli import ctrlmgr
from ctrlmgr.cli.sectioned_help import SectionedCommand
from ctrlmgr.cli.serve import USUAL, serve


def described(text: str) -> list[str]:
    """Return the flags that a help text describes."""
    return re.findall(r"^  (?:-h, )?(--[\w-]+)", text, re.MULTILINE)


def asked(*arguments: str) -> str:
    finished = CliRunner().invoke(ctrlmgr, ["serve", *arguments])
    assert finished.exit_code == 0
    return finished.output


def test_help_describes_common_options_and_names_the_others() -> None:
    text = asked("--help")
    assert described(text) == [*USUAL, "--help-all", "--help"]
    more = len(serve.params) + 1 - len(USUAL) - 2  # click adds --help
    assert text.endswith(f"There are {more} more options: see --help-all.\n")


def test_help_all_describes_every_option_in_the_section_of_its_setting() -> None:
    text = asked("--help-all")
    assert sorted(described(text)) == sorted([*(each.opts[-1] for each in serve.params), "--help"])
    sections = re.split(r"^(\S+):$", text, flags=re.MULTILINE)
    by_title = dict(zip(sections[1::2], map(described, sections[2::2]), strict=True))
    assert "--help-all" in by_title["Options"]
    assert by_title["[database]"][0] == "--database"
    assert "--listen" in by_title["[server]"]


@pytest.mark.parametrize("flag", USUAL)
def test_each_common_option_exists(flag: str) -> None:
    assert isinstance(serve, SectionedCommand)
    assert any(flag in each.opts for each in serve.params if isinstance(each, click.Option))
