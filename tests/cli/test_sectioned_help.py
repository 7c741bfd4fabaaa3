"""Tests that `ctrlmgr serve --help` describes a screenful of options, and `--help-all` describes every option, by
section.
"""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from ctrlmgr.cli import ctrlmgr
from ctrlmgr.cli.options import section_title, section_titles
from ctrlmgr.cli.sectioned_help import SectionedCommand
from ctrlmgr.cli.serve import USUAL, serve
from ctrlmgr.settings.kubernetes_flags.upstream_flags import KUBE_APISERVER, KUBE_CONTROLLER_MANAGER


def described(text: str) -> list[str]:
    """Return the flags that a help text describes."""
    return re.findall(r"^  (?:-[hv], )?(--[\w-]+)", text, re.MULTILINE)


def help_output(*arguments: str) -> str:
    finished = CliRunner().invoke(ctrlmgr, ["serve", *arguments])
    assert finished.exit_code == 0
    return finished.output


def test_help_describes_common_options_and_names_the_others() -> None:
    text = help_output("--help")
    assert described(text) == [*USUAL, "--help-all", "--help"]
    more = len(serve.params) + 1 - len(USUAL) - 2  # click adds --help
    assert text.endswith(f"There are {more} more options: see --help-all.\n")


def in_sections() -> dict[str, list[str]]:
    """Return the flags that `--help-all` describes, by the titles of their sections."""
    sections = re.split(r"^(\S.*):$", help_output("--help-all"), flags=re.MULTILINE)
    return dict(zip(sections[1::2], map(described, sections[2::2]), strict=True))


def test_help_all_describes_every_option_in_one_section() -> None:
    by_title = in_sections()
    flags = [flag for flags in by_title.values() for flag in flags]
    assert sorted(flags) == sorted([*(each.opts[-1] for each in serve.params), "--help"])
    assert {*flags} >= KUBE_APISERVER | KUBE_CONTROLLER_MANAGER
    assert "--help-all" in by_title["Options"]
    assert by_title["[database]"][0] == "--database"
    assert "--listen" in by_title["[server]"]


def test_help_all_has_the_sections_of_kubernetes_in_their_order() -> None:
    by_title = in_sections()
    titles = [each for each in section_titles() if each in by_title]
    assert [*by_title][-len(titles) :] == titles
    found = {flag: title for title, flags in by_title.items() for flag in flags}
    of_kubernetes = (KUBE_APISERVER | KUBE_CONTROLLER_MANAGER) - {"--help", "--version"}
    assert {flag: found[flag] for flag in of_kubernetes} == {flag: section_title(flag) for flag in of_kubernetes}
    assert (found["--etcd-prefix"], found["--concurrent-job-syncs"]) == ("Etcd flags", "Job-controller flags")


@pytest.mark.parametrize("columns", [80, 100])
def test_help_all_fits_the_terminal(columns: int) -> None:
    finished = CliRunner().invoke(ctrlmgr, ["serve", "--help-all"], terminal_width=columns)
    examples = ("  ctrlmgr serve ",)
    lines = [line for line in finished.output.splitlines() if not line.startswith(examples)]
    assert max(map(len, lines)) <= columns


def test_help_all_describes_defaults() -> None:
    text = " ".join(help_output("--help-all").split())
    assert "The address on which `serve` listens, with TLS. (default 127.0.0.1:6443)" in text
    assert "(default *)" in text
    assert '(default "lease")' in text


@pytest.mark.parametrize("flag", USUAL)
def test_each_common_option_exists(flag: str) -> None:
    assert isinstance(serve, SectionedCommand)
    assert any(flag in each.opts for each in serve.params if isinstance(each, click.Option))
