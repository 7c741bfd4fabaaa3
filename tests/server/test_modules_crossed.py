"""How many modules a POST crosses on its way from the socket to the row of the event log.

The test holds an upper bound: a change that adds a module to the path has to be worth it. Fewer than about 55 modules
would need files of more than 400 lines: managed fields, validation, HTTP and the log take 5 to 10 modules each.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest

import ctrlmgr
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog.opening import open_log
from tests.server.site import Site, make, serving

PACKAGE = str(Path(ctrlmgr.__file__).parent)
LIMIT = 69
"""Modules, one of which may be that of a timer; with the default plugins, without audit and access control."""


class Crossed:
    """The modules whose functions are called while a request is on its way to the log."""

    def __init__(self) -> None:
        self.requests: list[set[str]] = []
        self._is_armed = False
        self._is_counting = False

    def start(self) -> None:
        """Expect a request."""
        self.requests.append(set())
        self._is_armed, self._is_counting = True, False

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Note the module of each function that is called, from the first bytes that the socket receives."""
        code = frame.f_code
        if event != "call" or not self._is_armed or not code.co_filename.startswith(PACKAGE):
            return
        if self._is_counting and code.co_qualname == "Committer._publish":  # the row is committed
            self._is_armed = False
            return
        self._is_counting |= code.co_name == "buffer_updated"
        if self._is_counting:
            self.requests[-1].add(code.co_filename.removeprefix(PACKAGE))


@pytest.fixture
def crossed() -> Iterator[Crossed]:
    """Return what counts on every thread that starts while the test runs."""
    counted = Crossed()
    threading.setprofile(counted.profile)
    yield counted
    threading.setprofile(None)


def test_a_post_of_a_config_map_crosses_few_modules(crossed: Crossed, tmp_path: Path) -> None:
    log = open_log(f"sqlite:///{tmp_path}/log.db", clock=SystemClock(), random=Random(1), migrate=True)
    made = make(log)
    with serving(made.app) as url:
        site = Site(url, log)
        assert site.ask("/api/v1/namespaces", "POST", {"metadata": {"name": "default"}}).status == 201
        site.create("first", a="b")  # what is compiled on first use is compiled now
        for number in range(10):
            crossed.start()
            site.create(f"next-{number}", a="b")
    log.close()
    modules = set.intersection(*crossed.requests)  # other threads may work meanwhile: timers, watchers
    assert {"/http/base_connection.py", "/engine/verbs/create.py", "/eventlog/sqlite/sqlite_writer.py"} <= modules
    assert len(modules) <= LIMIT, sorted(modules)
