"""Tests of a quota with many callers, two processes, deletions and kills: the quota is never exceeded, and its usage is
correct at the end.

A killed process leaves the log in the state after one of its appends. Therefore the test checks the quota after each
append of the log.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ctrlmgr.admission.plugins.quota_enforcement import QUOTAS
from ctrlmgr.api.resource import Resource
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import EventLog, EventType
from ctrlmgr.eventlog.event import Event
from ctrlmgr.eventlog.opening import open_log
from tests.e2e.serving import Server, until

CALLERS = 64
LIMIT = 40
CONFIGMAPS = Resource("", "configmaps")
MAPS = "/api/v1/namespaces/shop/configmaps"
QUOTA = "/api/v1/namespaces/shop/resourcequotas/q"

DATABASES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        found: str = request.getfixturevalue("postgres_url")
        return found
    return f"sqlite:///{tmp_path / 'quota.db'}"


@pytest.fixture
def servers(url: str, tmp_path: Path) -> Iterator[list[Server]]:
    """Two server processes with one database."""
    made = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        made.append(
            Server(
                folder,
                "--database",
                url,
                "--controllers",
                "namespace-controller,resourcequota-controller",
                "--leader-elect-lease-duration=3s",
                "--leader-elect-renew-deadline=2s",
                "--leader-elect-retry-period=200ms",
            )
        )
    try:
        for server in made:
            server.start()
        yield made
    finally:
        for server in made:
            server.close()


def attempt(server: Server, method: str, path: str, body: Any = None) -> int:
    """Return the status code of the response; 0 means that there was no response, because the process was killed."""
    try:
        code: int = server.request(method, path, body)[0]
    except (OSError, ValueError):
        return 0
    return code


class ObservedCounts:
    """The numbers of ConfigMaps that a test observed, and the responses."""

    def __init__(self) -> None:
        self.codes: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()

    def note(self, method: str, code: int) -> int:
        with self._lock:
            self.codes[method, code] += 1
        return code


def call(number: int, servers: list[Server], counts: ObservedCounts, seen: list[int]) -> None:
    server = servers[number % 2]
    for turn in range(2):
        name = f"m{number}-{turn}"
        made = counts.note("POST", attempt(server, "POST", MAPS, {"metadata": {"name": name}}))
        if made == 201 and (number + turn) % 3 == 0:
            counts.note("DELETE", attempt(server, "DELETE", f"{MAPS}/{name}"))
        if number % 16 == 0:
            code, listed = server.request("GET", MAPS)
            if code == 200:
                seen.append(len(listed["items"]))


def used_and_there(server: Server) -> tuple[int, int]:
    used = server.request("GET", QUOTA)[1]["status"]["used"]["configmaps"]
    return int(used), len(server.request("GET", MAPS)[1]["items"])


def is_settled(server: Server) -> bool:
    used, there = used_and_there(server)
    return used == there


def begin(*servers: Server) -> None:
    """Create the quota; a process charges the quota only after it has read the quota, which takes a moment for the
    other process.
    """
    server = servers[0]
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": str(LIMIT)}}}
    assert server.request("POST", "/api/v1/namespaces/shop/resourcequotas", quota)[0] == 201
    until(lambda: all("used" in each.request("GET", QUOTA)[1].get("status", {}) for each in servers))


def check_after_every_append(url: str) -> None:
    """Check at each revision that the number of objects is at most the charged usage, and the charged usage at most the
    limit.
    """
    there: set[str] = set()
    used, appends = 0, 0
    with closing(open_log(url, clock=SystemClock(), random=Random(1), migrate=False)) as log:
        events = list(all_events(log))
    for _, append in groupby(events, key=lambda event: event.append_id):
        for event in append:
            obj = event.object
            if obj.resource == CONFIGMAPS and obj.namespace == "shop":
                (there.discard if event.type is EventType.DELETED else there.add)(obj.name)
            elif obj.resource == QUOTAS:
                used = int(obj.to_dict().get("status", {}).get("used", {}).get("configmaps", "0"))
        appends += 1
        assert len(there) <= used <= LIMIT, f"after append {appends}"
    assert appends > LIMIT


def all_events(log: EventLog) -> Iterator[Event]:
    revision = 0
    while events := log.events_after(revision, limit=1000):
        yield from events
        revision = events[-1].revision


@pytest.mark.slow
def test_many_clients_create_objects_at_the_quota(servers: list[Server], url: str) -> None:
    begin(*servers)
    counts, seen = ObservedCounts(), list[int]()
    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(lambda number: call(number, servers, counts, seen), range(CALLERS)))
    assert max(seen) <= LIMIT
    assert {code for _, code in counts.codes} <= {200, 201, 403}, counts.codes
    until(lambda: all(is_settled(each) for each in servers))
    used, there = used_and_there(servers[1])
    assert used == there <= LIMIT
    assert counts.codes["POST", 201] - counts.codes["DELETE", 200] == there
    check_after_every_append(url)


# ssl raises this when a handshake is cut off
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
@pytest.mark.slow
def test_a_process_killed_during_a_write_leaves_no_charge_without_its_object(servers: list[Server], url: str) -> None:
    first, second = servers
    begin(second, first)
    stop = threading.Event()

    def press(number: int) -> None:
        turn = 0
        while not stop.is_set():
            name, turn = f"k{number}-{turn}", turn + 1
            if attempt(first, "POST", MAPS, {"metadata": {"name": name}}) == 201 and turn % 2:
                attempt(first, "DELETE", f"{MAPS}/{name}")

    for _ in range(2):
        stop.clear()
        callers = [threading.Thread(target=press, args=(number,)) for number in range(8)]
        for caller in callers:
            caller.start()
        until(lambda: used_and_there(second)[1] > 5)
        first.kill()
        stop.set()
        for caller in callers:
            caller.join()
        used, there = used_and_there(second)
        assert there <= used or is_settled(second), "what is there has been charged"
        until(lambda: is_settled(second))
        assert used_and_there(second)[1] <= LIMIT
        first.start()
        for item in second.request("GET", MAPS)[1]["items"]:
            second.request("DELETE", f"{MAPS}/{item['metadata']['name']}")
    until(lambda: used_and_there(second) == (0, 0))
    check_after_every_append(url)
