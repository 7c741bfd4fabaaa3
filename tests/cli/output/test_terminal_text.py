"""Tests that stored strings cannot control a terminal or change the text direction, in any output format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from ctrlmgr.cli.output.terminal_documents import json_text, yaml_text
from ctrlmgr.eventlog import Author, EventType, Proposal, open_log
from ctrlmgr.testing import FakeClock
from tests.cli.conftest import Run, config_map

TURNED = "a\u202eb\u2066c\x9bd\x7fe\u061c"
CONTROLS = "\u202e\u2066\x9b\x7f\u061c\x1b"


@pytest.fixture
def turned(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/turned.db"
    log = open_log(url, clock=FakeClock(), random=Random(1), migrate=True)
    log.append([Proposal(EventType.ADDED, config_map("a", said=TURNED), 0)], author=Author(TURNED, TURNED))
    log.close()
    return url


@pytest.mark.parametrize(
    "command",
    [
        "get configmaps -n default -o json",
        "get configmaps -n default -o yaml",
        "get configmap/a -n default",
        "blame configmap/a -n default",
        "blame configmap/a -n default -o json",
        "history configmap/a -n default",
        "history configmap/a -n default -o json",
        "diff --from 0 --to 1",
        "diff --from 0 --to 1 -o json",
        "why configmap/a -n default",
        "events",
        "events -o json",
        "events -o jsonl",
    ],
)
def test_no_command_prints_stored_control_characters(run: Run, turned: str, command: str) -> None:
    answer = run(*command.split(), "--database", turned)
    assert answer.out
    assert not set(CONTROLS) & set(answer.out)


@pytest.mark.parametrize(
    ("print_", "load"),
    [(lambda it: json_text(json.dumps(it, ensure_ascii=False)), json.loads), (yaml_text, yaml.safe_load)],
)
def test_a_document_contains_the_stored_text(print_: Callable[[Any], str], load: Callable[[str], Any]) -> None:
    stored = {TURNED: [TURNED, "naïve – 日本語\nnext"]}
    assert load(print_(stored)) == stored
    assert "日本語" in print_({"a": "日本語"})
