from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.client import LogClient
from ctrlmgr.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Fenced,
    LogUnavailable,
    NotFound,
    OutcomeUnknown,
)
from ctrlmgr.eventlog.event import Author, Cause, Event, EventType, Fence, Proposal
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.testing import FakeClock

AUTHOR = Author("system:controller:tester", "ctrlmgr/test")
CREATED = "2026-01-01T00:00:00Z"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def log(clock: FakeClock) -> MemoryEventLog:
    return MemoryEventLog(clock=clock, random=random.Random(0))


@pytest.fixture
def client(log: MemoryEventLog, clock: FakeClock) -> LogClient:
    return make_client(log, clock)


def make_client(log: MemoryEventLog, clock: FakeClock, **options: Any) -> LogClient:
    uids = itertools.count(1)
    return LogClient(log, author=AUTHOR, clock=clock, new_uid=lambda: f"uid-{next(uids)}", **options)


def pod(name: str = "p", *, spec: str = "", **metadata: Any) -> Object:
    head = {"name": name, "namespace": "default", **metadata}
    return Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": head, "spec": {"x": spec}})


def namespace(name: str = "default", *, phase: str = "Active", **metadata: Any) -> Object:
    head = {"name": name, **metadata}
    return Object.from_dict({"kind": "Namespace", "apiVersion": "v1", "metadata": head, "status": {"phase": phase}})


def edited(obj: Object, spec: str) -> Object:
    fields = obj.to_dict()
    fields["spec"] = {"x": spec}
    return Object.from_dict(fields)


def events(log: MemoryEventLog) -> list[Event]:
    return list(log.events_after(0))


def test_create_fills_uid_and_creation_time_in_whole_seconds(client: LogClient, clock: FakeClock) -> None:
    clock.step(1.9)
    created = client.create(pod(spec="s", generation=7, uid="mine", labels={"a": "b"}))
    assert created.revision == 1
    assert created.to_dict() == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": "p",
            "namespace": "default",
            "uid": "uid-1",
            "resourceVersion": "1",
            "generation": 7,
            "creationTimestamp": "2026-01-01T00:00:01Z",
            "labels": {"a": "b"},
        },
        "spec": {"x": "s"},
    }


def test_a_write_returns_the_stored_object(client: LogClient, log: MemoryEventLog) -> None:
    created = client.create(pod())
    assert log.get(created.resource, created.key) is created
    updated = client.update(edited(created, "new"))
    assert log.get(created.resource, created.key) is updated
    assert updated.revision == 2


def test_creating_an_existing_object_is_refused(client: LogClient) -> None:
    client.create(pod())
    with pytest.raises(AlreadyExists, match='pods "p" already exists'):
        client.create(pod())


def test_a_recreated_object_has_another_uid(client: LogClient) -> None:
    first = client.create(pod())
    client.delete(first)
    assert client.create(pod()).uid != first.uid


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"uid": "mine"}, {"uid": "uid-1"}, id="a uid cannot be changed"),
        pytest.param({"uid": ""}, {"uid": "uid-1"}, id="a uid left out is filled in"),
        pytest.param(
            {"creation_timestamp": "2020-01-01T00:00:00Z"},
            {"creation_timestamp": CREATED},
            id="the creation time cannot be changed",
        ),
        pytest.param(
            {"creation_timestamp": None}, {"creation_timestamp": CREATED}, id="a creation time left out is filled in"
        ),
        pytest.param(
            {"deletion_timestamp": CREATED, "deletion_grace_period_seconds": 0},
            {"deletion_timestamp": None, "deletion_grace_period_seconds": None},
            id="an update cannot delete",
        ),
        pytest.param({"generation": 3}, {"generation": 3}, id="generation is the caller's"),
        pytest.param({"labels": {"a": "b"}}, {"labels": {"a": "b"}}, id="labels are the caller's"),
    ],
)
def test_update_keeps_system_fields(client: LogClient, changes: dict[str, Any], expected: dict[str, Any]) -> None:
    created = client.create(pod())
    updated = client.update(edited(created, "new").with_metadata(**changes))
    assert {field: getattr(updated.metadata, field) for field in expected} == expected
    assert updated.to_dict()["spec"] == {"x": "new"}


def test_update_cannot_undo_a_deletion(client: LogClient, log: MemoryEventLog) -> None:
    created = client.create(pod(finalizers=["hold"]))
    client.delete(created)
    terminating = log.get(created.resource, created.key)
    assert terminating is not None
    updated = client.update(edited(terminating, "new").with_metadata(deletion_timestamp=None))
    assert updated.is_terminating
    assert updated.metadata.deletion_grace_period_seconds == 0


def test_an_update_without_changes_appends_nothing(client: LogClient, log: MemoryEventLog) -> None:
    created = client.create(pod())
    idle = client.for_reconcile(cause())
    assert idle.update(created) is created
    assert idle.update(created.with_metadata(uid="")) is created
    assert not idle.wrote
    assert log.head().revision == 1


def stale(client: LogClient) -> Object:
    read = client.create(pod())
    client.update(edited(read, "changed by somebody"))
    return read


def deleted_pod(client: LogClient) -> Object:
    read = client.create(pod())
    client.delete(read)
    return read


def replaced(client: LogClient) -> Object:
    read = deleted_pod(client)
    client.create(pod())
    return read


@pytest.mark.parametrize("verb", ["update", "delete"])
@pytest.mark.parametrize(
    ("make", "error", "actual"),
    [
        pytest.param(stale, Conflict, 2, id="it has changed since"),
        pytest.param(deleted_pod, NotFound, None, id="it has been deleted since"),
        pytest.param(replaced, Conflict, 3, id="another has taken its name since"),
        pytest.param(lambda client: pod(), NotFound, None, id="it never was"),
    ],
)
def test_a_write_with_an_outdated_revision_is_refused(
    client: LogClient, log: MemoryEventLog, verb: str, make: Any, error: type[ApiError], actual: int | None
) -> None:
    obj = make(client)
    head = log.head()
    with pytest.raises(error) as raised:
        getattr(client, verb)(obj)
    assert getattr(raised.value, "actual", None) == actual
    assert log.head() == head


def test_an_update_without_changes_of_a_stale_object_conflicts(client: LogClient) -> None:
    read = client.create(pod())
    client.update(client.update(edited(read, "x")).with_metadata(labels={"a": "b"}))
    with pytest.raises(Conflict):
        client.update(read)


def test_delete_appends_the_last_state(client: LogClient, log: MemoryEventLog) -> None:
    created = client.create(pod(spec="last"))
    client.delete(edited(created, "what the caller made of it"))
    event = events(log)[-1]
    assert event.type is EventType.DELETED
    assert event.object.body == created.body
    assert log.get(created.resource, created.key) is None


def test_delete_with_finalizers_marks_once_and_the_last_finalizer_deletes(
    client: LogClient, log: MemoryEventLog, clock: FakeClock
) -> None:
    created = client.create(pod(finalizers=["one", "two"]))
    clock.step(60)
    client.delete(created)
    marked = log.get(created.resource, created.key)
    assert marked is not None
    assert marked.metadata.deletion_timestamp == "2026-01-01T00:01:00Z"
    assert marked.metadata.deletion_grace_period_seconds == 0
    clock.step(60)
    client.delete(marked)
    assert log.head().revision == 2
    held = client.update(marked.with_metadata(finalizers=["two"]))
    assert held.is_terminating
    last = client.update(edited(held, "bye").with_metadata(finalizers=None))
    assert [event.type.name for event in events(log)] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    assert last.to_dict()["spec"] == {"x": "bye"}
    assert log.get(created.resource, created.key) is None


def test_removing_finalizers_of_an_existing_object_deletes_nothing(client: LogClient, log: MemoryEventLog) -> None:
    created = client.create(pod(finalizers=["one"]))
    client.update(created.with_metadata(finalizers=None))
    assert log.get(created.resource, created.key) is not None


def test_an_update_during_the_grace_period_deletes_nothing(client: LogClient, log: MemoryEventLog) -> None:
    terminating = pod(deletionTimestamp=CREATED, deletionGracePeriodSeconds=30)
    log.append([Proposal(EventType.ADDED, terminating, 0)], author=AUTHOR)
    stored = log.get(terminating.resource, terminating.key)
    assert stored is not None
    client.update(edited(stored, "status"))
    assert log.get(terminating.resource, terminating.key) is not None


def cause(id: int = 5) -> Cause:
    return Cause(id, "tester", "default/p", 1, 0, (1, 2))


def test_writes_of_a_reconcile_have_its_cause_and_author(client: LogClient, log: MemoryEventLog) -> None:
    reconciling = client.for_reconcile(cause())
    assert not reconciling.wrote
    reconciling.delete(reconciling.update(edited(reconciling.create(pod()), "new")))
    assert [reconciling.wrote, client.wrote] == [True, False]
    assert [event.reconcile for event in events(log)] == [5, 5, 5]
    assert {(event.actor, event.user_agent) for event in events(log)} == {(AUTHOR.actor, AUTHOR.user_agent)}
    known = log.reconcile(5)
    assert known is not None
    assert known.cause == cause()


def test_for_reconcile_shares_all_other_fields(log: MemoryEventLog, clock: FakeClock) -> None:
    client = make_client(log, clock, fence=lambda: Fence("lease", 3, takeover=True))
    reconciling = client.for_reconcile(cause())
    assert reconciling.create(pod()).uid == "uid-1"
    assert events(log)[0].term == 3


def test_the_fence_is_checked_at_every_write(log: MemoryEventLog, clock: FakeClock) -> None:
    log.append([Proposal(EventType.ADDED, pod("lease"), 0)], author=AUTHOR, fence=Fence("l", 1, takeover=True))
    fences = iter([Fence("l", 1), None, Fence("l", 0)])
    client = make_client(log, clock, fence=lambda: next(fences))
    created = client.create(pod())
    updated = client.update(edited(created, "new"))
    with pytest.raises(Fenced):
        client.delete(updated)
    assert [event.term for event in events(log)] == [1, 1, 0]


@pytest.mark.parametrize(
    ("error", "wrote"),
    [
        pytest.param(LogUnavailable(), False, id="nothing was written"),
        pytest.param(OutcomeUnknown(), True, id="it may have been written"),
    ],
)
def test_a_failed_append_is_raised_and_wrote_returns_whether_it_may_exist(
    clock: FakeClock, error: Exception, wrote: bool
) -> None:
    class FailingLog(MemoryEventLog):
        def append(self, *args: Any, **kwargs: Any) -> Any:
            raise error

    client = make_client(FailingLog(clock=clock, random=random.Random(0)), clock)
    with pytest.raises(type(error)):
        client.create(pod())
    assert client.wrote is wrote


def test_a_reconcile_writes_only_in_the_term_in_which_it_began(log: MemoryEventLog, clock: FakeClock) -> None:
    log.append([Proposal(EventType.ADDED, pod("lease"), 0)], author=AUTHOR, fence=Fence("l", 1, takeover=True))
    fences = [Fence("l", 1)]
    client = make_client(log, clock, fence=lambda: fences[-1])
    reconciling = client.for_reconcile(Cause(1, "c", "k", 1, 0, ()))
    reconciling.create(pod("a"))
    log.append([Proposal(EventType.ADDED, pod("again"), 0)], author=AUTHOR, fence=Fence("l", 2, takeover=True))
    fences.append(Fence("l", 2))
    with pytest.raises(Fenced, match="in which this reconcile started"):
        reconciling.create(pod("b"))
    client.for_reconcile(Cause(2, "c", "k", 1, 0, ())).create(pod("b"))
    assert [event.term for event in events(log)] == [1, 1, 2, 2]


def test_a_reconcile_does_not_begin_in_an_ended_term(log: MemoryEventLog, clock: FakeClock) -> None:
    def fence() -> Fence:
        raise Fenced("this process does not lead")

    client = make_client(log, clock, fence=fence)
    with pytest.raises(Fenced, match="does not lead"):
        client.for_reconcile(Cause(1, "c", "k", 1, 0, ()))
