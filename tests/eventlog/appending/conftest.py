from __future__ import annotations

from collections.abc import Iterator

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog.appending.committer import Committer
from tests.eventlog.appending.scripted import ScriptedWriter


@pytest.fixture
def writer() -> ScriptedWriter:
    return ScriptedWriter()


@pytest.fixture
def line(writer: ScriptedWriter) -> Iterator[Committer]:
    line = Committer(writer, clock=SystemClock(), head=10, patience=5.0)
    yield line
    line.close()
