"""Tests how many modules handle a POST on its way from the socket to the row in the event log.

The number has an upper bound, so that a change adds a module to the path only if the module is worth it. Fewer than
about 55 modules would require files of more than 400 lines: managed fields, validation, HTTP and the log take 5 to 10
modules each.
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
from tests.server.site import CONFIG_MAPS, Site, make, serving

PACKAGE = str(Path(ctrlmgr.__file__).parent)
LIMIT = 71
"""The maximum number of modules, one of which may belong to a timer; default plugins are on, audit and access control
are off.
"""


class CalledModules:
    """Records the modules whose functions are called during a request, up to the log."""

    def __init__(self) -> None:
        self.requests: list[set[str]] = []
        self._is_armed = False
        self._is_counting = False

    def start(self) -> None:
        """Expect a request."""
        self.requests.append(set())
        self._is_armed, self._is_counting = True, False

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Record the module of each called function, beginning with the first bytes that the socket receives."""
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
def crossed() -> Iterator[CalledModules]:
    """Return a trace function for every thread that starts during the test."""
    counted = CalledModules()
    threading.setprofile(counted.profile)
    yield counted
    threading.setprofile(None)


def create_in_two_reads(site: Site) -> None:
    """Create a ConfigMap with a request whose body the server certainly reads after the head.

    `http.client` sends the body separately, so whether one read receives both depends on the load of the machine.
    """
    body = b'{"metadata":{"name":"last"},"data":{"a":"b"}}'
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: {len(body)}\r\n\r\n"
    with site.connect() as connection:
        connection.sendall(head.encode())
        assert connection.recv(1024).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 201 ")


def test_a_post_of_a_config_map_crosses_few_modules(crossed: CalledModules, tmp_path: Path) -> None:
    log = open_log(f"sqlite:///{tmp_path}/log.db", clock=SystemClock(), random=Random(1), migrate=True)
    made = make(log)
    with serving(made.app) as url:
        site = Site(url, log)
        assert site.ask("/api/v1/namespaces", "POST", {"metadata": {"name": "default"}}).status == 201
        site.create("first", a="b")  # code that is compiled at its first use is compiled now
        for number in range(10):
            crossed.start()
            site.create(f"next-{number}", a="b")
        crossed.start()
        create_in_two_reads(site)
    log.close()
    modules = set.intersection(*crossed.requests)  # other threads may run at the same time: timers, watchers
    assert {"/http/base_connection.py", "/engine/verbs/create.py", "/eventlog/sqlite/sqlite_writer.py"} <= modules
    assert len(modules) <= LIMIT, sorted(modules)
