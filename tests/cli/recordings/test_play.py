"""Tests of `ctrlmgr play`, and of the refusals of `ctrlmgr serve --recording`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.recording.samples import SMALL


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--paused"], "--paused needs --recording"),
        (["--max-gap", "5s"], "--max-gap needs --recording"),
        (["--recording", str(SMALL), "--database", "memory:"], "--database cannot be combined with --recording"),
        (["--recording", str(SMALL), "--controllers", "*"], "--controllers cannot be combined with --recording"),
        (["--recording", str(SMALL), "--leader-elect=false"], "--leader-elect cannot be combined with --recording"),
        (["--recording", str(SMALL), "--writes", "keep"], "'keep' is not one of 'refuse', 'pretend'"),
        (["--recording", str(SMALL), "--max-gap", "soon"], "'soon' is not a duration"),
    ],
)
def test_conflicting_options_are_refused(run: Run, options: list[str], complaint: str) -> None:
    done = run("serve", *options)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err


def test_an_invalid_speed_is_refused_before_the_start(run: Run) -> None:
    done = run("serve", "--recording", str(SMALL), "--listen", "127.0.0.1:0", "--speed", "0")
    assert done.code == 1
    assert "error: speed is 0" in done.err


def test_an_unusable_recording_is_refused(run: Run, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.jsonl.gz"
    damaged.write_bytes(SMALL.read_bytes()[:-100])
    for file, reason in ((damaged, "cut short"), (tmp_path / "none.jsonl", "No such file")):
        done = run("serve", "--recording", str(file), "--listen", "127.0.0.1:0")
        assert done.code == 4
        assert reason in done.err


def test_without_a_server_play_names_the_searched_places(run: Run, tmp_path: Path) -> None:
    done = run("play", "--data-dir", str(tmp_path), "status")
    assert done.code == 2
    assert f"there is no kubeconfig at {tmp_path / 'play' / 'kubeconfig'}" in done.err


def test_a_stopped_server_is_named(run: Run, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\n"
        "contexts: [{name: c, context: {cluster: c}}]\n"
        "current-context: c\n"
    )
    done = run("play", "--kubeconfig", str(kubeconfig), "pause")
    assert done.code == 1
    assert "http://127.0.0.1:9 cannot be reached" in done.err
