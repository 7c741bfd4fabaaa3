"""Tests of forks by a copy of the file: of a closed log and of a log that a process writes."""

from __future__ import annotations

import fcntl
import random
from pathlib import Path

import pytest

from ctrlmgr.api.resource import PODS
from ctrlmgr.errors import LogUnavailable
from ctrlmgr.eventlog import EventType, Proposal, open_log, verify
from ctrlmgr.eventlog.copying.file_fork import copy_file, fork_file
from ctrlmgr.eventlog.event import Author
from ctrlmgr.eventlog.sqllog import SQLLog
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.builders import a_pod

AUTHOR = Author("test")


def opened(file: Path, *, migrate: bool = False) -> SQLLog:
    log = open_log(f"sqlite:///{file}", clock=FakeClock(), random=random.Random(3), migrate=migrate)
    assert isinstance(log, SQLLog)
    return log


def write(log: SQLLog, name: str) -> None:
    log.append([Proposal(EventType.ADDED, a_pod(name), 0)], author=AUTHOR)


def names(log: SQLLog) -> list[str]:
    return [each.key.name for each in log.snapshot(PODS).objects]


@pytest.mark.parametrize("is_open", [False, True])
def test_a_fork_is_independent(tmp_path: Path, is_open: bool) -> None:
    source = opened(tmp_path / "source.db", migrate=True)
    write(source, "first")
    if not is_open:
        source.close()
    target = tmp_path / "target.db"
    head = fork_file(tmp_path / "source.db", target, is_open=is_open, clock=FakeClock(), random=random.Random(5))
    if not is_open:
        source = opened(tmp_path / "source.db")
    fork = opened(target)
    assert fork.head() == head
    assert head.revision == source.head().revision
    assert head.uuid != source.head().uuid
    write(fork, "second")
    write(source, "other")
    assert names(fork) == ["first", "second"]
    assert names(source) == ["first", "other"]
    source.close()
    fork.close()


def test_a_fork_of_a_fork_is_verified(tmp_path: Path) -> None:
    log = opened(tmp_path / "0.db", migrate=True)
    write(log, "first")
    log.close()
    uuids = set()
    for number in range(3):
        source, target = tmp_path / f"{number}.db", tmp_path / f"{number + 1}.db"
        fork_file(source, target, is_open=False, clock=FakeClock(), random=random.Random(number))
        log = opened(target)
        write(log, f"pod-{number}")
        uuids.add(log.head().uuid)
        assert verify(log).events == number + 2
        log.close()
    assert len(uuids) == 3


def test_a_failed_fork_leaves_no_file(tmp_path: Path) -> None:
    source, target = tmp_path / "source.db", tmp_path / "target.db"
    source.write_bytes(b"no database" * 1000)
    with pytest.raises(LogUnavailable, match=r"source\.db cannot be copied"):
        fork_file(source, target, is_open=False, clock=FakeClock(), random=random.Random(1))
    assert not target.exists()


def test_blocks_are_shared_if_the_file_system_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    requests: list[int] = []

    def share(target: int, request: int, source: int) -> int:
        requests.append(request)
        return 0

    monkeypatch.setattr(fcntl, "ioctl", share)
    assert copy_file(tmp_path / "a", tmp_path / "b")
    assert requests == [0x40049409]

    def refuse(target: int, request: int, source: int) -> int:
        raise OSError("Operation not supported")

    monkeypatch.setattr(fcntl, "ioctl", refuse)
    assert not copy_file(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()
