"""Tests of `ctrlmgr wait`: a script starts a server in the background, and waits until the server is ready."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ctrlmgr import cli, threads
from ctrlmgr.cli.wait import until_ready
from ctrlmgr.errors import ServiceUnavailable
from ctrlmgr.testing import FakeClock

SERVE = [sys.executable, "-m", "ctrlmgr", "serve", "--listen", "127.0.0.1:0", "--database", "memory:"]


def test_a_script_waits_for_the_server_it_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, file, log = tmp_path / "data", tmp_path / "ready", tmp_path / "log"
    monkeypatch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
    with log.open("wb") as output:
        command = [*SERVE, "--data-dir", str(folder), "--ready-file", str(file)]
        server = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        assert cli.run(["wait", "--timeout", "60s"]) == 0  # the file in $KUBECONFIG does not exist yet
        (told,) = capsys.readouterr().out.splitlines()
        assert told.startswith("ready: https://127.0.0.1:")
        for arguments in (
            ["--ready-file", str(file)],
            ["--data-dir", str(folder)],
            ["--kubeconfig", str(folder / "kubeconfig")],
        ):
            assert cli.run(["wait", *arguments]) == 0
            assert capsys.readouterr().out.splitlines() == [told]
        assert log.read_text().rstrip().splitlines()[-1].split("]")[1].split()[0] == "ready"
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
    assert cli.run(["wait", "--timeout", "0s"]) == 1
    (reason,) = capsys.readouterr().err.splitlines()
    assert reason.startswith("error: the server is not ready after 0 s: https://127.0.0.1:")
    assert "cannot be reached" in reason


def test_the_line_names_the_missing_condition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "none"
    assert cli.run(["wait", "--timeout", "0s", "--data-dir", str(missing)]) == 1
    assert f"there is no kubeconfig at {missing}/kubeconfig" in capsys.readouterr().err
    assert cli.run(["wait", "--timeout", "0s", "--ready-file", str(missing)]) == 1
    assert f"not ready after 0 s: {missing}: No such file or directory" in capsys.readouterr().err
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        missing.write_text(f"https://127.0.0.1:{probe.getsockname()[1]}\n")
        assert cli.run(["wait", "--timeout", "0s", "--ready-file", str(missing)]) == 1
    assert "which does not answer" in capsys.readouterr().err


def test_wait_retries_until_the_timeout() -> None:
    clock, asked = FakeClock(), []

    def ask() -> str:
        asked.append(clock.monotonic())
        clock.step(0.6)  # a slow answer
        raise ServiceUnavailable("etcd\nfailed")

    found: list[tuple[str, str]] = []
    waiting = threads.start("waiting", lambda: found.append(until_ready(ask, 1.0, clock=clock)))
    clock.wait_for_waiters(1)
    clock.step(0.1)
    waiting.join(10)
    assert found == [("", "etcd failed")]
    assert asked == [0.0, 0.7]
