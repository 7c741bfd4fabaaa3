"""Tests that the systemd unit and the container file in the documentation equal the files in `examples`."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from pathlib import Path

import click
import pytest

from ctrlmgr import cli

PAGE = (Path(__file__).parents[2] / "docs" / "high-availability.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def unit() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]  # as configparser's own documentation does it
    parser.read_string(block("ini"))
    return parser["Service"]


def started_by_the_unit() -> list[str]:
    return shlex.split(unit()["ExecStart"])


def started_by_the_container() -> list[str]:
    found = re.search(r"^ENTRYPOINT (.*)$", block("dockerfile"), re.MULTILINE)
    assert found
    words: list[str] = json.loads(found[1])
    return words


@pytest.mark.parametrize("words", [started_by_the_unit(), started_by_the_container()], ids=["unit", "container"])
def test_the_units_command_line_is_valid(words: list[str]) -> None:
    assert Path(words[0]).name == "ctrlmgr"
    command = cli.ctrlmgr.get_command(click.Context(cli.ctrlmgr), words[1])
    assert command is not None
    assert command.make_context("serve", words[2:]).params["flag_server_listen"] == "0.0.0.0:6443"


def test_the_unit_waits_for_the_ready_notification() -> None:
    service = unit()
    assert service["Type"] == "notify"
    assert service["ExecReload"].startswith("/bin/kill -HUP")
    assert float(service["WatchdogSec"]) / 2 > 10, "the event loop may stand still for ten seconds"


def test_the_container_is_stopped_by_a_signal_for_a_graceful_shutdown() -> None:
    assert re.search(r"^STOPSIGNAL SIGTERM$", block("dockerfile"), re.MULTILINE)
