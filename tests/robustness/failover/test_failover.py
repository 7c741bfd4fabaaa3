"""Tests of leaders that are killed, stopped and frozen: another process takes over, and nothing more is written in the
old term.

With a lease of a minute, another process can take over within the time limit of the test only if the holder's session
ends or the Lease is released.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.robustness.failover.leaders import Candidate, Group, until

LONG = ("--leader-elect-lease-duration", "60s", "--leader-elect-renew-deadline", "40s")
SHORT = ("--leader-elect-lease-duration", "3s", "--leader-elect-renew-deadline", "2s")
SHORTER = (*SHORT, "--leader-elect-retry-period", "500ms")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'shared.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.mark.slow
def test_the_successor_of_a_killed_leader_does_not_wait_for_the_lease(tmp_path: Path, database: str) -> None:
    ends: list[Callable[[Candidate], None]] = [Candidate.kill, Candidate.stop]
    with Group(tmp_path, database, *LONG) as group:
        for term, end in enumerate(ends, 1):
            leader = group.leader()
            group.await_endpoints(group.service(leader))
            end(leader)
            group.await_endpoints(group.service(group.other(leader)))
            assert group.lease().term == term + 1
            if end is Candidate.kill:
                leader.start()  # and is a candidate again
                assert not leader.leads()
        assert group.violations() == []


@pytest.mark.slow
def test_a_process_frozen_beyond_its_lease_writes_nothing_in_its_old_term(tmp_path: Path, database: str) -> None:
    with Group(tmp_path, database, *SHORTER) as group:
        leader, before = group.leader(), group.lease()
        other = group.other(leader)
        group.freeze(leader)
        waiting = [group.service(other) for _ in range(3)]
        for service in waiting:
            group.await_endpoints(service)
        assert group.lease().term > before.term
        leader.signal(signal.SIGCONT)
        until(lambda: not leader.leads() or group.lease().term > before.term + 1)
        assert leader.request("GET", "/healthz")[0] == 200, "it goes on serving"
        group.await_endpoints(group.service(leader))
        group.other(other).stop()
        assert group.violations() == []


@pytest.mark.slow
def test_a_process_that_lost_its_leadership_leads_again(tmp_path: Path) -> None:
    with Group(tmp_path, f"sqlite:///{tmp_path / 'shared.db'}", *SHORTER) as group:
        first = group.leader()
        second = group.other(first)
        group.freeze(first)
        group.await_endpoints(group.service(second))
        first.signal(signal.SIGCONT)
        until(lambda: not first.leads())
        service = group.service(first)
        second.kill()
        group.await_endpoints(service)
        group.await_endpoints(group.service(first))
        assert group.leader() is first
        assert group.lease().term >= 3
        assert group.violations() == []


@pytest.mark.slow
def test_roles_run_in_separate_processes(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'shared.db'}"
    with Group(tmp_path, database, "--api-only", size=1) as group:
        api = group.servers[0]
        service = group.service(api)
        assert "leader-election" not in api.request("GET", "/readyz?verbose")[1]
        controllers = Candidate(tmp_path / "controllers", database, "--controllers-only")
        try:
            controllers.start()
            group.await_endpoints(service)
            assert controllers.leads()
            assert controllers.request("GET", "/healthz?verbose")[1].startswith("[+]ping ok\n[+]leaderElection ok\n")
            assert controllers.request("GET", "/api/v1/namespaces")[0] == 404
            group.await_endpoints(group.service(api))
            controllers.stop()
        finally:
            controllers.close()
        assert group.lease().holder == ""
        assert group.violations() == []
