"""Tests of the deletion of a namespace when the deleting process crashes: at every append, repeatedly, and with real
processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ctrlmgr.admission.plugin_registry import default_chain
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINTS, NAMESPACES, PODS, Resource
from ctrlmgr.client import ControllerRunner, EngineClient, InformerState
from ctrlmgr.engine.operations import Answer, Command, Operation, Target
from ctrlmgr.engine.request_options import Body, Requester, WriteOptions
from ctrlmgr.engine.write_engine import WriteEngine
from ctrlmgr.errors import CtrlmgrError, Forbidden, LogClosed, NamespaceTerminating, NotFound
from ctrlmgr.eventlog import Event, EventType
from ctrlmgr.informer import EventWindow, Informers
from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.faults import new_seed
from tests.robustness.histories.run import RunSetup
from tests.robustness.namespaces.deletion import Plan, delete
from tests.robustness.namespaces.stage import DOOMED, GRACE, HOLD, NamespaceUsers, Process, beginning
from tests.robustness.places import on_postgres, on_sqlite

STEPS: Sequence[Callable[[NamespaceUsers], None]] = (
    NamespaceUsers.doom,
    NamespaceUsers.end_pods,
    NamespaceUsers.release,
)

Start = Callable[[NamespaceUsers], Process]
"""A function that starts the process that follows after a crash."""


def delete_the_namespace(first: Start, following: Start) -> tuple[NamespaceUsers, Process]:
    """Run the scenario; return the final state, and the last process."""
    users = NamespaceUsers(beginning())
    process = first(users)
    for step in STEPS:
        step(users)
        while True:
            try:
                process.settle()
                break
            except LogClosed:
                process = following(users)
    return users, process


def check(users: NamespaceUsers) -> None:
    """Check the final state, and check that no object was deleted wrongly."""
    assert [body_of(obj) for obj in users.objects()] == [body_of(obj) for obj in beginning() if is_outside(obj)]
    left = {obj.key: obj for obj in beginning() if obj.namespace == DOOMED and obj.resource == PODS}
    gone = False
    for event in users.events():
        assert not is_outside(event.object), event
        assert not gone, f"{event} came after the namespace had gone"
        gone = event.resource == NAMESPACES and event.type is EventType.DELETED
        if event.resource == PODS:
            if event.type is EventType.DELETED:
                del left[event.key]
        elif event.resource != NAMESPACES and is_deletion(event):
            assert not left, f"{event} was deleted before the pods"


def is_outside(obj: Object) -> bool:
    """Return whether an object must remain: it is neither the deleted namespace, nor its content, nor a claim of one of
    its addresses.
    """
    parent = obj.to_dict().get("spec", {}).get("parentRef", {}) if obj.resource.plural in _CLAIMS else {}
    return DOOMED not in (obj.namespace, obj.key.name, parent.get("namespace"))


_CLAIMS = ("ipaddresses", "nodeports")


def is_deletion(event: Event) -> bool:
    return event.type is EventType.DELETED or event.object.is_terminating


def body_of(obj: Object) -> tuple[str, bytes]:
    return str(obj.resource), obj.body


def immortal(users: NamespaceUsers) -> Process:
    return Process(users)


def mortal(lives: int, *, late: bool) -> Start:
    return lambda users: Process(users, lives, late=late)


def test_the_scenario_covers_all_features() -> None:
    users, process = delete_the_namespace(immortal, immortal)
    check(users)
    inside = [obj for obj in beginning() if obj.namespace == DOOMED]
    assert len(inside) >= 35
    assert sum(HOLD in (obj.metadata.finalizers or ()) for obj in inside) == 4
    assert process.appends >= len(inside)


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_the_process_can_crash_before_every_append(late: bool) -> None:
    _, whole = delete_the_namespace(immortal, immortal)
    for lives in range(whole.appends):
        users, _ = delete_the_namespace(mortal(lives, late=late), immortal)
        check(users)


def test_the_process_can_crash_after_every_append() -> None:
    deaths = []

    def short_lived(users: NamespaceUsers) -> Process:
        deaths.append(users)
        return Process(users, 0, late=True)

    users, _ = delete_the_namespace(short_lived, short_lived)
    check(users)
    assert len(deaths) > 40


@pytest.mark.parametrize("seed", range(20))
def test_the_process_can_crash_repeatedly(seed: int) -> None:
    draw = Random(seed)

    def some_lives(users: NamespaceUsers) -> Process:
        return Process(users, draw.randrange(12), late=draw.random() < 0.5)

    users, _ = delete_the_namespace(some_lives, some_lives)
    check(users)


@pytest.mark.parametrize("seed", range(10))
def test_two_concurrent_writers_do_not_conflict(seed: int) -> None:
    draw = Random(seed)
    users = NamespaceUsers(beginning())
    processes = [Process(users), Process(users)]
    for step in STEPS:
        step(users)
        for _ in range(10):
            while any(process.work() for process in draw.sample(processes, 2)):
                pass
            users.clock.step(GRACE)
    check(users)


class OvertakenProcess(Process):
    """A process during whose work another client writes: after the first append of the process, `then` is called."""

    def __init__(self, users: NamespaceUsers, then: Callable[[], None]) -> None:
        super().__init__(users)
        self._then = then

    def appended(self) -> None:
        super().appended()
        if self.appends == 1:
            self._then()
            while self.informers.step():
                pass


def test_a_recreated_namespace_is_another_namespace() -> None:
    users = NamespaceUsers(beginning())

    def finish_and_make_anew() -> None:
        other = Process(users)
        other.settle()
        users.release()
        other.settle()
        users.ask("POST", "/api/v1/namespaces", {"metadata": {"name": DOOMED}})
        for kind in ("configmaps", "services", "pods"):
            users.ask("POST", f"/api/v1/namespaces/{DOOMED}/{kind}", FRESH[kind])

    users.ask("DELETE", f"/api/v1/namespaces/{DOOMED}/pods", {"gracePeriodSeconds": 0})
    users.ask("PATCH", f"/api/v1/namespaces/{DOOMED}/pods/held", {"metadata": {"finalizers": None}})
    users.doom()
    OvertakenProcess(users, finish_and_make_anew).settle()
    left = [obj for obj in users.objects() if obj.namespace == DOOMED]
    assert [(obj.resource.plural, obj.name, obj.is_terminating) for obj in left] == [
        ("configmaps", "fresh", False),
        ("pods", "fresh", False),
        ("services", "fresh", False),
    ]


FRESH: dict[str, Any] = {
    "configmaps": {"metadata": {"name": "fresh"}},
    "services": {"metadata": {"name": "fresh"}, "spec": {"ports": [{"port": 80}]}},
    "pods": {"metadata": {"name": "fresh"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
}


# Creates by a process with an outdated cache.


def creation(users: NamespaceUsers, name: str = "late") -> Operation[Answer]:
    """Return the operation that creates a ConfigMap; the operation is not started yet."""
    kind = users.people.kinds.stored(Resource("", "configmaps"))
    assert kind is not None
    fields = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}}
    body = Body("application/json", json.dumps(fields).encode())
    return users.people.engine.create(Target(kind, DOOMED, ""), body, WriteOptions(), Requester("alice"))


@pytest.mark.parametrize("steps", [1, 2, 3], ids=["terminating", "being emptied", "gone"])
def test_a_creation_decided_before_the_deletion_is_refused(steps: int) -> None:
    users = NamespaceUsers(beginning())
    operation = creation(users)
    command = next(operation)
    process = Process(users)
    for step in STEPS[:steps]:
        step(users)
        process.settle()
    error = NotFound if steps == 3 else Forbidden
    with pytest.raises(error) as refused:
        users.people.driver.run(resumed(operation, command))
    assert refused.value.code == (404 if steps == 3 else 403)
    for step in STEPS[steps:]:
        step(users)
        process.settle()
    check(users)


def test_a_creation_survives_an_unrelated_change_of_its_namespace() -> None:
    users = NamespaceUsers(beginning())
    operation = creation(users)
    command = next(operation)
    users.ask("PATCH", f"/api/v1/namespaces/{DOOMED}", {"metadata": {"labels": {"a": "b"}}})
    assert users.people.driver.run(resumed(operation, command)).code == 201


def test_a_controllers_creation_decided_before_the_deletion_is_refused() -> None:
    users = NamespaceUsers(beginning())
    late = Object.from_dict({"kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": "e", "namespace": DOOMED}})
    feed = EventWindow(users.log, clock=users.clock)
    behind = Informers(users.log, feed, clock=users.clock)
    behind.informer(NAMESPACES)
    behind.sync()
    state = InformerState(behind, users.log)

    def reach(revision: int, patience: float) -> bool:
        feed.catch_up()
        return behind.step() > 0

    engine = WriteEngine(
        users.people.kinds,
        state,
        clock=users.clock,
        random=Random(1),
        admission=default_chain(users.people.kinds, users.clock),
    )
    client = EngineClient(engine, ControllerRunner(users.log, state, reach), Requester("controller"), canonical=True)
    users.ask("PATCH", f"/api/v1/namespaces/{DOOMED}", {"metadata": {"labels": {"a": "b"}}})
    client.create(late)
    client.delete(users.log.get(ENDPOINTS, late.key) or late)
    users.doom()
    with pytest.raises(NamespaceTerminating):
        client.create(late)


def resumed(operation: Operation[Answer], command: Command) -> Operation[Answer]:
    """Continue an operation that waits for the result of one of its commands."""
    while True:
        try:
            result = yield command
        except CtrlmgrError as error:
            command = operation.throw(error)
        else:
            try:
                command = operation.send(result)
            except StopIteration as stop:
                answer: Answer = stop.value
                return answer


# Tests with real processes.


def assert_sound(setting: RunSetup) -> None:
    plan = Plan(new_seed(), objects=120, kills=2)
    command = f"python -m tests.robustness.namespaces.deletion --seed {plan.seed}"
    print(command)  # noqa: T201  # to be run again
    outcome = delete(plan, setting)
    assert outcome.wrong == []
    assert outcome.revisions >= plan.objects


@pytest.mark.slow
def test_processes_on_one_file_can_be_killed(tmp_path: Path) -> None:
    assert_sound(on_sqlite(tmp_path)._replace(servers=2))


@pytest.mark.slow
@pytest.mark.postgres
def test_a_process_on_postgresql_can_be_killed(tmp_path: Path, cluster: PostgresCluster) -> None:
    with on_postgres(tmp_path, cluster) as setting:
        assert_sound(setting)
