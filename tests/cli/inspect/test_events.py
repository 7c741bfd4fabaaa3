"""`ctrlmgr events`."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ctrlmgr.eventlog import Author, EventType, Proposal, open_log
from ctrlmgr.testing import FakeClock
from tests.cli.conftest import CommandResult, Run, config_map, secret


def revisions(finished: CommandResult) -> list[int]:
    assert finished.code == 0, finished.err
    return [json.loads(line)["revision"] for line in finished.out.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], [1, 2, 3, 4, 5, 6], id="everything"),
        pytest.param(["--after", "4"], [5, 6], id="after a revision"),
        pytest.param(["--after", "6"], [], id="after the last"),
        pytest.param(["--resource", "secrets"], [2], id="one resource"),
        pytest.param(["-n", "other"], [5], id="one namespace"),
        pytest.param(["--name", "a"], [1, 3, 4, 5], id="one name"),
        pytest.param(["--name", "a", "-n", "default", "--limit", "2"], [1, 3], id="the first two of one object"),
    ],
)
def test_events_are_filtered(run: Run, database: str, arguments: list[str], expected: list[int]) -> None:
    assert revisions(run("events", "--database", database, "-o", "jsonl", *arguments)) == expected


def test_follow_continues_until_the_limit(run: Run, database: str) -> None:
    assert revisions(run("events", "--database", database, "-o", "jsonl", "--follow", "--limit", "6"))[-1] == 6


def test_a_table_has_one_line_per_event(run: Run, database: str) -> None:
    lines = run("events", "--database", database).out.splitlines()
    assert lines[0].split() == ["REVISION", "TIME", "TYPE", "RESOURCE", "KEY", "ACTOR"]
    assert lines[3].split() == ["3", "2026-01-02T03:04:05.000000Z", "MODIFIED", "configmaps", "default/a", "alice"]
    assert len(lines) == 7


def test_control_characters_of_stored_names_are_escaped(run: Run, database: str) -> None:
    out = run("events", "--database", database, "-n", "other").out
    assert "\x1b" not in out
    assert r"mallory\x1b[31m\n" in out


def test_wide_shows_the_trigger_of_a_controllers_write(run: Run, database: str) -> None:
    lines = run("events", "--database", database, "-o", "wide", "--after", "5").out.splitlines()
    assert lines[0].split()[-4:] == ["PREVIOUS", "TERM", "ATTEMPT", "TRIGGERS"]
    assert lines[1].split()[-4:] == ["-", "-", "2", "1,3"]


def test_json_is_one_document(run: Run, database: str) -> None:
    document = json.loads(run("events", "--database", database, "-o", "json").out)
    assert document["kind"] == "EventList"
    event = document["items"][5]
    assert (event["type"], event["previous"], event["actor"]) == ("ADDED", 0, "system:controller:copier")
    assert event["object"]["metadata"]["resourceVersion"] == "6"
    assert event["recordedAt"] == "2026-01-02T03:04:05.000000Z"
    assert event["reconcile"] == {
        "controller": "copier",
        "key": "default/b",
        "attempt": 2,
        "startedAt": "2026-01-02T03:04:05.000000Z",
        "triggers": [1, 3],
        "duration": 0.0025,
        "result": "ok",
        "message": "",
    }


def test_json_and_follow_are_mutually_exclusive(run: Run, database: str) -> None:
    finished = run("events", "--database", database, "-o", "json", "-f")
    assert finished.code == 2
    assert "use -o jsonl" in finished.err


def test_a_compacted_log_is_shown_with_a_warning(run: Run, database: str) -> None:
    assert run("compact", "--database", database, "--before", "4").code == 0
    finished = run("events", "--database", database, "-o", "jsonl")
    assert revisions(finished) == [2, 4, 5, 6]
    assert finished.err == "note: events up to revision 4 have been compacted; the remaining ones follow\n"
    finished = run("events", "--database", database, "-o", "jsonl", "--after", "4")
    assert (revisions(finished), finished.err) == ([5, 6], "")


@pytest.mark.parametrize("resource", ["Pods", "v1/pods", ""])
def test_an_unknown_resource_is_refused(run: Run, database: str, resource: str) -> None:
    finished = run("events", "--database", database, "--resource", resource)
    assert finished.code == 2
    assert "is not a resource; write plural or plural.group" in finished.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["--tail", "2"], [5, 6], id="the newest two, the newest last"),
        pytest.param(["--tail", "2", "--name", "a", "-n", "default"], [3, 4], id="the newest two of one object"),
        pytest.param(["--tail", "9", "--resource", "secrets"], [2], id="more than there are"),
        pytest.param(["--tail", "9", "--after", "4"], [5, 6], id="no older than requested"),
        pytest.param(["--since", "5"], [5, 6], id="since a revision"),
        pytest.param(["--since", "2026-01-02T03:04:05Z"], [1, 2, 3, 4, 5, 6], id="since that very time"),
        pytest.param(["--since", "2026-01-02T03:04:06Z"], [], id="since a later time"),
        pytest.param(["--since", "10m"], [], id="for how long"),
        pytest.param(["--since", "3", "--tail", "1"], [6], id="both"),
    ],
)
def test_the_newest_events_are_shown(run: Run, database: str, arguments: list[str], expected: list[int]) -> None:
    assert revisions(run("events", "--database", database, "-o", "jsonl", *arguments)) == expected


def test_a_tail_is_found_far_before_the_end(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'long.db'}"
    log = open_log(url, clock=FakeClock(), random=random.Random(1), migrate=True)
    log.append([Proposal(EventType.ADDED, secret(f"s-{number}"), 0) for number in range(3)], author=Author("a"))
    log.append([Proposal(EventType.ADDED, config_map(f"c-{number}"), 0) for number in range(2500)], author=Author("a"))
    log.close()
    assert revisions(run("events", "--database", url, "-o", "jsonl", "--tail", "2", "--resource", "secrets")) == [2, 3]


def test_tail_and_limit_are_mutually_exclusive(run: Run, database: str) -> None:
    finished = run("events", "--database", database, "--tail", "1", "--limit", "1")
    assert (finished.code, "exclude each other" in finished.err) == (2, True)


def test_an_invalid_time_is_refused(run: Run, database: str) -> None:
    finished = run("events", "--database", database, "--since", "yesterday")
    assert (finished.code, "is not a moment" in finished.err) == (1, True)
