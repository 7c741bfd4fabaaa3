"""Tests of the flags of `ctrlmgr serve` that choose the role of a process, and of the resulting settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click
import pytest

from ctrlmgr import cli
from ctrlmgr.cli.options import takes_settings
from ctrlmgr.settings import Loaded, Settings
from tests.cli.conftest import Run

ROLE, ELECTION = "server.role", "leader_election.enabled"


def settings_of(words: Sequence[str]) -> Settings:
    """Return the settings that result from these two flags."""

    @click.command()
    @takes_settings(ROLE, ELECTION)
    def command(loaded: Loaded) -> Any:
        return loaded.settings

    settings = command.main(list(words), standalone_mode=False)
    assert isinstance(settings, Settings)
    return settings


@pytest.mark.parametrize(
    ("words", "role", "elects"),
    [
        ([], "all", True),
        (["--api-only"], "api-only", True),
        (["--controllers-only"], "controllers-only", True),
        (["--leader-elect"], "all", True),
        (["--leader-elect", "--api-only"], "api-only", True),
        (["--leader-elect=false"], "all", False),
        (["--leader-elect=true", "--controllers-only"], "controllers-only", True),
    ],
)
def test_roles_and_election_are_configured_by_flags(words: Sequence[str], role: str, elects: bool) -> None:
    settings = settings_of(words)
    assert (settings.server.role, settings.leader_election.enabled) == (role, elects)


def test_a_settings_error_names_its_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    @takes_settings(ROLE)
    def command(loaded: Loaded) -> Any:
        return loaded.origins[ROLE]

    assert command.main(["--api-only"], standalone_mode=False) == "--api-only"
    monkeypatch.setenv("CTRLMGR_SERVER_ROLE", "controllers-only")
    assert command.main([], standalone_mode=False) == "environment CTRLMGR_SERVER_ROLE"


def test_an_invalid_boolean_is_refused_in_one_line(run: Run) -> None:
    finished = run("settings", "--leader-elect=maybe")
    assert finished.code == cli.ExitCode.USAGE
    assert finished.err == "error: --leader-elect is 'maybe'; it must be true or false\n"


def test_inconsistent_durations_are_refused_before_the_start(run: Run) -> None:
    flags = ("--listen", "127.0.0.1:0", "--database", "memory:", "--leader-elect-renew-deadline", "20s")
    finished = run("serve", *flags)
    assert finished.code == cli.ExitCode.USAGE
    assert finished.err.endswith(
        "error: leader_election.lease_duration must be greater than leader_election.renew_deadline\n"
    )


def test_settings_shows_the_election(run: Run) -> None:
    finished = run("settings", "-o", "json", "--leader-elect=false")
    assert json.loads(finished.out)[ELECTION] == {"value": False, "from": "--leader-elect"}
