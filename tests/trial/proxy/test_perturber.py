"""Perturbations of a plan happen to the writes that the plan names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctrlmgr.api.resource import PODS
from ctrlmgr.testing import FakeClock
from ctrlmgr.trial.perturbation_plan import Perturbation, Plan
from ctrlmgr.trial.proxy.operator_request import Answer, ConnectionDropped, Request, read_request
from ctrlmgr.trial.proxy.perturber import Hands, LearnedWrite, Perturber
from ctrlmgr.trial.proxy.watch_streams import WatchStreams

MAPS = "/api/v1/namespaces/shop/configmaps"
CREATE = "create configmaps shop/web"
UPDATE = "update configmaps shop/web"


class Scene:
    """A perturber, and what it does to the operator and the server."""

    def __init__(self, *perturbations: Perturbation) -> None:
        self.clock = FakeClock()
        self.watches = WatchStreams(clock=self.clock)
        self.did: list[str] = []
        self.sent: list[Request] = []
        hands = Hands(lambda: self.did.append("crash"), lambda path: self.did.append(f"touch {path}"), lambda: 42)
        self.perturber = Perturber(Plan(perturbations), self.watches, hands, clock=self.clock)

    def forward(self, request: Request) -> Answer:
        self.sent.append(request)
        self.did.append(request.verb)
        return Answer(200 + len(self.sent), {}, b"")

    def call(self, method: str, target: str, name: str = "", **metadata: Any) -> Answer:
        fields = {"metadata": {**({"name": name} if name else {}), **metadata}}
        return self.perturber.answer(read_request(method, target, {}, json.dumps(fields).encode()), self.forward)

    def create(self, name: str = "web") -> Answer:
        return self.call("POST", MAPS, name)

    def update(self) -> Answer:
        return self.call("PUT", f"{MAPS}/web", "web", resourceVersion="7")


def test_without_a_plan_requests_pass_and_are_learned() -> None:
    scene = Scene()
    assert scene.create().code == 201
    assert scene.update().code == 202
    assert scene.create().code == 203
    assert [(str(each.call), *each[1:]) for each in scene.perturber.writes] == [
        (CREATE, 1, 201, False),
        (UPDATE, 1, 202, True),
        (CREATE, 2, 203, False),
    ]
    assert [*scene.perturber.rights] == ["create configmaps", "update configmaps"]
    assert scene.perturber.is_over()


def test_the_operator_is_killed_before_a_write() -> None:
    scene = Scene(Perturbation("crash-before", CREATE))
    with pytest.raises(ConnectionDropped):
        scene.create()
    assert scene.did == ["crash"]
    assert scene.create().code == 201
    assert scene.perturber.unreached == ()


def test_the_operator_is_killed_after_the_second_equal_write() -> None:
    scene = Scene(Perturbation("crash-after", CREATE, occurrence=2))
    scene.create()
    scene.create("another")
    assert scene.perturber.unreached == (Perturbation("crash-after", CREATE, occurrence=2),)
    with pytest.raises(ConnectionDropped):
        scene.create()
    assert scene.did == ["create", "create", "create", "crash"]


def test_a_write_with_a_generated_name_is_found_by_its_prefix() -> None:
    scene = Scene(Perturbation("answer-500", "create configmaps shop/web-*"))
    assert scene.create("web").code == 201
    assert scene.create("web-x7").code == 500


@pytest.mark.parametrize(
    ("kind", "code", "is_executed"),
    [("answer-429", 429, False), ("answer-500", 500, False), ("answer-503", 503, False), ("answer-504", 504, True)],
)
def test_a_write_gets_another_answer_once(kind: str, code: int, is_executed: bool) -> None:
    scene = Scene(Perturbation(kind, CREATE))
    answer = scene.create()
    assert answer.code == json.loads(answer.body)["code"] == code
    assert len(scene.sent) == is_executed
    assert ("Retry-After" in answer.headers) == (kind == "answer-429")
    assert scene.create().code < 300


def test_the_answer_of_an_executed_write_is_lost() -> None:
    scene = Scene(Perturbation("answer-lost", CREATE))
    with pytest.raises(ConnectionDropped):
        scene.create()
    assert scene.did == ["create"]


def test_another_client_creates_the_object_first() -> None:
    scene = Scene(Perturbation("lost-race", CREATE))
    assert scene.create().code == 202, "the answer to the second request"


def test_another_client_deletes_the_object_first() -> None:
    scene = Scene(Perturbation("lost-race", "delete configmaps shop/web"))
    assert scene.call("DELETE", f"{MAPS}/web").code == 202


def test_another_client_changes_the_object_before_an_update() -> None:
    scene = Scene(Perturbation("lost-race", UPDATE), Perturbation("lost-race", "patch configmaps/status shop/web"))
    scene.update()
    assert scene.did == [f"touch {MAPS}/web", "update"]
    scene.call("PATCH", f"{MAPS}/web/status", "web")
    assert scene.did[2:] == [f"touch {MAPS}/web", "patch"]


def test_a_right_is_taken_for_some_seconds() -> None:
    taken = Perturbation("right-taken", right="create configmaps", seconds=3.0)
    scene = Scene(taken)
    assert taken in scene.perturber.unreached
    assert scene.update().code == 201
    assert scene.create().code == 403
    assert not scene.perturber.is_over()
    scene.clock.step(2.9)
    assert scene.create().code == 403
    scene.clock.step(0.2)
    assert scene.perturber.is_over()
    assert scene.create().code == 202
    assert taken not in scene.perturber.unreached


def test_a_watch_needs_its_right() -> None:
    scene = Scene(Perturbation("right-taken", right="watch pods", seconds=3.0))
    watch = read_request("GET", "/api/v1/pods?watch=1", {}, b"")
    refused = scene.perturber.watched(watch)
    assert isinstance(refused, Answer)
    assert refused.code == 403
    scene.clock.step(3.0)
    assert scene.perturber.watched(watch) == watch


def test_after_a_stale_restart_only_lists_of_any_revision_read_the_past() -> None:
    scene = Scene(Perturbation("stale-restart", CREATE, seconds=3.0))
    with pytest.raises(ConnectionDropped):
        scene.create()
    assert scene.did == ["create", "crash"]
    assert not scene.perturber.is_over()
    scene.clock.step(60.0)  # the operator starts slowly
    scene.call("GET", "/api/v1/pods?resourceVersion=0&limit=500&labelSelector=a")
    assert scene.sent[-1].target == "/api/v1/pods?resourceVersion=42&labelSelector=a&resourceVersionMatch=Exact"
    for target in ("/api/v1/pods", "/api/v1/pods?resourceVersion=7", "/api/v1/namespaces/shop/pods/web"):
        scene.call("GET", target)
        assert scene.sent[-1].target == target
    scene.clock.step(3.0)
    assert scene.perturber.is_over()
    scene.call("GET", "/api/v1/pods?resourceVersion=0")
    assert scene.sent[-1].target == "/api/v1/pods?resourceVersion=0"


def test_a_plan_delays_events_and_drops_bookmarks() -> None:
    scene = Scene(Perturbation("late-events", resource="pods", seconds=1.5), Perturbation("no-bookmarks"))
    assert scene.watches.delays == {PODS: 1.5}
    assert scene.watches.drops_bookmarks


def test_an_answer_is_learned_with_its_code() -> None:
    scene = Scene(Perturbation("answer-503", CREATE))
    scene.create()
    request = read_request("POST", MAPS, {}, b'{"metadata":{"name":"web"}}')
    assert scene.perturber.writes == [LearnedWrite(request.call, 1, 503, is_conditional=False)]
