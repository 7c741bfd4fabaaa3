"""Fixtures that run commands as users of the CLI do, and a fixture with a small log."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import structlog

from ctrlmgr import cli
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.clock import parse_time
from ctrlmgr.eventlog import Author, Cause, EventType, Outcome, Proposal, open_log
from ctrlmgr.testing import FakeClock


class CommandResult(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


Run = Callable[..., CommandResult]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Run]:
    """Run a command line in an empty directory, without the environment variables of ctrlmgr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def run_command(*arguments: str) -> CommandResult:
        code = cli.run(arguments)
        out, err = capfd.readouterr()
        return CommandResult(code, out, err)

    yield run_command
    # Restore the configuration of logging, which a command changes for its process (here to the test's captured
    # stderr).
    structlog.reset_defaults()
    logging.getLogger().handlers.clear()


def config_map(name: str, namespace: str = "default", **data: str) -> Object:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}"}
    return Object.from_dict({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data})


def secret(name: str) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    return Object.from_dict({"kind": "Secret", "apiVersion": "v1", "metadata": metadata})


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Return the URL of a log with six events; a controller wrote the last event."""
    url = f"sqlite:///{tmp_path / 'log.db'}"
    clock = FakeClock(parse_time("2026-01-02T03:04:05Z"))
    log = open_log(url, clock=clock, random=random.Random(1), migrate=True)
    alice, cause = (
        Author("alice", "kubectl/v1.36"),
        Cause(7, "copier", str(Key("default", "b")), 2, clock.now(), (1, 3)),
    )
    log.append([Proposal(EventType.ADDED, config_map("a"), 0)], author=alice)
    log.append([Proposal(EventType.ADDED, secret("s"), 0)], author=alice)
    log.append([Proposal(EventType.MODIFIED, config_map("a", key="1"), 1)], author=alice)
    log.append([Proposal(EventType.MODIFIED, config_map("a", key="2"), 3)], author=alice)
    log.append([Proposal(EventType.ADDED, config_map("a", "other"), 0)], author=Author("mallory\x1b[31m\n", ""))
    log.append([Proposal(EventType.ADDED, config_map("b"), 0)], author=Author("system:controller:copier"), cause=cause)
    log.finish(7, Outcome(2500, "ok"))
    log.close()
    return url
