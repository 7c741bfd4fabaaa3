"""Tests of two engines on one log: each engine may decide on an outdated state, and then the log refuses the append."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from ctrlmgr.engine.operations import REFRESH, Append, Operation, Target
from ctrlmgr.engine.request_options import Body, DeleteOptions, ListOptions, WriteOptions
from ctrlmgr.errors import AlreadyExists, Conflict, CtrlmgrError, LogUnavailable
from ctrlmgr.eventlog.event import EventType, Proposal
from ctrlmgr.testing import FakeClock
from tests.engine.stage import REQUESTER, Response, Stage
from tests.informer.shared_log import SharedLog

MAPS = "/api/v1/namespaces/shop/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"
SERVICES = "/api/v1/namespaces/shop/services"
MERGE = "application/merge-patch+json"


class TwoEngines:
    """Two engines on one log: `here` is outdated after each write of `there`, because neither engine is notified of the
    other's commits.
    """

    def __init__(self) -> None:
        self.log = SharedLog(clock=FakeClock())
        self.here = Stage(log=self.log, seed=1)
        with self.log.elsewhere():
            self.there = Stage(log=self.log, seed=2)
            self.there.namespace("shop")
        self.here.driver._refresh()

    def elsewhere(self, method: str, path: str, body: Any = None, **rest: Any) -> Response:
        with self.log.elsewhere():
            self.there.driver._refresh()
            return self.there.send(method, path, body, **rest)


@pytest.fixture
def two() -> TwoEngines:
    return TwoEngines()


def test_a_most_recent_read_sees_writes_of_other_processes(two: TwoEngines) -> None:
    two.elsewhere("POST", MAPS, {"metadata": {"name": "a"}})
    assert two.here.send("GET", f"{MAPS}/a", query={"resourceVersion": "0"}).code == 404
    assert two.here.send("GET", f"{MAPS}/a").code == 200
    two.elsewhere("POST", MAPS, {"metadata": {"name": "b"}})
    assert len(two.here.send("GET", MAPS, query={"resourceVersion": "0"}).body["items"]) == 1
    assert len(two.here.send("GET", MAPS).body["items"]) == 2


def test_a_request_waits_for_a_newer_resource_version(two: TwoEngines) -> None:
    created = two.elsewhere("POST", MAPS, {"metadata": {"name": "a"}}).body["metadata"]["resourceVersion"]
    assert two.here.send("GET", f"{MAPS}/a", query={"resourceVersion": created}).code == 200
    later = two.here.send("GET", f"{MAPS}/a", query={"resourceVersion": "99"})
    assert (later.code, later.message) == (504, f"Timeout: Too large resource version: 99, current: {created}")
    assert later.body["details"]["retryAfterSeconds"] == 1


def test_a_stale_cache_refuses_nothing(two: TwoEngines) -> None:
    two.elsewhere("POST", MAPS, {"metadata": {"name": "a"}})
    assert two.here.send("PATCH", f"{MAPS}/a", {"data": {"k": "1"}}, media_type=MERGE).code == 200
    two.elsewhere("DELETE", f"{MAPS}/a")
    assert two.here.send("POST", MAPS, {"metadata": {"name": "a"}}).code == 201
    newest = two.elsewhere("PATCH", f"{MAPS}/a", {"data": {"k": "2"}}, media_type=MERGE).body["metadata"]
    body = {"metadata": {"name": "a", "resourceVersion": newest["resourceVersion"]}, "data": {"k": "3"}}
    assert two.here.send("PUT", f"{MAPS}/a", body).code == 200
    two.elsewhere("POST", MAPS, {"metadata": {"name": "b"}})
    assert two.here.send("DELETE", f"{MAPS}/b").code == 200
    two.elsewhere("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}})
    assert two.here.send("POST", MAPS.replace("shop", "new"), {"metadata": {"name": "a"}}).code == 201


def test_a_changed_object_is_never_treated_as_unchanged(two: TwoEngines) -> None:
    two.here.send("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    two.elsewhere("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "2"}})
    again = two.here.send("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "1"}})
    assert (again.code, again.body["data"]) == (200, {"k": "1"})
    assert two.here.send("GET", f"{MAPS}/a").body["data"] == {"k": "1"}


def test_a_patch_applies_to_the_latest_object(two: TwoEngines) -> None:
    two.here.send("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    two.elsewhere("PATCH", f"{MAPS}/a", {"data": {"l": "1"}}, media_type=MERGE)
    patched = two.here.send("PATCH", f"{MAPS}/a", {"data": {"m": "1"}}, media_type=MERGE)
    assert patched.body["data"] == {"k": "1", "l": "1", "m": "1"}


def test_an_outdated_resource_version_is_refused(two: TwoEngines) -> None:
    created = two.here.send("POST", MAPS, {"metadata": {"name": "a"}}).body["metadata"]
    two.elsewhere("PATCH", f"{MAPS}/a", {"data": {"l": "1"}}, media_type=MERGE)
    body = {"metadata": {"name": "a", "resourceVersion": created["resourceVersion"]}, "data": {"k": "3"}}
    refused = two.here.send("PUT", f"{MAPS}/a", body)
    assert (refused.code, refused.body["reason"]) == (409, "Conflict")
    assert refused.body["details"] == {"name": "a", "kind": "configmaps"}
    two.elsewhere("PATCH", f"{MAPS}/a", {"data": {"l": "2"}}, media_type=MERGE)
    preconditions = {"preconditions": {"resourceVersion": created["resourceVersion"]}}
    assert two.here.send("DELETE", f"{MAPS}/a", preconditions).code == 409


def test_a_name_created_by_another_process_conflicts(two: TwoEngines) -> None:
    two.elsewhere("POST", MAPS, {"metadata": {"name": "a"}})
    refused = two.here.send("POST", MAPS, {"metadata": {"name": "a"}})
    assert (refused.code, refused.body["details"]) == (409, {"name": "a", "kind": "configmaps"})


def test_an_address_allocated_by_another_process_is_replaced(two: TwoEngines) -> None:
    spec = {"ports": [{"port": 80}]}
    two.here.engine._random = Random(3)
    two.there.engine._random = Random(3)
    theirs = two.elsewhere("POST", SERVICES, {"metadata": {"name": "a"}, "spec": spec}).body["spec"]["clusterIP"]
    ours = two.here.send("POST", SERVICES, {"metadata": {"name": "b"}, "spec": spec})
    assert ours.code == 201, ours.body
    assert ours.body["spec"]["clusterIP"] != theirs


def test_a_put_to_an_object_created_elsewhere_updates_it(two: TwoEngines) -> None:
    two.elsewhere("PUT", f"{LEASES}/a", {"metadata": {"name": "a"}})
    refused = two.here.send("PUT", f"{LEASES}/a", {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}})
    assert refused.code == 422  # the write is now an update, and an update of a Lease needs a version


def test_a_collection_deletion_tolerates_deleted_and_changed_objects(two: TwoEngines) -> None:
    for number in range(4):
        two.here.send("POST", MAPS, {"metadata": {"name": f"o{number}"}})
    kind = two.here.kinds.find("", "v1", "configmaps")
    assert kind is not None
    operation = two.here.engine.delete_collection(kind, "shop", ListOptions(), None, DeleteOptions(), REQUESTER)
    command = next(operation)
    while not isinstance(command, Append):
        command = operation.send(None)
    two.elsewhere("DELETE", f"{MAPS}/o1")
    two.elsewhere("PATCH", f"{MAPS}/o2", {"data": {"k": "1"}}, media_type=MERGE)
    deleted = finish(two.here, operation, command)
    assert [obj.name for obj in deleted.objects] == ["o0", "o1", "o2", "o3"]
    assert two.here.send("GET", MAPS).body["items"] == []


def finish(stage: Stage, operation: Operation[Any], command: Any) -> Any:
    """Continue an operation after one of its commands."""
    try:
        while True:
            try:
                result = stage.driver._perform(command)
            except CtrlmgrError as error:
                command = operation.throw(error)
            else:
                command = operation.send(result)
    except StopIteration as stop:
        return stop.value


def scripted(stage: Stage, operation: Operation[Any], answer: Callable[[Append], Any]) -> int:
    """Run an operation in which every append gets the result `answer`; return the number of attempted appends."""
    appends, command = 0, next(operation)
    while True:
        if command is REFRESH or not isinstance(command, Append):
            command = operation.send(None)
            continue
        appends += 1
        try:
            answer(command)
        except CtrlmgrError as error:
            command = operation.throw(error)


def target(stage: Stage, name: str) -> Target:
    kind = stage.kinds.find("", "v1", "configmaps")
    assert kind is not None
    return Target(kind, "shop", name)


def test_an_update_with_repeated_conflicts_fails() -> None:
    stage = Stage()
    stage.namespace("shop")
    stage.send("POST", MAPS, {"metadata": {"name": "a"}})
    tries: list[Append] = []

    def lose(command: Append) -> None:
        tries.append(command)
        raise Conflict("another write was faster")

    operation = stage.engine.delete(target(stage, "a"), None, DeleteOptions(), REQUESTER)
    with pytest.raises(Conflict, match='Operation cannot be fulfilled on configmaps "a"') as refused:
        scripted(stage, operation, lose)
    assert len(tries) == 5
    assert refused.value.details is not None
    (proposal,) = tries[0].proposals
    assert (proposal.type, proposal.expected) == (EventType.DELETED, 2)


def test_a_service_with_repeated_address_conflicts_retries() -> None:
    """The last addresses of a range are assigned to concurrent requests, one address to each request."""
    stage = Stage()
    stage.namespace("shop")
    kind = stage.kinds.find("", "v1", "services")
    assert kind is not None
    tries: list[Append] = []

    def lose(command: Append) -> None:
        tries.append(command)
        if len(tries) > 30:
            raise LogUnavailable("that will do")
        raise AlreadyExists("the address")

    body = Body("application/json", b'{"metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}}')
    with pytest.raises(LogUnavailable):
        scripted(stage, stage.engine.create(Target(kind, "shop", ""), body, WriteOptions(), REQUESTER), lose)
    assert len({each.proposals[1].object.name for each in tries}) > 1


def test_a_failure_of_the_log_is_not_retried() -> None:
    stage = Stage()
    stage.namespace("shop")
    tries: list[Append] = []

    def fail(command: Append) -> None:
        tries.append(command)
        raise LogUnavailable("away")

    body = Body("application/json", b'{"metadata":{"name":"a"}}')
    operation = stage.engine.create(target(stage, ""), body, WriteOptions(), REQUESTER)
    with pytest.raises(LogUnavailable):
        scripted(stage, operation, fail)
    assert [type(each) for each in tries[0].proposals] == [Proposal]
    assert len(tries) == 1
