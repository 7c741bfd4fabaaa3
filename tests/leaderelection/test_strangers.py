"""Tests of writes of the Lease by clients that are not candidates: the elector detects the write, and the write has no
other effect.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.leaderelection.elector import TRUSTED
from tests.leaderelection.candidates import Candidate, SharedClockAndLog
from tests.leaderelection.simulation import Sessions


@pytest.fixture
def shared() -> SharedClockAndLog:
    return SharedClockAndLog()


def written(shared: SharedClockAndLog, **spec: Any) -> None:
    """Write the Lease as a client that is not a candidate."""
    fields = shared.lease.to_dict()
    fields["spec"] |= spec
    shared.write(Object.from_dict(fields), shared.lease.revision)


@pytest.mark.parametrize("transitions", [2_147_483_647, TRUSTED, 1 << 62])
def test_a_term_continues_from_the_log_and_not_from_a_clients_lease(
    shared: SharedClockAndLog, transitions: int
) -> None:
    first = Candidate(shared, "a")
    first.step()
    written(shared, holderIdentity="mallory", leaseTransitions=transitions)
    shared.clock.step(15)
    candidate = Candidate(shared, "b")
    candidate.step()
    shared.clock.step(15)
    for _ in range(3):
        candidate.step()
    assert candidate.elector.term == 2
    assert shared.lease.to_dict()["spec"]["leaseTransitions"] == 2


def test_the_wait_for_a_lease_is_limited(shared: SharedClockAndLog) -> None:
    leader, candidate = Candidate(shared, "a"), Candidate(shared, "b")
    leader.step()
    written(shared, holderIdentity="mallory", leaseDurationSeconds=2_147_483_647)
    assert candidate.step() == 150.0
    shared.clock.step(150)
    candidate.step()
    candidate.step()
    assert candidate.elector.term == 2


def test_a_holder_with_the_session_of_another_process_is_foreign(shared: SharedClockAndLog) -> None:
    sessions = Sessions()
    leader, candidate = Candidate(shared, "a", sessions=sessions), Candidate(shared, "b", sessions=sessions)
    leader.step()
    candidate.step()
    assert (leader.elector.foreign_holder(), candidate.elector.foreign_holder()) == ("", "")
    written(shared, holderIdentity="mallory")
    candidate.step()
    assert candidate.elector.foreign_holder() == "mallory"
    leader.step()
    leader.elector.ended()
    assert leader.elector.foreign_holder() == "mallory"


def test_a_leader_behind_a_pooler_has_no_session_and_is_not_foreign(shared: SharedClockAndLog) -> None:
    leader, candidate = Candidate(shared, "a"), Candidate(shared, "b", sessions=Sessions())
    leader.step()
    candidate.step()
    assert (shared.lease.to_dict()["spec"]["holderIdentity"], candidate.elector.foreign_holder()) == ("a", "")


def test_no_foreign_writer_is_reported_without_sessions(shared: SharedClockAndLog) -> None:
    leader, candidate = Candidate(shared, "a"), Candidate(shared, "b")
    leader.step()
    written(shared, holderIdentity="mallory")
    candidate.step()
    assert candidate.elector.foreign_holder() == ""
