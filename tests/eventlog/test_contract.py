from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctrlmgr.eventlog import open_log
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.eventlog_contract import EventLogContract, VerifiableLog
from ctrlmgr.testing.failure_contract import FailureContract
from ctrlmgr.testing.import_contract import ImportContract
from ctrlmgr.testing.namespace_contract import NamespaceContract
from ctrlmgr.testing.trace_contract import TraceContract


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory:"
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/log.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def log(url: str, clock: FakeClock) -> Iterator[VerifiableLog]:
    log = open_log(url, clock=clock, random=random.Random(7), migrate=True)
    yield log
    log.close()


class TestEventLog(EventLogContract):
    pass


class TestNamespaces(NamespaceContract):
    pass


class TestImports(ImportContract):
    pass


class TestFailures(FailureContract):
    pass


class TestTraces(TraceContract):
    pass
