"""Tests of sessions: a session ends when its process ends, however the process ends, and not before."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog.opening import open_sessions
from ctrlmgr.eventlog.session import NoSessions, Sessions
from tests.background import DEADLINE

HOLD = """
import sys
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog.opening import open_sessions
sessions = open_sessions(sys.argv[1], clock=SystemClock())
print(sessions.hold(sys.argv[2]), flush=True)
sys.stdin.read()
sessions.close()
"""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'shared.db'}"
    return str(request.getfixturevalue("postgres_url"))


@contextmanager
def holding(url: str, identity: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a process that holds a session; yield the process and the session's name."""
    command = [sys.executable, "-c", HOLD, url, identity]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def has_ended(sessions: Sessions, session: str) -> bool:
    """Check a session repeatedly as an elector does, until the session has ended or a time limit is reached."""
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until:
        if sessions.has_ended(session):
            return True
        time.sleep(sessions.look_again)
    return False


def test_a_session_ends_when_its_process_is_killed_and_not_earlier(url: str) -> None:
    sessions = open_sessions(url, clock=SystemClock())
    with holding(url, "a") as (process, name):
        assert name == sessions.name("a")
        for _ in range(5):
            assert not sessions.has_ended(name)
            time.sleep(sessions.look_again)
        process.kill()
        process.wait(DEADLINE)
        assert has_ended(sessions, name)
    sessions.close()


def test_a_session_ends_at_shutdown_and_can_be_acquired_again(url: str) -> None:
    sessions = open_sessions(url, clock=SystemClock())
    with holding(url, "a") as (process, name):
        process.communicate(timeout=DEADLINE)
    assert has_ended(sessions, name)
    with holding(url, "a") as (_, again):
        assert again == name
        assert not sessions.has_ended(name)
    sessions.close()


def test_a_processs_own_session_has_not_ended(url: str) -> None:
    sessions = open_sessions(url, clock=SystemClock())
    name = sessions.hold("a")
    assert sessions.hold("a") == name
    assert not sessions.has_ended(name)
    sessions.close()


@pytest.mark.parametrize("session", ["", "nonsense", "file:x", "postgres:", "other:5"])
def test_an_invalid_session_never_ends(url: str, session: str) -> None:
    sessions = open_sessions(url, clock=SystemClock())
    assert not sessions.has_ended(session)
    sessions.close()


@pytest.mark.postgres
def test_a_session_lost_with_its_connection_is_reacquired_before_it_counts_as_ended(postgres_url: str) -> None:
    ours = open_sessions(postgres_url, clock=SystemClock())
    others = open_sessions(postgres_url, clock=SystemClock())
    name = ours.hold("a")
    assert not others.has_ended(name)
    ours.close()
    assert not others.has_ended(name)
    assert ours.hold("a") in (name, "")
    until = time.monotonic() + DEADLINE
    while not ours.hold("a"):
        assert time.monotonic() < until
        time.sleep(ours.look_again)
    assert not others.has_ended(name)
    ours.close()
    others.close()


def test_a_log_in_memory_has_no_sessions() -> None:
    sessions = open_sessions("memory:", clock=SystemClock())
    assert isinstance(sessions, NoSessions)
    assert (sessions.name("a"), sessions.hold("a"), sessions.has_ended("a")) == ("", "", False)
    sessions.close()
