"""Tests that the numbers on the pages about design decisions equal the numbers in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctrlmgr import interpreter
from ctrlmgr.authentication import jwt
from ctrlmgr.eventlog import hash_chain
from ctrlmgr.eventlog.appending import committer
from ctrlmgr.eventlog.sqlite import sqlite_log, sqlite_writer
from ctrlmgr.http.response_stream import ONE_WRITE
from ctrlmgr.http.size_limits import DEFAULT as BOUNDS
from ctrlmgr.regexp import automaton
from ctrlmgr.server.request import BODY_PATIENCE
from ctrlmgr.server.watch import watching

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs" / "decisions"
YOUNG, MIDDLE, OLD = interpreter._THRESHOLDS


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:g} ms"


QUOTED = [
    ("group-commit", f"up to {committer.GROUP_EVENTS} events or {committer.GROUP_BYTES >> 20} MiB"),
    ("group-commit", f"fewer than {committer._CROWD} callers"),
    ("group-commit", f"up to {milliseconds(committer._RETURN)} for the first of these appends"),
    ("group-commit", f"up to {milliseconds(committer._GATHER)} for each further one"),
    ("group-commit", f"or separately after {milliseconds(committer._LINGER)}"),
    ("hash-chain", f"only {hash_chain._LINK.size} bytes an event are hashed"),
    ("threads-and-loop", f"a switch interval of {milliseconds(interpreter._SWITCH_INTERVAL)}"),
    ("interpreter", f"switch interval of threads | {milliseconds(interpreter._SWITCH_INTERVAL)} |"),
    ("interpreter", f"thresholds of the cycle collector | {YOUNG:,}, {MIDDLE} and {OLD} |"),
    ("interpreter", f"every {interpreter._EVERYTHING}th full collection examines all objects"),
    ("interpreter", f"of separately mapped memory blocks | {interpreter._MALLOC[-3] >> 10} KiB, fixed |"),
    ("interpreter", f"that the process does not return to the system | {interpreter._MALLOC[-1] >> 20} MiB |"),
    ("regular-expressions", f"at most {automaton.MOST_STEPS:,} steps"),
    ("tokens", f"has at most {jwt._LONGEST >> 20} MiB"),
    ("tuning", f"Database pages of {sqlite_log.PAGE >> 10} KiB |"),
    ("tuning", f"The file of the write-ahead log is kept, up to {sqlite_writer.CHECKPOINT >> 20} MB |"),
    ("tuning", f"Outcomes of reconciles wait up to {milliseconds(committer._LINGER)} for another append |"),
    ("http-front", f"whose client has not read for {watching.READ_PATIENCE:g} s"),
    ("http-front", f"it has one piece of {ONE_WRITE >> 10} KiB in memory"),
    ("http-front", f"{BOUNDS.streams} streams, and may send {BOUNDS.noise:,} frames without a request"),
    ("http-front", f"within {BOUNDS.head_timeout:g} s"),
    ("http-front", f"{BOUNDS.resets} reset requests"),
    ("http-front", f"| head of a request, TLS handshake | {BOUNDS.head_timeout:g} |"),
    ("http-front", f"| idle connection | {BOUNDS.keep_alive:g} |"),
    ("http-front", f"| client that does not read a waiting answer | {BOUNDS.write_timeout:g} |"),
    ("http-front", f"| client that does not read a watch | {watching.READ_PATIENCE:g} |"),
    (
        "http-front",
        f"| body of more than {BOUNDS.short_body >> 10} KiB without {BOUNDS.body_progress >> 10} KiB of",
    ),
    ("http-front", f"of progress | {BOUNDS.body_pause:g} |"),
    ("http-front", f"| body as a whole | {BODY_PATIENCE:g} |"),
    ("http-front", f"| sending of the last answer before a connection is closed | {BOUNDS.linger:g} |"),
]


@pytest.mark.parametrize(("page", "sentence"), QUOTED)
def test_a_decision_quotes_the_number_of_the_code(page: str, sentence: str) -> None:
    text = re.sub(r"\s+", " ", (DECISIONS / f"{page}.md").read_text(encoding="utf-8"))
    assert sentence in text


def lines(folder: str) -> int:
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in (ROOT / folder).rglob("*.py"))


SIZES = [
    ("http-front", r"about ([\d,]+) lines with documentation", "ctrlmgr/http"),
    ("http-front", r"documentation, ([\d,]+) of these lines for HTTP/2", "ctrlmgr/http/http2"),
    ("regular-expressions", r"expressions in ([\d,]+) lines", "ctrlmgr/regexp"),
    ("cel", r"CEL in about ([\d,]+) lines", "ctrlmgr/expressions"),
    ("protobuf", r"protobuf in ([\d,]+) lines", "ctrlmgr/schema/protobuf"),
]


@pytest.mark.parametrize(("page", "sentence", "folder"), SIZES)
def test_a_decision_quotes_the_size_of_the_code(page: str, sentence: str, folder: str) -> None:
    found = re.search(sentence, (DECISIONS / f"{page}.md").read_text(encoding="utf-8"))
    assert found
    assert int(found[1].replace(",", "")) == pytest.approx(lines(folder), rel=0.05)


def test_the_page_about_tuning_names_existing_files() -> None:
    text = (DECISIONS / "tuning.md").read_text(encoding="utf-8")
    places = re.findall(r"^\|[^|]+\| `([\w/.]+)` \|", text, re.MULTILINE)
    assert len(places) > 20
    assert not [place for place in places if not (ROOT / "ctrlmgr" / place).exists()]
