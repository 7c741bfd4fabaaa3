"""Statuses that are patched alike: what an object becomes is what the whole way would have made of it."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from typing import Any

import pytest

from ctrlmgr.admission.plugin import Plugin
from ctrlmgr.admission.registry import new_chain
from ctrlmgr.api.object import Object
from ctrlmgr.authorization.authorizer import AlwaysAllow
from ctrlmgr.engine import options
from ctrlmgr.engine.attributes import Attributes
from ctrlmgr.engine.operations import Answer, Target
from ctrlmgr.engine.options import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Body, Requester
from ctrlmgr.engine.verbs.attempts import Decision
from ctrlmgr.engine.verbs.plan import Plan
from ctrlmgr.engine.verbs.transitions import Recurrence, Transitions
from ctrlmgr.errors import ApiError, Conflict, Invalid
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.settings import AdmissionSettings
from ctrlmgr.testing.clock import FakeClock
from tests.engine.stage import REQUESTER, Stage, builtin_kinds
from tests.engine.verbs.plugins import Changing, Judging, Telling, decide_late, label_it, name_it, say_so

Fields = dict[str, Any]
PLACE = "/api/v1/namespaces/shop/pods"
READY: Fields = {"type": "Ready", "status": "True"}


def fresh(*own: Plugin, pods: int = 8, **spec: Any) -> Stage:
    """Return a stage with pods of one template."""
    stage = Stage(admission=new_chain(builtin_kinds(), FakeClock(), AdmissionSettings(), AlwaysAllow(), own))
    stage.namespace("shop")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    assert stage.send("POST", "/api/v1/namespaces/shop/serviceaccounts", account).code == 201
    for number in range(pods):
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"web-{number}", "labels": {"app": "web"}, "annotations": {"odd": "100%b %s %%"}},
            "spec": {"nodeName": "node", "containers": [{"name": "c", "image": "i:1"}], **spec},
        }
        assert stage.send("POST", PLACE, body).code == 201
    return stage


def running(number: int, **status: Any) -> Fields:
    """Return what a kubelet says of a pod that is ready."""
    ip = f"10.0.{number}.{number + 1}"
    return {"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [READY], **status}}


def patched(
    stage: Stage,
    number: int,
    patch: Fields | bytes | list[Fields],
    media_type: str = MERGE_PATCH,
    by: Requester = REQUESTER,
    subresource: str = "status",
    **query: str,
) -> Answer:
    pods = builtin_kinds().find("", "v1", "pods")
    assert pods is not None
    data = patch if isinstance(patch, bytes) else json.dumps(patch).encode()
    wanted = options.parse_patch({key: [value] for key, value in query.items()}, media_type)
    target = Target(pods, "shop", f"web-{number}", subresource)
    return stage.driver.run(stage.engine.patch(target, Body(media_type, data), wanted, by))


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of what takes the short way from now on."""
    names: list[str] = []
    known = Recurrence.known

    def known_(recurrence: Recurrence, current: Object) -> Decision | None:
        decision = known(recurrence, current)
        if decision is not None:
            names.append(current.name)
        return decision

    monkeypatch.setattr(Recurrence, "known", known_)
    return names


@pytest.fixture
def known(used: list[str]) -> Stage:
    """Return a stage that knows what pods become."""
    stage = fresh()
    for number in range(4):
        patched(stage, number, running(number))
    assert used == ["web-3"]
    used.clear()
    return stage


def uid_of(stage: Stage, number: int) -> str:
    return str(stage.send("GET", f"{PLACE}/web-{number}").body["metadata"]["uid"])


def with_uid(stage: Stage, number: int) -> tuple[Fields, str]:
    return {"metadata": {"uid": uid_of(stage, number)}, **running(number)}, STRATEGIC_MERGE_PATCH


PATCHES: dict[str, Any] = {
    "merged": lambda stage, number: (running(number), MERGE_PATCH),
    "merged by keys": lambda stage, number: (running(number), STRATEGIC_MERGE_PATCH),
    "that say a uid": with_uid,
    "without an address": lambda stage, number: ({"status": {"conditions": [READY]}}, MERGE_PATCH),
    "with the host's address": lambda stage, number: (
        running(number, hostIP="10.1.1.1", hostIPs=[{"ip": "10.1.1.1"}]),
        MERGE_PATCH,
    ),
    "with null": lambda stage, number: ({"status": {"phase": "Running", "message": None}}, MERGE_PATCH),
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES.keys())
@pytest.mark.parametrize("token", [True, False], ids=["with a token", "without one"])
def test_they_become_what_the_whole_way_makes_to_the_last_byte(
    patch: Any, token: bool, used: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick, whole = fresh(automountServiceAccountToken=token), fresh(automountServiceAccountToken=token)
    answers = [patched(quick, number, *patch(quick, number)) for number in range(8)]
    assert used == [f"web-{number}" for number in range(3, 8)]
    monkeypatch.setattr(Transitions, "recurrence", lambda *_: None)
    for number, one in enumerate(answers):
        other = patched(whole, number, *patch(whole, number))
        assert one == other
        assert one.object is not None
        assert other.object is not None
        assert one.object.metadata == other.object.metadata
        assert one.object.wire() == other.object.wire()


def twice(stage: Stage, number: int) -> tuple[Fields, str]:
    ip = f"10.0.0.{number}"
    return {"status": {"podIPs": [{"ip": ip}, {"ip": f"fd00::{number}"}], "podIP": ip}}, MERGE_PATCH


def families(stage: Stage, number: int) -> tuple[Fields, str]:
    ip = f"{9 + number % 3 * 100}.0.0.{number}"
    return {"status": {"podIPs": [{"ip": ip}, {"ip": "100::1"}], "podIP": ip}}, MERGE_PATCH


def host(stage: Stage, number: int) -> tuple[Fields, str]:
    """Be on the node's own address, now and then."""
    ip = "10.1.1.1" if number % 3 == 0 else f"10.0.0.{number}"
    return running(number, podIP=ip, podIPs=[{"ip": ip}], hostIP="10.1.1.1", hostIPs=[{"ip": "10.1.1.1"}]), MERGE_PATCH


def parts(stage: Stage, number: int) -> tuple[Fields, str]:
    """Have an address that is part of another at first."""
    ip = f"10.0.0.{number + 1}"
    other = f"{ip}0" if number < 5 else "10.1.1.1"
    return running(number, podIP=ip, podIPs=[{"ip": ip}], hostIP=other, hostIPs=[{"ip": other}]), MERGE_PATCH


ODD = {"with families": twice, "with keys that are sorted": families, "on the host": host, "with parts": parts}


@pytest.mark.parametrize("patch", ODD.values(), ids=ODD.keys())
def test_odd_ones_become_what_the_whole_way_makes(patch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    quick, whole = fresh(), fresh()
    answers = [patched(quick, number, *patch(quick, number)) for number in range(8)]
    monkeypatch.setattr(Transitions, "recurrence", lambda *_: None)
    for number, one in enumerate(answers):
        other = patched(whole, number, *patch(whole, number))
        assert one.object is not None
        assert other.object is not None
        assert one.object.wire() == other.object.wire()


def test_addresses_that_are_sorted_among_others_are_not_exchanged(used: list[str]) -> None:
    stage = fresh()
    for number in range(8):
        patched(stage, number, *families(stage, number))
    assert used == []


def test_an_address_that_was_there_is_not_taken_for_a_new_one(known: Stage, used: list[str]) -> None:
    for number in (5, 6):
        patched(known, number, {"status": {"podIP": f"10.0.{number}.{number + 1}"}})
    before = known.log.head().revision
    used.clear()
    patched(known, 5, running(5))
    assert used == []
    assert known.log.head().revision == before + 1


def test_what_changes_nothing_is_not_written(known: Stage) -> None:
    patched(known, 5, running(5))
    before = known.log.head().revision
    patched(known, 5, running(5))
    assert known.log.head().revision == before


def test_a_dry_run_writes_nothing(known: Stage, used: list[str]) -> None:
    before = known.log.head().revision
    assert patched(known, 5, running(5), dryRun="All").code == 200
    assert (known.log.head().revision, used) == (before, [])


def test_a_version_is_looked_at(known: Stage, used: list[str]) -> None:
    for number in range(4, 8):
        with pytest.raises(Conflict):
            patched(known, number, {"metadata": {"resourceVersion": "1"}, **running(number)})
    assert used == []


def test_a_uid_is_looked_at(known: Stage) -> None:
    for number in range(3):
        patched(known, number, *with_uid(known, number))
    other = uid_of(known, 0)
    with pytest.raises((Conflict, Invalid)):
        patched(known, 5, {"metadata": {"uid": other}, **running(5)}, STRATEGIC_MERGE_PATCH)


@pytest.mark.parametrize(
    "patch",
    [
        b'{"status": {"phase": "Runn\\u0069ng"}}',
        b'{"status":\n{"phase": "Running"}}',
        b'{"status": {"phase": "Running", "podIP": \x1c, "podIPs": [{"ip": \x1c}]}}',
    ],
    ids=["escaped", "in lines", "with a mark"],
)
def test_what_may_read_otherwise_than_it_looks_takes_the_whole_way(patch: bytes, known: Stage, used: list[str]) -> None:
    for number in range(4, 8):
        try:
            patched(known, number, patch)
        except ApiError:
            assert b"\x1c" in patch
    assert used == []


def test_operations_take_the_whole_way(known: Stage, used: list[str]) -> None:
    operations = [{"op": "add", "path": "/status/phase", "value": "Running"}]
    for number in range(4, 8):
        patched(known, number, operations, JSON_PATCH)
    assert used == []


def test_nothing_but_statuses_of_which_a_kind_says_so_is_looked_at(
    known: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bool] = []
    recurrence = Transitions.recurrence

    def recurrence_(transitions: Transitions, *write: Any) -> Recurrence | None:
        again = recurrence(transitions, *write)
        found.append(again is not None)
        return again

    monkeypatch.setattr(Transitions, "recurrence", recurrence_)
    for number in range(3):
        patched(known, number, {"metadata": {"labels": {"a": "b"}}}, subresource="")
    for number in range(3):
        assert known.send("POST", "/api/v1/nodes", {"metadata": {"name": f"n-{number}"}}).code == 201
        patch = {"status": {"phase": "Running"}}
        assert known.send("PATCH", f"/api/v1/nodes/n-{number}/status", patch, media_type=MERGE_PATCH).code == 200
    assert found == [False] * 6
    patched(known, 4, running(4))
    assert found[6:] == [True]


def test_what_is_long_takes_the_whole_way(used: list[str]) -> None:
    stage = fresh(containers=[{"name": "c", "image": "i:1", "args": ["x" * 17_000]}])
    for number in range(5):
        patched(stage, number, running(number))
    other = fresh()
    for number in range(5):
        patched(other, number, running(number, message="x" * 17_000))
    assert used == []


def test_unknown_fields_that_are_ignored_are_told_to_who_wants_to_know(used: list[str]) -> None:
    stage, patch = fresh(), {"status": {"phase": "Running", "odd": 1}}
    for number in range(5):
        patched(stage, number, patch, fieldValidation="Ignore")
    assert used == ["web-3", "web-4"]
    assert patched(stage, 5, patch).warnings == ('unknown field "status.odd"',)


def test_what_a_patch_lets_go_is_gone(used: list[str]) -> None:
    stage, gone = fresh(pods=0), {"metadata": {"finalizers": None}, **running(0)}
    for number in range(5):
        metadata = {"name": f"web-{number}", "finalizers": ["a.example.com/b"]}
        body = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
        assert stage.send("POST", PLACE, body).code == 201
        assert stage.send("DELETE", f"{PLACE}/web-{number}").code == 200
        patched(stage, number, gone)
        assert stage.send("GET", f"{PLACE}/web-{number}").code == 404
    assert used == []


def test_somebody_else_is_not_taken_for_the_same(known: Stage, used: list[str]) -> None:
    patched(known, 5, running(5), by=Requester("bob", ("system:masters",), REQUESTER.user_agent))
    assert used == []


def test_another_manager_is_not_taken_for_the_same(known: Stage, used: list[str]) -> None:
    answer = patched(known, 5, running(5), fieldManager="other")
    assert used == []
    assert answer.object is not None
    assert b'"manager":"other"' in answer.object.body


def test_another_way_to_merge_is_not_taken_for_the_same(known: Stage, used: list[str]) -> None:
    patched(known, 5, running(5), STRATEGIC_MERGE_PATCH)
    assert used == []


def test_another_object_is_not_taken_for_the_same(known: Stage, used: list[str]) -> None:
    patched(known, 5, {"metadata": {"labels": {"app": "other"}}}, subresource="")
    answer = patched(known, 5, running(5))
    assert used == []
    assert answer.object is not None
    assert answer.object.labels == {"app": "other"}


def test_it_is_forgotten_after_a_second(known: Stage, used: list[str]) -> None:
    known.clock.step(1)
    patched(known, 5, running(5))
    assert used == []


def test_what_is_wrong_is_refused_each_time(used: list[str]) -> None:
    stage = fresh()
    for number in range(8):
        with pytest.raises(Invalid):
            patched(stage, number, running(number, qosClass="Guaranteed"))
    assert used == []


def test_who_is_warned_is_warned_each_time(used: list[str]) -> None:
    stage = fresh()
    warned = {patched(stage, number, {"status": {"phase": "Running", "odd": 1}}).warnings for number in range(8)}
    assert warned == {('unknown field "status.odd"',)}
    assert used == []


def test_pods_that_terminate_go_on_to_do_so(known: Stage, used: list[str]) -> None:
    for number in range(4, 8):
        known.send("DELETE", f"{PLACE}/web-{number}", query={"gracePeriodSeconds": "30"})
        patched(known, number, running(number))
    assert used == ["web-7"]
    assert known.send("GET", f"{PLACE}/web-7").body["metadata"]["deletionGracePeriodSeconds"] == 30


def test_every_write_is_counted_as_let_in(known: Stage, used: list[str]) -> None:
    def counted() -> float:
        labels = {"name": "NamespaceLifecycle", "type": "admit", "operation": "UPDATE", "rejected": "false"}
        return REGISTRY.get_sample_value("apiserver_admission_controller_admission_duration_seconds_count", labels) or 0

    gc.collect()  # chains of other tests, which are counted while they are there
    before = counted()
    patched(known, 5, running(5))
    assert (counted(), used) == (before + 1, ["web-5"])


def hooked(stage: Stage) -> None:
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://a.example.com"},
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods/status"]},
        ],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    body = {"metadata": {"name": "h"}, "webhooks": [hook]}
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    assert stage.send("POST", path, body).code == 201


def test_a_webhook_that_comes_is_asked(known: Stage, used: list[str]) -> None:
    hooked(known)
    with pytest.raises(ApiError, match=r"failed calling webhook \"a\.example\.com\""):
        patched(known, 5, running(5))
    assert used == []


def test_a_plugin_of_ones_own_sees_every_change(used: list[str]) -> None:
    judging = Judging()
    stage = fresh(judging)
    for number in range(6):
        patched(stage, number, running(number))
    assert judging.seen == [f"web-{number}" for number in range(6)]
    assert used == []


def test_admissions_audit_annotations_come_again(used: list[str]) -> None:
    telling = Telling("yes")
    stage = fresh(telling)
    told = [patched(stage, number, running(number)).annotations for number in range(6)]
    assert told == [{"told": "yes"}] * 6
    assert telling.seen == ["web-0", "web-1", "web-2"]
    assert used == ["web-3", "web-4", "web-5"]


def test_annotations_of_each_are_told_of_each(used: list[str]) -> None:
    stage = fresh(Telling("{name}"))
    told = [patched(stage, number, running(number)).annotations for number in range(6)]
    assert told == [{"told": f"web-{number}"} for number in range(6)]
    assert used == []


@pytest.mark.parametrize("change", [name_it, say_so, label_it, decide_late])
def test_what_admission_makes_of_it_is_made_of_each(change: Callable[[Attributes], None], used: list[str]) -> None:
    stage = fresh(Changing(change))
    for number in range(5):
        answer = patched(stage, number, running(number))
        assert answer.changed_by == (("plugin Changing",) if change is say_so else ())
    assert used == []


def test_not_every_base_of_drawn_names_is_looked_for() -> None:
    pods = builtin_kinds().find("", "v1", "pods")
    assert pods is not None
    plan = Plan(pods, builtin_kinds())
    plan.draws_from(f"base-{number}-" for number in range(100))
    plan.draws_from(["other-"])
    assert plan.drawn_from == (b"base-0-", b"base-1-", b"base-2-", b"base-3-")


def test_one_object_shows_nothing_of_others() -> None:
    stage, down = fresh(Changing(name_it)), {"status": {"phase": "Pending", "message": None}}
    for number in (0, 0, 0, 0, 1, 1, 1):
        answer = patched(stage, number, {"status": {"phase": "Running"}})
        assert answer.object is not None
        assert b'"message":"web-%d"' % number in answer.object.body
        patched(stage, number, down)
