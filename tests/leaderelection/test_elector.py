"""Tests of the elector on a log in memory: its writes, when it trusts the Lease, and its recovery."""

from __future__ import annotations

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import LEASES
from ctrlmgr.errors import Fenced, LogUnavailable
from ctrlmgr.eventlog import Fence
from ctrlmgr.leaderelection.lease_record import SESSION, held
from tests.leaderelection.candidates import Candidate, SharedClockAndLog
from tests.leaderelection.simulation import Sessions


@pytest.fixture
def shared() -> SharedClockAndLog:
    return SharedClockAndLog()


def spec_of(lease: Object) -> dict[str, object]:
    spec: dict[str, object] = lease.to_dict()["spec"]
    return spec


def test_the_first_candidate_leads_and_writes_a_lease_like_client_go(shared: SharedClockAndLog) -> None:
    candidate = Candidate(shared, "a")
    assert candidate.step() == 2.0
    assert candidate.elector.term == 1
    assert candidate.elector.fence() == Fence("leases.coordination.k8s.io/kube-system/ctrlmgr", 1)
    assert shared.lease.to_dict() == {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {
            "name": "ctrlmgr",
            "namespace": "kube-system",
            "uid": "uid-by-a",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 1,
        },
    }


def test_a_leader_renews_every_period_and_keeps_other_fields_of_the_lease(shared: SharedClockAndLog) -> None:
    candidate = Candidate(shared, "a")
    candidate.step()
    labelled = shared.lease.with_metadata(labels={"team": "blue"}, annotations={"note": "x"}, finalizers=["hold/it"])
    shared.write(labelled, 1)
    shared.clock.step(2)
    assert candidate.step() == 4.0
    assert spec_of(shared.lease)["acquireTime"] == "2026-01-01T00:00:00.000000Z"
    assert spec_of(shared.lease)["renewTime"] == "2026-01-01T00:00:02.000000Z"
    assert (shared.lease.labels, shared.lease.annotations) == ({"team": "blue"}, {"note": "x"})
    assert shared.lease.metadata.finalizers == ["hold/it"]
    assert [event.term for event in shared.log.events_after(0)] == [1, 0, 1]


def test_a_candidate_waits_until_the_expiry_and_starts_the_next_term(shared: SharedClockAndLog) -> None:
    leader, candidate = Candidate(shared, "a"), Candidate(shared, "b")
    leader.step()
    shared.clock.step(1)
    assert candidate.step() == 16.0
    assert candidate.elector.has_seen_leader()
    shared.clock.step(14.999)
    candidate.step()
    assert candidate.elector.term == 0
    shared.clock.step(0.001)
    candidate.step()
    assert candidate.elector.term == 2
    assert held(shared.lease)[:2] == ("b", 2)


def test_a_leader_considers_itself_leading_only_until_its_deadline(shared: SharedClockAndLog) -> None:
    leader = Candidate(shared, "a")
    leader.step()
    shared.clock.step(9.999)
    leader.elector.fence()
    shared.clock.step(0.001)
    with pytest.raises(Fenced, match="may be over"):
        leader.elector.fence()


def test_a_leader_replaced_while_frozen_renews_nothing(shared: SharedClockAndLog) -> None:
    leader, candidate = Candidate(shared, "a"), Candidate(shared, "b")
    leader.step()
    candidate.step()
    shared.clock.step(15)
    candidate.step()
    assert leader.elector._term is not None
    # the elector assumes that it has just renewed the lease
    leader.elector._term = leader.elector._term._replace(renewed_at=13.0)
    leader.elector.step()
    assert leader.elector.term == 0
    assert held(shared.lease).holder == "b"
    with pytest.raises(Fenced, match="does not lead"):
        leader.elector.fence()


def test_a_released_lease_is_acquired_at_once(shared: SharedClockAndLog) -> None:
    leader, candidate = Candidate(shared, "a"), Candidate(shared, "b")
    leader.step()
    candidate.step()
    leader.elector.release(1.0)
    assert held(shared.lease)[:3] == ("a", 1, 15.0), "not while somebody may be at work"
    leader.elector.ended()
    leader.elector.release(1.0)
    assert spec_of(shared.lease)["holderIdentity"] == ""
    assert spec_of(shared.lease)["leaseDurationSeconds"] == 1
    candidate.step()
    assert candidate.elector.term == 2


def test_no_term_starts_while_workers_of_the_last_one_run(shared: SharedClockAndLog) -> None:
    leader = Candidate(shared, "a")
    leader.step()
    leader.elector.step_down("for a test")
    assert leader.step() == float("inf")
    leader.elector.ended()
    leader.step()
    assert held(shared.lease)[:2] == ("a", 2)


def test_terms_continue_after_the_lease_is_deleted(shared: SharedClockAndLog) -> None:
    leader, candidate = Candidate(shared, "a"), Candidate(shared, "b")
    leader.step()
    candidate.step()
    shared.delete()
    candidate.step()  # refused, because term 1 existed before
    candidate.step()
    assert candidate.elector.term == 2
    assert shared.lease.uid == "uid-by-b"


def test_a_leader_recreates_a_deleted_lease_and_keeps_leading(shared: SharedClockAndLog) -> None:
    leader = Candidate(shared, "a")
    leader.step()
    shared.delete()
    shared.clock.step(2)
    leader.step()
    assert leader.elector.term == 1
    assert held(shared.lease)[:2] == ("a", 1)


def test_the_end_of_the_holders_session_is_detected_at_once(shared: SharedClockAndLog) -> None:
    sessions = Sessions()
    leader, candidate = Candidate(shared, "a", sessions=sessions), Candidate(shared, "b", sessions=sessions)
    leader.step()
    assert shared.lease.annotations == {SESSION: "simulated:a"}
    assert candidate.step() == sessions.look_again
    sessions.ended.add("simulated:a")
    candidate.step()
    assert candidate.elector.term == 2


def test_the_session_of_another_process_is_ignored(shared: SharedClockAndLog) -> None:
    """If client-go's elector takes over the Lease, our annotation stays on the Lease."""
    sessions = Sessions()
    leader, candidate = Candidate(shared, "a", sessions=sessions), Candidate(shared, "b", sessions=sessions)
    leader.step()
    fields = shared.lease.to_dict()
    fields["spec"]["holderIdentity"] = "somebody else"
    shared.write(Object.from_dict(fields), 1)
    sessions.ended.add("simulated:a")
    candidate.step()
    assert candidate.elector.term == 0
    leader.step()
    assert leader.elector.term == 0, "who holds the lease by the API's rules is respected"


def test_a_retry_waits_for_the_conflicting_write(shared: SharedClockAndLog) -> None:
    first, second = Candidate(shared, "a"), Candidate(shared, "b")
    second.hear()
    first.step()
    assert second.elector.step() == 0.0, "the log knows of a newer term"
    assert second.elector.step() == 2.0, "and of the lease"
    assert second.elector.step() == 2.0, "which is not asked for again"
    assert second.step() == 15.0


def test_a_leader_retries_while_the_log_is_unavailable_and_steps_down_in_time(
    shared: SharedClockAndLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = Candidate(shared, "a")
    leader.step()
    working = shared.log.submit

    def away(*args: object, **kwargs: object) -> None:
        raise LogUnavailable

    monkeypatch.setattr(shared.log, "submit", away)
    moments = []
    while leader.elector.term:
        until = leader.step()
        moments.append(until)
        shared.clock.step(until - shared.clock.monotonic())
    assert moments == [2, 4, 6, 8, 10, 10]
    monkeypatch.setattr(shared.log, "submit", working)
    leader.elector.ended()
    leader.step()
    assert leader.step() == 12
    assert shared.lease.to_dict()["spec"]["leaseTransitions"] == 2


def test_the_elector_is_healthy_until_long_after_its_deadline(shared: SharedClockAndLog) -> None:
    leader = Candidate(shared, "a")
    assert leader.elector.problem() is None
    leader.step()
    shared.clock.step(34.9)
    assert leader.elector.problem() is None
    shared.clock.step(0.1)
    assert leader.elector.problem() == "failed election to renew leadership on lease ctrlmgr"


def test_every_write_of_the_lease_is_made_by_the_elector(shared: SharedClockAndLog) -> None:
    leader = Candidate(shared, "a")
    leader.step()
    leader.elector.ended()
    leader.elector.release(1.0)
    events = shared.log.events_after(0, resource=LEASES)
    assert {event.actor for event in events} == {"system:controller:leader-election"}
    assert [event.term for event in events] == [1, 1]


def test_a_lease_acquired_by_another_is_not_taken_based_on_an_older_one(shared: SharedClockAndLog) -> None:
    sessions = Sessions()
    leader, first, second = (Candidate(shared, name, sessions=sessions) for name in "abc")
    for each in (leader, first, second):
        each.step()
    sessions.end("a")
    first.step()
    second.elector.step()  # refused, because the log is already in term 2
    sessions.around = second.hear  # it reads of term 2 while it checks the session of term 1
    second.elector.step()
    assert (first.elector.term, second.elector.term) == (2, 0)
    assert held(shared.lease)[:2] == ("b", 2)
    sessions.end("b")
    second.elector.step()
    assert second.elector.term == 3, "it does not wait after an attempt on an older lease"
