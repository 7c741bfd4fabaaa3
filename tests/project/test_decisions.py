"""Numbers that a decision quotes are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctrlmgr import interpreter
from ctrlmgr.eventlog import chain
from ctrlmgr.eventlog.appending import committer

DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:g} ms"


QUOTED = [
    ("group-commit", f"up to {committer.GROUP_EVENTS} events or {committer.GROUP_BYTES >> 20} MiB"),
    ("group-commit", f"fewer than {committer._CROWD} callers"),
    ("group-commit", f"up to {milliseconds(committer._RETURN)} for the first of them"),
    ("group-commit", f"up to {milliseconds(committer._GATHER)} after each further one"),
    ("group-commit", f"after {milliseconds(committer._LINGER)} by themselves"),
    ("hash-chain", f"only {chain._LINK.size} bytes an event are hashed"),
    ("threads-and-loop", f"a switch interval of {milliseconds(interpreter._SWITCH_INTERVAL)}"),
]


@pytest.mark.parametrize(("page", "sentence"), QUOTED)
def test_a_decision_quotes_the_number_of_the_code(page: str, sentence: str) -> None:
    text = re.sub(r"\s+", " ", (DECISIONS / f"{page}.md").read_text(encoding="utf-8"))
    assert sentence in text
