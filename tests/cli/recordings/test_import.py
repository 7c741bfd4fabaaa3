"""Tests of `ctrlmgr import`, of imported logs, and of the refusals of `ctrlmgr serve --at`."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from ctrlmgr.cli import ExitCode
from tests.cli.conftest import Run
from tests.inspection import story
from tests.recording.samples import SMALL, small_lines, write_lines


@pytest.fixture
def url(run: Run, tmp_path: Path) -> str:
    """The URL of a log into which the small recording was imported."""
    url = f"sqlite:///{tmp_path}/incident.db"
    done = run("import", str(SMALL), "--database", url)
    assert (done.code, done.out) == (0, "")
    assert "421 changes up to revision 772 are in sqlite:///" in done.err
    return url


def test_an_imported_log_can_be_inspected(run: Run, url: str) -> None:
    assert "ok: 421 events, head 772" in run("verify", "--database", url).out
    assert "kubernetes" in run("get", "services", "--at", "400", "--database", url).out
    told = json.loads(run("history", "endpoints", "kubernetes", "-o", "json", "--database", url).out)
    assert told
    for command in ("why", "blame"):
        assert run(command, "endpoints", "kubernetes", "--database", url).code == 0
    asked = run("sql", "-c", "SELECT count(*) AS n FROM objects", "-o", "json", "--database", url)
    assert json.loads(asked.out)[0]["n"] == 9


def test_a_fork_of_an_import_is_valid_and_reports_its_gaps(run: Run, url: str) -> None:
    fork = url.replace("incident", "fork")
    assert run("fork", "--at", "500", "--from", url, "--database", fork).code == 0
    assert "head 500" in run("verify", "--database", fork).out


def test_an_import_is_recorded_unchanged(run: Run, url: str, tmp_path: Path) -> None:
    again = tmp_path / "again.jsonl"
    assert run("record", "--database", url, "--no-redact", "-o", str(again)).code == 0
    objects = [json.loads(line)["object"] for line in again.read_bytes().splitlines()]
    recorded = [json.loads(line) for line in small_lines()]
    assert objects == [line["object"] for line in recorded if line["type"] != "BOOKMARK"]


def test_a_revision_before_the_import_is_refused(run: Run, url: str) -> None:
    refused = run("get", "services", "--at", "10", "--database", url)
    assert (refused.code, refused.err.strip()) == (1, "error: too old resource version: 10 (207)")


def test_a_non_empty_log_is_refused_unless_append_is_given(run: Run, url: str) -> None:
    refused = run("import", str(SMALL), "--database", url)
    assert refused.code == ExitCode.USAGE
    assert "is not empty: it is at revision 772; --append continues from there" in refused.err
    done = run("import", str(SMALL), "--append", "--database", url)
    assert done.code == 0
    assert "0 changes up to revision 772" in done.err
    assert "421 existing ones were skipped" in done.err


def test_an_invalid_line_is_reported_in_one_line(run: Run, tmp_path: Path) -> None:
    bad, url = write_lines(tmp_path / "bad.jsonl", [*small_lines()[:200], b"{"]), f"sqlite:///{tmp_path}/bad.db"
    refused = run("import", str(bad), "--database", url)
    assert refused.code == ExitCode.RECORDING
    assert refused.err.startswith(f"error: {bad}:201: not a JSON document")
    assert refused.err.count("\n") == 1
    assert "(the log is at revision" in refused.err
    assert run("import", str(SMALL), "--append", "--database", url).code == 0
    assert "ok: 421 events" in run("verify", "--database", url).out


def test_importing_into_memory_is_refused(run: Run) -> None:
    refused = run("import", str(SMALL), "--database", "memory:")
    assert refused.code == ExitCode.USAGE
    assert "memory: a log in memory is lost when the command ends" in refused.err


# as `ctrlmgr serve --at` opens the log


@pytest.fixture
def story_url(tmp_path: Path) -> str:
    return story.write(f"sqlite:///{tmp_path}/story.db")


@pytest.mark.parametrize(
    ("at", "code", "said"),
    [
        ("999", 1, "revision 999 is beyond the head"),
        ("0", 1, "0 is before the log begins, which is at revision 1 (2026-01-02T03:04:0"),
        ("2020-01-01T00:00:00Z", 1, "2020-01-01T00:00:00Z is before the log begins, which is at revision 1"),
        ("yesterday", 1, "'yesterday' is not a moment"),
    ],
)
def test_an_invalid_revision_is_refused(run: Run, story_url: str, at: str, code: int, said: str) -> None:
    refused = run("serve", "--at", at, "--database", story_url)
    assert refused.code == code
    assert said in refused.err
    assert refused.err.count("\n") == 1


def test_a_compacted_revision_is_refused(run: Run, story_url: str) -> None:
    assert run("compact", "--before", "10", "--database", story_url).code == 0
    refused = run("serve", "--at", "5", "--database", story_url)
    assert (refused.code, refused.err) == (1, "error: too old resource version: 5 (10)\n")


def test_an_address_in_use_is_refused(run: Run, story_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = run("serve", "--at", "5", "--listen", address, "--database", story_url)
    assert refused.code == ExitCode.USAGE
    assert f"cannot listen on {address}" in refused.err
    assert refused.err.count("\n") == 1


def test_a_missing_database_is_not_created(run: Run, tmp_path: Path) -> None:
    refused = run("serve", "--at", "5", "--database", f"sqlite:///{tmp_path}/none.db")
    assert refused.code == ExitCode.DATABASE
    assert not (tmp_path / "none.db").exists()


def test_a_recording_as_past_of_a_log_is_refused(run: Run) -> None:
    refused = run("serve", "--at", "5", "--recording", str(SMALL))
    assert refused.code == ExitCode.USAGE
    assert "--at and --recording exclude each other" in refused.err


class SetAfterSomeChecks:
    """An event that reports to be set after a number of checks, as if a signal arrived during the import."""

    def __init__(self, count: int) -> None:
        self.left = count

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


def interrupted(monkeypatch: pytest.MonkeyPatch, module: str, count: int) -> None:
    monkeypatch.setattr(f"{module}.stop_on_signal", lambda: nullcontext(SetAfterSomeChecks(count)))


@pytest.mark.parametrize("count", [0, 1, 150, 300, 420])
def test_ctrl_c_prints_the_position_and_how_to_continue(
    run: Run, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    again = f"sqlite:///{tmp_path}/again.db"
    with monkeypatch.context() as patched:
        interrupted(patched, "ctrlmgr.cli.recordings.import_", count)
        stopped = run("import", str(SMALL), "--database", again)
    assert (stopped.code, stopped.out) == (ExitCode.INTERRUPTED, "")
    said = stopped.err.strip()
    if said == "stopped: nothing has been imported yet":
        command = ["import", str(SMALL), "--database", again]
    else:
        assert said.startswith("stopped at revision ")
        command = shlex.split(said.partition("to continue: ctrlmgr ")[2])
        assert run("verify", "--database", again).code == 0
    assert run(*command).code == 0
    for at in ("400", "772"):
        asked = ("get", "endpoints", "-A", "--at", at, "-o", "json", "--database")
        assert json.loads(run(*asked, again).out) == json.loads(run(*asked, url).out)


def test_ctrl_c_ends_a_verification_with_one_line(run: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(monkeypatch, "ctrlmgr.cli.maintenance.verify", 0)
    stopped = run("verify", "--database", url)
    assert (stopped.code, stopped.out) == (ExitCode.INTERRUPTED, "")
    assert (
        stopped.err
        == "stopped: the first 421 events are intact; the next `ctrlmgr verify` starts again from the first event\n"
    )


def test_a_signal_ends_an_import_and_keeps_the_log(tmp_path: Path) -> None:
    """Tests of the real program when a signal interrupts it at different points."""
    many = tmp_path / "many.jsonl"
    with many.open("w") as file:
        for number in range(1, 20_001):
            metadata = {"name": "c", "namespace": "n", "uid": "u", "resourceVersion": str(number)}
            obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"a": str(number)}}
            file.write(json.dumps({"type": "ADDED" if number == 1 else "MODIFIED", "object": obj}) + "\n")
    database, journal = tmp_path / "many.db", tmp_path / "many.db-wal"
    command = [sys.executable, "-m", "ctrlmgr", "import", str(many), "--database", f"sqlite:///{database}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        ends_at = time.monotonic() + 60
        while time.monotonic() < ends_at and (not journal.exists() or journal.stat().st_size < 500_000):
            threading.Event().wait(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said.count("\n")) == (ExitCode.INTERRUPTED, 1), said
    assert said.startswith("stopped"), said
    assert ("stopped at revision " in said) == ("--append" in said)
    if "--append" in said:
        again = [sys.executable, "-m", "ctrlmgr", *shlex.split(said.partition("ctrlmgr ")[2])]
        assert subprocess.run(again, check=False, capture_output=True, timeout=120).returncode == 0
