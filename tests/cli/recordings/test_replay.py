"""`ctrlmgr replay`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from ctrlmgr.cli import ExitCode
from tests.cli.conftest import Run
from tests.cli.recordings.test_import import interrupted
from tests.recording.samples import SMALL, Script, made_by_hand, service, small_lines, write_lines


@pytest.fixture
def diverging(tmp_path: Path) -> Path:
    """Return a recording with Endpoints that no controller wrote; their Service has no pods."""
    script = Script().event("ADDED", service(selector={"app": "s"}))
    return script.event("ADDED", made_by_hand("203.0.113.7")).checkpoint("first").checkpoint("second").write(tmp_path)


def test_an_equal_replay_exits_with_0(run: Run) -> None:
    finished = run("replay", str(SMALL))
    assert finished.code == 0
    assert finished.err == ""
    summary = dict(line.split(None, 1) for line in finished.out.splitlines())
    fields = "recording events controllers checkpoints divergences unjudged head skipped"
    assert list(summary) == fields.split()
    assert summary["divergences"] == "0"
    assert summary["checkpoints"] == "27, 288 objects compared"


def test_a_divergence_exits_with_1_and_prints_the_difference(run: Run, diverging: Path) -> None:
    finished = run("replay", str(diverging))
    assert finished.code == 1
    lines = finished.out.splitlines()
    assert lines[0] == "endpoints shop/s differs, at checkpoint first and 1 more:"
    assert "  .subsets" in lines
    assert any(line.startswith("    - recorded  [") for line in lines)
    assert "    + ours      <absent>" in lines


def test_json_is_one_complete_document(run: Run, diverging: Path) -> None:
    finished = run("replay", str(diverging), "-o", "json")
    assert finished.code == 1
    report = json.loads(finished.out)
    assert set(report) == {
        "file",
        "events",
        "inputs",
        "reconciles",
        "writes",
        "checkpoints",
        "objectsCompared",
        "decisionsCompared",
        "divergences",
        "unjudged",
        "notReplayed",
        "revision",
        "hash",
        "seconds",
        "rate",
        "paired",
        "recordingError",
    }
    [divergence] = report["divergences"]
    assert (divergence["verdict"], divergence["checkpoint"], divergence["checkpoints"]) == ("differs", "first", 2)
    assert (divergence["resource"], divergence["namespace"], divergence["name"]) == ("endpoints", "shop", "s")
    assert {"path", "recorded", "ours"} == set(divergence["differences"][0])


def test_the_report_names_the_controllers_without_replay(run: Run, diverging: Path) -> None:
    arguments = (
        "--controllers",
        "endpoints,nodelifecycle,garbage-collector-controller,horizontal-pod-autoscaler-controller",
    )
    report = json.loads(run("replay", str(diverging), "-o", "json", *arguments).out)
    assert report["notReplayed"] == ["garbage-collector-controller", "node-lifecycle-controller"]
    line = "skipped      controllers that have no replay; -o json prints their names"
    assert line in run("replay", str(diverging), *arguments).out.splitlines()
    assert line not in run("replay", str(diverging), "--controllers", "endpoints").out.splitlines()


def test_a_damaged_recording_exits_with_4_and_keeps_the_readable_part(run: Run, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "cut.jsonl", [*small_lines()[:60], b'{"type":'])
    url = f"sqlite:///{tmp_path / 'log.db'}"
    finished = run("replay", str(path), "--database", url, "-o", "json")
    assert finished.code == 4
    report = json.loads(finished.out)
    assert report["recordingError"]["line"] == 61
    assert finished.err.startswith(f"error: {path}:61: not a JSON document")
    assert f"and are in {url} up to revision {report['revision']}" in finished.err
    kept = run("events", "--database", url, "-o", "jsonl")
    assert len(kept.out.splitlines()) == report["revision"] > 0


def test_a_non_empty_database_is_refused(run: Run, database: str) -> None:
    finished = run("replay", str(SMALL), "--database", database)
    assert finished.code == 2
    assert "holds 6 events already" in finished.err


def test_the_output_of_events_can_be_replayed(run: Run, database: str, tmp_path: Path) -> None:
    recording = tmp_path / "events.jsonl"
    recording.write_text(run("events", "--database", database, "-o", "jsonl").out)
    finished = run("replay", str(recording), "-o", "json")
    assert finished.code == 0, finished.err
    assert json.loads(finished.out)["events"] == 6


def test_controllers_can_be_excluded(run: Run, diverging: Path) -> None:
    finished = run("replay", str(diverging), "--controllers=-endpoints-controller", "-o", "json")
    assert finished.code == 0
    assert json.loads(finished.out)["inputs"] == 2


def test_a_missing_recording_is_a_usage_error(run: Run) -> None:
    assert run("replay", "none.jsonl").code == 2


@pytest.fixture
def other_version(run: Run, diverging: Path, tmp_path: Path) -> str:
    """Return the log of a ctrlmgr version without the endpoints controller that has replayed this recording."""
    url = f"sqlite:///{tmp_path / 'other.db'}"
    run("replay", str(diverging), "--database", url, "--controllers", "*,-endpoints-controller")
    return url


def test_writes_of_another_version_are_compared(run: Run, diverging: Path, other_version: str) -> None:
    finished = run("replay", str(diverging), "--against", other_version)
    assert finished.code == 1
    lines = finished.out.splitlines()
    assert "endpoints shop/s is written by this version only, after input 1 (revision 2)" in lines
    assert "writes       2 in this version, 1 in the other, 1 equal" in lines
    assert lines[-1] == "differences  1"


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_json_contains_the_differences_between_versions(
    run: Run, diverging: Path, other_version: str, output: str
) -> None:
    finished = run("replay", str(diverging), "--against", other_version, "-o", output)
    report = json.loads(finished.out) if output == "json" else yaml.safe_load(finished.out)
    [found] = report["against"]["differences"]
    assert (found["verdict"], found["revision"], found["otherRevision"]) == ("extra", 2, 0)


def test_a_comparison_with_the_same_version_compares_only_versions(run: Run, diverging: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'same.db'}"
    assert run("replay", str(diverging), "--database", url).code == 1
    finished = run("replay", str(diverging), "--against", url)
    assert finished.code == 0
    assert finished.out.splitlines()[-1] == "differences  0"


def test_a_second_log_is_refused(run: Run, diverging: Path, tmp_path: Path) -> None:
    assert run("replay", str(diverging), "--against", f"sqlite:///{tmp_path / 'none.db'}").code != 0


def test_every_write_is_counted_by_kind(run: Run) -> None:
    finished = run("replay", str(SMALL), "--every-write")
    assert finished.code == 0
    lines = finished.out.splitlines()
    (first,) = [number for number, line in enumerate(lines) if line.startswith("every write  ")]
    assert lines[first].split(None, 2)[2] == "endpoints: 72 of 72 recorded writes have a counterpart among our 81"
    assert "123 of 123 recorded writes have a counterpart" in lines[first + 1]
    report = json.loads(run("replay", str(SMALL), "--every-write", "-o", "json").out)
    assert [(each["resource"], each["recorded"] - each["paired"]) for each in report["paired"]] == [
        ("endpoints", 0),
        ("endpointslices.discovery.k8s.io", 0),
    ]
    assert json.loads(run("replay", str(SMALL), "-o", "json").out)["paired"] == []


@pytest.mark.parametrize("arguments", [(), ("--every-write",)])
@pytest.mark.parametrize("count", [0, 200, 440])
def test_ctrl_c_prints_the_position_and_how_to_restart(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, arguments: tuple[str, ...]
) -> None:
    url = f"sqlite:///{tmp_path}/replayed.db"
    with monkeypatch.context() as patched:
        interrupted(patched, "ctrlmgr.cli.recordings.replay", count)
        stopped = run("replay", str(SMALL), "--database", url, *arguments)
        patched.undo()
        interrupted(patched, "ctrlmgr.cli.recordings.replay", count)
        in_memory = run("replay", str(SMALL), *arguments)
    assert (stopped.code, stopped.out, stopped.err.count("\n")) == (ExitCode.INTERRUPTED, "", 1)
    line = f"stopped at line {count + 1} of small.jsonl.gz"
    again = f"; a replay cannot be continued, so start it again: ctrlmgr replay {SMALL}"
    assert in_memory.err == f"{line}{again}\n"
    if arguments:  # the first of the two replays, in memory, was running
        assert stopped.err.startswith(f"{line}{again}")
    else:
        assert stopped.err.startswith(f"{line}; the events before it are in {url}{again}")
        assert run("verify", "--database", url).code == 0  # no partial replay is left in the database
