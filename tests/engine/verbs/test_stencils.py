"""Objects that are made whole, by what others became: they are what the whole way would have made."""

from __future__ import annotations

import gc
import json
from collections.abc import Sequence
from random import Random
from typing import Any, ClassVar

import pytest

from ctrlmgr.admission.plugin import Plugin
from ctrlmgr.admission.registry import new_chain
from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.authorization.authorizer import AlwaysAllow
from ctrlmgr.engine import options
from ctrlmgr.engine.attributes import Admission, Attributes, Verb
from ctrlmgr.engine.operations import Target
from ctrlmgr.engine.options import Body, Requester
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.verbs.drafts import Draft
from ctrlmgr.engine.verbs.request import Request
from ctrlmgr.engine.verbs.stencils import Stencil
from ctrlmgr.kinds.allocators.allocation import Allocation
from ctrlmgr.kinds.core.service.strategy import ServiceStrategy
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.settings import AdmissionSettings
from ctrlmgr.testing.clock import FakeClock
from tests.engine.stage import REQUESTER, Response, Stage, builtin_kinds
from tests.engine.verbs.plugins import Judging

Fields = dict[str, Any]
PLACE = "/api/v1/namespaces/shop/pods"
SERVICES = "/api/v1/namespaces/shop/services"
SPEC: Fields = {"containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "100m"}}}]}
QUOTA: Fields = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "6", "requests.cpu": "1"}}}
USED = {"status": {"hard": QUOTA["spec"]["hard"], "used": {"pods": "0", "requests.cpu": "0"}}}


def pod(name: str = "", spec: Fields = SPEC, **metadata: Any) -> Fields:
    called = {"name": name} if name else {"generateName": "web-"}
    metadata = {**called, "labels": {"app": "web"}, **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def chain(*own: Plugin) -> Admission:
    """Return all that is on by default, service accounts too."""
    return new_chain(builtin_kinds(), FakeClock(), AdmissionSettings(), AlwaysAllow(), own)


def fresh(*own: Plugin) -> Stage:
    stage = Stage(admission=chain(*own))
    stage.namespace("shop")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    assert stage.send("POST", "/api/v1/namespaces/shop/serviceaccounts", account).code == 201
    return stage


def create(stage: Stage, body: Fields, by: Requester = REQUESTER, **query: str) -> Any:
    kind = builtin_kinds().find("", "v1", body["kind"].lower() + "s")
    assert kind is not None
    data = Body("application/json", json.dumps(body).encode())
    parsed = options.parse_create({key: [value] for key, value in query.items()})
    made = stage.driver.run(stage.engine.create(Target(kind, "shop", ""), data, parsed, by))
    stage.clock.step(1)
    return made


def service(name: str, labels: Fields | None = None, **spec: Any) -> Fields:
    labels = {"app": "web"} if labels is None else labels
    spec = {"selector": labels, "ports": [{"port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": labels}, "spec": spec}


def sent(stage: Stage, body: Fields) -> Response:
    answer = stage.send("POST", PLACE if body["kind"] == "Pod" else SERVICES, body)
    stage.clock.step(1)
    return answer


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of what is made by stencils from now on."""
    names: list[str] = []
    made = Stencil.made

    def made_(stencil: Stencil, request: Request, name: str, *rest: Any) -> Any:
        names.append(name)
        return made(stencil, request, name, *rest)

    monkeypatch.setattr(Stencil, "made", made_)
    return names


@pytest.fixture
def known(used: list[str]) -> Stage:
    """Return a stage that knows how pods come out."""
    stage = fresh()
    for number in range(4):
        assert sent(stage, pod(f"web-{number}")).code == 201
    assert used[-1:] == ["web-3"]
    used.clear()
    return stage


SAID = "2026-01-01T00:00:01Z"
BODIES = {
    "named": lambda number: pod(f"web-{number}"),
    "to be named": lambda number: pod(),
    "with percent signs": lambda number: pod(f"web-{number}", annotations={"a": "100%b %s %%"}),
    "that say a name and a time": lambda number: pod(f"w{number}", annotations={"w": "w1", "t": SAID}),
    "with their own token": lambda number: pod(f"web-{number}", {**SPEC, "automountServiceAccountToken": False}),
    "with three containers": lambda number: pod(
        f"web-{number}", {"containers": [{"name": each, "image": "i"} for each in "abc"]}
    ),
    "that are named by dots": lambda number: pod(f"web.{number}"),
    "that wait at a gate": lambda number: pod(f"web-{number}", {**SPEC, "schedulingGates": [{"name": "a/b"}]}),
    "with their names in labels": lambda number: pod(f"web-{number}", labels={"pod": f"the-web-{number}"}),
    "services": lambda number: service(f"web-{number}"),
    "services with their names in labels": lambda number: service(f"web-{number}", {"app": f"no-web-{number}"}),
    "services named by letters": lambda number: service("abcdefgh"[number], {"app": "abcdefgh"[number]}),
    "headless services": lambda number: service(f"web-{number}", clusterIP="None"),
    "services on nodes": lambda number: service(f"web-{number}", type="NodePort"),
    "balanced services": lambda number: service(f"web-{number}", type="LoadBalancer"),
    "services elsewhere": lambda number: service(f"web-{number}", type="ExternalName", externalName="a.example.com"),
    "services of a policy": lambda number: service(f"web-{number}", ipFamilyPolicy="PreferDualStack"),
    "with owners": lambda number: pod(
        f"web-{number}", ownerReferences=[{"apiVersion": "v1", "kind": "Node", "name": "web", "uid": "u"}]
    ),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_they_are_what_the_whole_way_makes_to_the_last_byte(body: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    quick, whole = fresh(), fresh()
    made = [create(quick, body(number)) for number in range(7)]
    monkeypatch.setattr(Draft, "may_learn", False)
    for number, one in enumerate(made):
        other = create(whole, body(number))
        assert one == other
        assert one.object.metadata == other.object.metadata
        assert one.object.wire() == other.object.wire()
    claims = [stage.send("GET", "/apis/networking.k8s.io/v1/ipaddresses").body for stage in (quick, whole)]
    assert claims[0] == claims[1]


QUICK = (
    "named",
    "to be named",
    "with percent signs",
    "with three containers",
    "with owners",
    "with their names in labels",
    "services",
    "services with their names in labels",
    "headless services",
    "services elsewhere",
    "services of a policy",
)


@pytest.mark.parametrize("what", QUICK)
def test_they_are_known_from_the_fourth_on(what: str, used: list[str]) -> None:
    stage = fresh()
    names = [sent(stage, BODIES[what](number)).body["metadata"]["name"] for number in range(6)]
    assert used[-3:] == names[3:]


@pytest.mark.parametrize("what", ["that are named by dots", "that wait at a gate"])
def test_what_says_more_of_itself_is_made_the_whole_way(what: str, used: list[str]) -> None:
    stage = fresh()
    for number in range(6):
        assert sent(stage, BODIES[what](number)).code == 201
    assert used == []


@pytest.fixture
def served(used: list[str]) -> Stage:
    """Return a stage that knows how Services come out whose names are in their labels."""
    stage = fresh()
    for number in range(4):
        assert sent(stage, service(f"web-{number}", {"app": f"web-{number}"})).code == 201
    assert used == ["web-3"]
    used.clear()
    return stage


def test_a_name_that_is_too_long_for_a_label_is_refused(used: list[str]) -> None:
    stage, name = fresh(), "w" * 63
    for number in range(4):
        assert sent(stage, service(f"web-{number}", {"app": f"no-web-{number}"})).code == 201
    answer = sent(stage, service(name, {"app": f"no-{name}"}))
    assert (answer.code, "must be no more than 63" in answer.message) == (422, True)
    assert used == ["web-3"]


ASKED: dict[str, Fields] = {
    "an address": {"clusterIP": "10.96.7.7"},
    "a port": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]},
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_what_is_asked_for_is_not_exchanged(asked: Fields, used: list[str]) -> None:
    stage = fresh()
    for number in range(4):
        assert sent(stage, service(f"web-{number}", **asked)).code == 201
        assert stage.send("DELETE", f"{SERVICES}/web-{number}").code == 200
    assert sent(stage, service("web-5", **asked)).code == 201
    answer = sent(stage, service("web-6", **asked))
    assert (answer.code, "is already allocated" in answer.message) == (422, True)
    assert used == []


def test_a_service_of_two_addresses_is_not_settled() -> None:
    kind = builtin_kinds().find("", "v1", "services")
    assert kind is not None
    context = Context(kind, fresh().cacher, SAID, Random(1))
    service = {"spec": {"clusterIPs": ["10.96.0.7", "fd00::7"]}}
    assert not ServiceStrategy().is_settled(context, service)


def test_addresses_that_have_run_out_are_not_granted(served: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Allocation, "next_address", lambda *_: None)
    answer = sent(served, service("web-9", {"app": "web-9"}))
    assert (answer.code, answer.message) == (
        500,
        "Internal error occurred: failed to allocate a serviceIP: range is full",
    )


def test_a_taken_name_is_refused(known: Stage) -> None:
    before = known.log.head().revision
    assert sent(known, pod("web-1")).message == 'pods "web-1" already exists'
    assert known.log.head().revision == before


def test_a_bad_name_is_refused(known: Stage) -> None:
    assert sent(known, pod("Web")).code == 422


def test_a_dry_run_writes_nothing(known: Stage, used: list[str]) -> None:
    before = known.log.head().revision
    assert create(known, pod("web-9"), dryRun="All").code == 201
    assert (known.log.head().revision, used) == (before, [])


def test_somebody_else_is_not_taken_for_the_same(known: Stage, used: list[str]) -> None:
    other = Requester("bob", ("system:masters",), REQUESTER.user_agent)
    assert create(known, pod("web-9"), other).code == 201
    assert used == []


def test_admissions_audit_annotations_come_again(known: Stage, used: list[str]) -> None:
    assert sent(known, pod("web-9")).annotations == {"pod-security.kubernetes.io/enforce-policy": "privileged:latest"}
    assert used == ["web-9"]


def test_every_write_is_counted_as_let_in(known: Stage) -> None:
    def counted() -> float:
        labels = {"name": "Priority", "type": "admit", "operation": "CREATE", "rejected": "false"}
        return REGISTRY.get_sample_value("apiserver_admission_controller_admission_duration_seconds_count", labels) or 0

    gc.collect()  # chains of other tests, which are counted while they are there
    before = counted()
    sent(known, pod("web-9"))
    assert counted() == before + 1


def post(group: str, plural: str, body: Fields) -> Any:
    def change(stage: Stage) -> None:
        assert stage.send("POST", f"{group}/{plural}", body).code == 201

    return change


def patch(path: str, body: Fields) -> Any:
    def change(stage: Stage) -> None:
        answer = stage.send("PATCH", path, body, media_type="application/merge-patch+json")
        assert answer.code == 200

    return change


HOOK: Fields = {
    "metadata": {"name": "h"},
    "webhooks": [
        {
            "name": "a.example.com",
            "clientConfig": {"url": "https://a.example.com"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
}
RESTRICTED = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
DEFAULT_CLASS: Fields = {"metadata": {"name": "high"}, "value": 7, "globalDefault": True}
LIMITS: Fields = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}


def overdraw(stage: Stage) -> None:
    """Let no pod into the namespace."""
    post("/api/v1/namespaces/shop", "resourcequotas", QUOTA)(stage)
    status = {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}
    patch("/api/v1/namespaces/shop/resourcequotas/q/status", status)(stage)


CHANGES = {
    "the namespace": patch("/api/v1/namespaces/shop", RESTRICTED),
    "the account": patch("/api/v1/namespaces/shop/serviceaccounts/default", {"automountServiceAccountToken": False}),
    "the default class": post("/apis/scheduling.k8s.io/v1", "priorityclasses", DEFAULT_CLASS),
    "the limits": post("/api/v1/namespaces/shop", "limitranges", LIMITS),
    "the quotas": overdraw,
    "the webhooks": post("/apis/admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", HOOK),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_admission_went_by_may_change(known: Stage, change: Any, used: list[str]) -> None:
    other = fresh()
    for stage in (known, other):
        change(stage)
    one, alone = sent(known, pod("web-9")), sent(other, pod("web-9"))
    assert used == []
    assert _told(one) == _told(alone)
    assert _told(one) != _told(sent(fresh(), pod("web-9")))


def _told(answer: Response) -> Any:
    body = json.loads(json.dumps(answer.body))
    metadata = body.get("metadata", {})
    for each in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        metadata.pop(each, None)
    text = json.dumps((answer.code, body))
    for volume in body.get("spec", {}).get("volumes", ()):
        text = text.replace(volume["name"], "VOLUME")
    return text


def test_it_is_known_again_after_a_change_that_changes_nothing(known: Stage, used: list[str]) -> None:
    known.namespace("other")
    for number in range(5, 8):
        assert sent(known, pod(f"web-{number}")).code == 201
    assert used == ["web-6", "web-7"]


def test_what_is_of_no_use_is_not_made_again_and_again(known: Stage, used: list[str]) -> None:
    for number in range(10):
        known.namespace(f"n-{number}")
        assert sent(known, pod(f"a-{number}")).code == 201
    for number in range(3):
        assert sent(known, pod(f"b-{number}")).code == 201
    assert used == []


def test_what_is_of_use_is_made_anew_as_often_as_something_changes(known: Stage, used: list[str]) -> None:
    for number in range(10):
        known.namespace(f"n-{number}")
        for name in "ab":
            assert sent(known, pod(f"{name}-{number}")).code == 201
    assert used == [f"b-{number}" for number in range(10)]


def test_every_caller_is_warned(used: list[str]) -> None:
    stage = fresh()
    patch("/api/v1/namespaces/shop", {"metadata": {"labels": {"pod-security.kubernetes.io/warn": "restricted"}}})(stage)
    warned = {tuple(sent(stage, pod(f"web-{number}")).warnings) for number in range(6)}
    assert [len(each) for each in warned] == [1]
    assert used == []


def test_a_namespace_that_goes_takes_no_more(known: Stage) -> None:
    assert known.send("DELETE", "/api/v1/namespaces/shop").code in (200, 202)
    answer = sent(known, pod("web-9"))
    assert (answer.code, "because it is being terminated" in answer.message) == (403, True)


class Calling(Plugin):
    """Labels pods with their names, though it says that it goes by nothing of theirs."""

    name: ClassVar[str] = "Calling"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        return resource == PODS and operation is Verb.CREATE

    def rests_on(self, attributes: Attributes) -> Sequence[Resource]:
        return ()

    def admit(self, attributes: Attributes) -> None:
        attributes.fields["metadata"]["labels"]["called"] = attributes.called()


@pytest.mark.parametrize("names", [("a", "b", "c", "d", "e"), ("a", "a", "a", "a", "e")], ids=["others", "the same"])
def test_what_is_found_to_depend_on_the_name_is_not_copied(names: Sequence[str]) -> None:
    stage = fresh(Calling())
    for name in names:
        assert sent(stage, pod(name)).body["metadata"]["labels"]["called"] == name
        stage.send("DELETE", f"{PLACE}/{name}", query={"gracePeriodSeconds": "0"})


def test_a_plugin_of_ones_own_sees_every_object(used: list[str]) -> None:
    judging = Judging(Verb.CREATE)
    stage = fresh(judging)
    for number in range(6):
        assert sent(stage, pod(f"web-{number}")).code == 201
    assert judging.seen == [f"web-{number}" for number in range(6)]
    assert used == []


def test_quotas_are_charged_for_each(used: list[str]) -> None:
    stage = fresh()
    post("/api/v1/namespaces/shop", "resourcequotas", QUOTA)(stage)
    patch("/api/v1/namespaces/shop/resourcequotas/q/status", USED)(stage)
    for number in range(6):
        assert sent(stage, pod(f"web-{number}")).code == 201
    quota = stage.send("GET", "/api/v1/namespaces/shop/resourcequotas/q").body
    assert quota["status"]["used"] == {"pods": "6", "requests.cpu": "600m"}
    refused = sent(stage, pod("web-6"))
    assert (refused.code, refused.message) == (
        403,
        'pods "web-6" is forbidden: exceeded quota: q, requested: pods=1, used: pods=6, limited: pods=6',
    )
    assert used[-4:] == ["web-3", "web-4", "web-5", "web-6"]
