"""Tests of notifications to systemd, over a Unix socket like systemd's."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctrlmgr.serve.notify import ServiceManager
from tests.background import DEADLINE, background
from tests.cli.signals import as_usual


class Systemd:
    """The socket that receives the notifications."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.address)
        self._socket.settimeout(DEADLINE)

    def hear(self) -> str:
        return self._socket.recv(1024).decode()

    def hear_of(self, word: str) -> None:
        while not self.hear().startswith(word):
            pass

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd() -> Iterator[Systemd]:
    with tempfile.TemporaryDirectory() as folder:  # short enough for the address of a socket
        systemd = Systemd(Path(folder))
        yield systemd
        systemd.close()


def test_readiness_is_notified_when_the_process_is_ready(systemd: Systemd) -> None:
    manager = ServiceManager({"NOTIFY_SOCKET": systemd.address})
    answers = iter([False, False, True])
    manager.is_ready = lambda: next(answers)
    stop = threading.Event()
    running = background(lambda: manager.run(stop))
    assert systemd.hear() == "READY=1"
    assert next(answers, None) is None
    manager.stopping()
    assert systemd.hear() == "STOPPING=1"
    stop.set()
    running.result(DEADLINE)


def test_the_watchdog_is_notified_only_while_the_process_is_alive(systemd: Systemd) -> None:
    manager = ServiceManager({"NOTIFY_SOCKET": systemd.address, "WATCHDOG_USEC": "20000"})
    assert manager.watchdog == 0.02
    alive = threading.Event()
    asked = threading.Semaphore(0)

    def is_alive() -> bool:
        asked.release()
        return alive.is_set()

    manager.is_alive = is_alive
    stop = threading.Event()
    running = background(lambda: manager.run(stop))
    assert systemd.hear() == "READY=1"
    for _ in range(3):
        assert asked.acquire(timeout=DEADLINE)
    alive.set()
    assert systemd.hear() == "WATCHDOG=1"
    stop.set()
    running.result(DEADLINE)


@pytest.mark.parametrize(
    ("environment", "watchdog"),
    [
        ({}, 0.0),
        ({"WATCHDOG_USEC": "5000000"}, 5.0),
        ({"WATCHDOG_USEC": "5000000", "WATCHDOG_PID": str(os.getpid())}, 5.0),
        ({"WATCHDOG_USEC": "5000000", "WATCHDOG_PID": "1"}, 0.0),
        ({"WATCHDOG_USEC": "soon"}, 0.0),
    ],
)
def test_the_watchdogs_period_is_read_from_the_environment(environment: dict[str, str], watchdog: float) -> None:
    assert ServiceManager(environment).watchdog == watchdog


def test_notify_without_a_socket_does_nothing(tmp_path: Path) -> None:
    nobody = ServiceManager({})
    assert not nobody.listens
    nobody.send("READY=1")
    gone = ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "gone")})
    assert gone.listens
    gone.send("READY=1")


@pytest.fixture
def hangs_up() -> Iterator[None]:
    """Restore the default action of SIGHUP, which newly started processes have."""
    with as_usual(signal.SIGHUP):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("hangs_up")
def test_a_process_notifies_systemd_and_reloads_its_log_level_on_sighup(tmp_path: Path, systemd: Systemd) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('[log]\nformat = "json"\nlevel = "error"\n')
    command = [sys.executable, "-m", "ctrlmgr", "serve", "--listen", "127.0.0.1:0", "--settings", str(settings)]
    environment = {**os.environ, "CTRLMGR_DATA_DIR": str(tmp_path), "CTRLMGR_DATABASE_URL": "memory:"}
    environment |= {"NOTIFY_SOCKET": systemd.address, "WATCHDOG_USEC": "200000"}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            systemd.hear_of("READY=1")
            systemd.hear_of("WATCHDOG=1")
            settings.write_text('[log]\nformat = "json"\nlevel = "info"\n')
            process.send_signal(signal.SIGHUP)
            systemd.hear_of("RELOADING=1\nMONOTONIC_USEC=")
            systemd.hear_of("READY=1")
            settings.write_text("[log]\nlevel = 3\n")
            process.send_signal(signal.SIGHUP)
            systemd.hear_of("READY=1")
            process.send_signal(signal.SIGTERM)
            systemd.hear_of("STOPPING=1")
            _, err = process.communicate(timeout=DEADLINE)
        finally:
            process.kill()
    assert process.returncode == 0, err
    told = [json.loads(line)["event"] for line in err.splitlines()]
    assert "serving" not in told, "only errors were to be logged then"
    assert told[0] == "settings reloaded"
    assert "reloading settings failed, keeping the previous ones" in told
    assert told[-1] == "stopped"
