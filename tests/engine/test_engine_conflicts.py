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


class Two:
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
def two() -> Two:
    return Two()


def test_newest_read_sees_writes_of_other_processes(two: Two) -> None:
    two.elsewhere("POST", MAPS, {"metadata": {"name": "a"}})
    assert two.here.send("GET", f"{MAPS}/a", query={"resourceVersion": "0"}).code == 404
    assert two.here.send("GET", f"{MAPS}/a").code == 200
    two.elsewhere("POST", MAPS, {"metadata": {"name": "b"}})
    assert len(two.here.send("GET", MAPS, query={"resourceVersion": "0"}).body["items"]) == 1
    assert len(two.here.send("GET", MAPS).body["items"]) == 2


def test_a_version_from_elsewhere_is_waited_for(two: Two) -> None:
    created = two.elsewhere("POST", MAPS, {"metadata": {"name": "a"}}).body["metadata"]["resourceVersion"]
    assert two.here.send("GET", f"{MAPS}/a", query={"resourceVersion": created}).code == 200
    later = two.here.send("GET", f"{MAPS}/a", query={"resourceVersion": "99"})
    assert (later.code, later.message) == (504, f"Timeout: Too large resource version: 99, current: {created}")
    assert later.body["details"]["retryAfterSeconds"] == 1


def test_nothing_is_refused_for_what_is_out_of_date(two: Two) -> None:
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


def test_nothing_is_called_unchanged_that_has_changed(two: Two) -> None:
    two.here.send("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    two.elsewhere("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "2"}})
    again = two.here.send("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "1"}})
    assert (again.code, again.body["data"]) == (200, {"k": "1"})
    assert two.here.send("GET", f"{MAPS}/a").body["data"] == {"k": "1"}


def test_a_patch_lands_on_what_is_there_by_then(two: Two) -> None:
    two.here.send("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    two.elsewhere("PATCH", f"{MAPS}/a", {"data": {"l": "1"}}, media_type=MERGE)
    patched = two.here.send("PATCH", f"{MAPS}/a", {"data": {"m": "1"}}, media_type=MERGE)
    assert patched.body["data"] == {"k": "1", "l": "1", "m": "1"}


def test_outdated_resource_version_is_refused(two: Two) -> None:
    created = two.here.send("POST", MAPS, {"metadata": {"name": "a"}}).body["metadata"]
    two.elsewhere("PATCH", f"{MAPS}/a", {"data": {"l": "1"}}, media_type=MERGE)
    body = {"metadata": {"name": "a", "resourceVersion": created["resourceVersion"]}, "data": {"k": "3"}}
    refused = two.here.send("PUT", f"{MAPS}/a", body)
    assert (refused.code, refused.body["reason"]) == (409, "Conflict")
    assert refused.body["details"] == {"name": "a", "kind": "configmaps"}
    two.elsewhere("PATCH", f"{MAPS}/a", {"data": {"l": "2"}}, media_type=MERGE)
    preconditions = {"preconditions": {"resourceVersion": created["resourceVersion"]}}
    assert two.here.send("DELETE", f"{MAPS}/a", preconditions).code == 409


def test_a_name_taken_elsewhere_is_taken(two: Two) -> None:
    two.elsewhere("POST", MAPS, {"metadata": {"name": "a"}})
    refused = two.here.send("POST", MAPS, {"metadata": {"name": "a"}})
    assert (refused.code, refused.body["details"]) == (409, {"name": "a", "kind": "configmaps"})


def test_an_address_taken_elsewhere_is_drawn_again(two: Two) -> None:
    spec = {"ports": [{"port": 80}]}
    two.here.engine._random = Random(3)
    two.there.engine._random = Random(3)
    theirs = two.elsewhere("POST", SERVICES, {"metadata": {"name": "a"}, "spec": spec}).body["spec"]["clusterIP"]
    ours = two.here.send("POST", SERVICES, {"metadata": {"name": "b"}, "spec": spec})
    assert ours.code == 201, ours.body
    assert ours.body["spec"]["clusterIP"] != theirs


def test_what_is_created_by_a_put_elsewhere_is_updated_here(two: Two) -> None:
    two.elsewhere("PUT", f"{LEASES}/a", {"metadata": {"name": "a"}})
    refused = two.here.send("PUT", f"{LEASES}/a", {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}})
    assert refused.code == 422  # the write is now an update, and an update of a Lease needs a version


def test_a_collection_goes_though_some_of_it_is_gone_or_changed(two: Two) -> None:
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


def test_an_update_that_keeps_losing_gives_up() -> None:
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


def test_a_service_that_keeps_losing_its_address_to_others_tries_on() -> None:
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


def test_what_the_log_fails_at_is_not_tried_again() -> None:
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
