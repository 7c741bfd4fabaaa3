"""Tests that a request has the same result in a worker process and in the server process: response, warnings and stored
bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from ctrlmgr.eventlog.event import Event
from ctrlmgr.largebodies import jobs
from ctrlmgr.testing.fake_clock import FakeClock
from tests.robustness.attack.server_attack import REQUEST_BODIES
from tests.server.site import Site, make, running

IN = "namespaces/default"
JSON_PATCH, MERGE, STRATEGIC, APPLY = (
    f"application/{each}"
    for each in ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
)
MADE_UP = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?<=made-)[a-z0-9]{5}|10\.96\.\d+\.\d+|\b3[0-2]\d{3}\b"
)
"""Patterns of uids, generated names, addresses and node ports, which are random."""


class RequestStep(NamedTuple):
    """A request."""

    method: str
    path: str
    body: Any = None
    media_type: str = "application/json"


class Outcome(NamedTuple):
    """The results of a request: the response to the client, and the stored bytes."""

    code: int
    warnings: str | None
    body: str


def objects() -> Iterator[RequestStep]:
    """Create an object of each of many kinds, with errors, and change the object in every way."""
    for place, fields in REQUEST_BODIES.items():
        path = place.replace("namespaces/attack", IN)
        yield RequestStep("POST", path, fields)
        yield RequestStep("POST", path, fields)
        yield RequestStep("POST", f"{path}?fieldValidation=Strict", {**fields, "unknown": 1})
        yield RequestStep("POST", f"{path}?dryRun=All", {**fields, "unknown": {"a": [1]}, "metadata": {"name": "dry"}})
        yield RequestStep("POST", path, {**fields, "metadata": {"name": "Not!", "labels": {"a b": "c d"}}})
        yield RequestStep("POST", path, {**fields, "spec": [], "metadata": {"name": "odd"}})
        yield RequestStep("POST", path, {**fields, "metadata": {"generateName": "made-"}})
        if "reviews" in path or "definitions" in path:
            continue
        one = f"{path}/{fields['metadata']['name']}"
        yield RequestStep("PATCH", one, {"metadata": {"labels": {"b": "c", "a": None}}}, MERGE)
        yield RequestStep("PATCH", one, {"metadata": {"annotations": {"b": "c"}}}, STRATEGIC)
        yield RequestStep("PATCH", one, [{"op": "add", "path": "/metadata/labels/x", "value": "y"}], JSON_PATCH)
        yield RequestStep("PATCH", one, [{"op": "test", "path": "/metadata/name", "value": "other"}], JSON_PATCH)
        yield RequestStep("PATCH", f"{one}?fieldManager=m", {**fields, "metadata": {"labels": {"z": "z"}}}, APPLY)
        yield RequestStep("PATCH", f"{one}?fieldManager=m", b"metadata: {labels: [", APPLY)
        yield RequestStep("PUT", one, fields)
        yield RequestStep("PUT", one, {**fields, "metadata": {**fields["metadata"], "resourceVersion": "1"}})
        yield RequestStep("PUT", f"{one}/status", fields)
        yield RequestStep("DELETE", one, {"preconditions": {"uid": "other"}})
        yield RequestStep("DELETE", one, {"propagationPolicy": "Foreground"})
        yield RequestStep("DELETE", path, {"gracePeriodSeconds": 0, "dryRun": ["All"]})


LIMITS = {"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]}
CPU = {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1500m"}}}]}
POLICY = {
    "metadata": {"name": "no-x"},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
            ]
        },
        "validations": [{"expression": "!has(object.data) || !('x' in object.data)", "message": "no x"}],
    },
}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {"size": {"type": "integer", "minimum": 1}, "mode": {"type": "string", "default": "fast"}},
            "x-kubernetes-validations": [{"rule": "self.size < 10", "message": "too big"}],
        }
    },
}
DEFINITION = {
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
    "status": {},
}
ESTABLISHED = {
    "status": {
        "acceptedNames": DEFINITION["spec"]["names"],  # type: ignore[index]  # a dict
        "conditions": [{"type": each, "status": "True"} for each in ("NamesAccepted", "Established")],
        "storedVersions": ["v1"],
    }
}


def decided() -> Iterator[RequestStep]:
    """Make writes that involve admission, quotas and CustomResourceDefinitions."""
    pods, maps = f"/api/v1/{IN}/pods", f"/api/v1/{IN}/configmaps"
    yield RequestStep("POST", f"/api/v1/{IN}/limitranges", {"metadata": {"name": "l"}, "spec": LIMITS})
    yield RequestStep(
        "POST", f"/api/v1/{IN}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "2"}}}
    )
    quotas = f"/api/v1/{IN}/resourcequotas"
    used: Any = {"status": {"hard": {"requests.cpu": "2"}, "used": {"requests.cpu": "0"}}}
    yield RequestStep("PATCH", f"{quotas}/q/status", used, MERGE)
    for name in ("one", "two"):
        yield RequestStep("POST", pods, {"metadata": {"name": name}, "spec": CPU})
    yield RequestStep(
        "POST", pods, {"metadata": {"name": "no-cpu"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    )
    admission = "/apis/admissionregistration.k8s.io/v1"
    yield RequestStep("POST", f"{admission}/validatingadmissionpolicies", POLICY)
    bound = {"metadata": {"name": "b"}, "spec": {"policyName": "no-x", "validationActions": ["Deny", "Audit"]}}
    yield RequestStep("POST", f"{admission}/validatingadmissionpolicybindings", bound)
    yield RequestStep("POST", maps, {"metadata": {"name": "good"}, "data": {"a": "b"}})
    yield RequestStep("POST", maps, {"metadata": {"name": "bad"}, "data": {"x": "b"}})
    definitions, things = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", f"/apis/example.com/v1/{IN}/things"
    yield RequestStep("POST", definitions, DEFINITION)
    yield RequestStep("PATCH", f"{definitions}/things.example.com/status", ESTABLISHED, MERGE)
    head = {"apiVersion": "example.com/v1", "kind": "Thing"}
    for name, spec in (("good", {"size": 3}), ("big", {"size": 30}), ("none", {}), ("odd", {"size": "x", "more": 1})):
        yield RequestStep("POST", things, {**head, "metadata": {"name": name}, "spec": spec})
    yield RequestStep("PATCH", f"{things}/good", {"spec": {"size": 4}}, MERGE)
    yield RequestStep("PATCH", f"{things}/good?fieldManager=m", {**head, "spec": {"size": 5}}, APPLY)
    services = f"/api/v1/{IN}/services"
    for kind in ("ClusterIP", "NodePort", "Other"):
        wanted = {"type": kind, "selector": {"a": "b"}, "ports": [{"port": 80}]}
        yield RequestStep("POST", services, {"metadata": {"name": kind.lower()}, "spec": wanted})
    yield RequestStep("PATCH", f"{services}/nodeport", {"spec": {"type": "ClusterIP"}}, MERGE)
    yield RequestStep("DELETE", f"{services}/clusterip", {"gracePeriodSeconds": 0})
    scaled = f"/apis/apps/v1/{IN}/deployments"
    yield RequestStep(
        "POST", scaled, {**REQUEST_BODIES["/apis/apps/v1/namespaces/attack/deployments"], "metadata": {"name": "d"}}
    )
    yield RequestStep("PATCH", f"{scaled}/d/scale", {"spec": {"replicas": 4}}, MERGE)
    yield RequestStep("PUT", f"{scaled}/d/scale", {"metadata": {"name": "d"}, "spec": {"replicas": -4}})
    yield RequestStep(
        "POST", f"{pods}/one/binding", {"metadata": {"name": "one"}, "target": {"kind": "Node", "name": "n"}}
    )
    yield RequestStep("POST", f"{pods}/one/eviction", {"metadata": {"name": "one"}})
    yield RequestStep("POST", f"/api/v1/{IN}/nothing", {"metadata": {"name": "one"}})
    yield RequestStep("POST", "/api/v1/namespaces/none/configmaps", {"metadata": {"name": "one"}})


def large() -> Iterator[RequestStep]:
    """Make large writes."""
    maps = f"/api/v1/{IN}/configmaps"
    data = {f"k{number}": "x" * 90 for number in range(8000)}
    yield RequestStep("POST", maps, {"metadata": {"name": "large"}, "data": data})
    yield RequestStep("PATCH", f"{maps}/large", {"data": {"k1": None, "k2": "é\u2028<"}}, MERGE)
    yield RequestStep(
        "POST", maps, {"metadata": {"name": "bad"}, "data": {f"{number}!": "x" for number in range(3000)}}
    )
    yield RequestStep("POST", maps, b'{"a":' * 30_000)
    yield RequestStep("POST", maps, b'{"a":[' + b"{}," * 250_000 + b"{}]}")
    yield RequestStep("POST", maps, b"data: {a: &a [x, x], b: *a}\n" * 3, "application/yaml")


def responses(
    monkeypatch: pytest.MonkeyPatch, steps: Iterator[RequestStep], *, elsewhere: bool
) -> tuple[list[Outcome], list[Any]]:
    """Return the response of each step, and the stored events."""
    monkeypatch.setattr(jobs, "is_large", lambda body, cost: elsewhere)
    monkeypatch.setattr(jobs, "is_large_object", lambda obj, cost: elsewhere)
    with running(make(clock=FakeClock())) as site:
        outcomes = [outcome(site, each) for each in steps]
        events = [stored(each) for each in site.log.events_after(0, limit=10_000)]
    return outcomes, events


def stored(event: Event) -> tuple[Any, ...]:
    obj = event.object
    return event.type, str(obj.resource), MADE_UP.sub("?", str(obj.key)), MADE_UP.sub("?", obj.body.decode())


def outcome(site: Site, step: RequestStep) -> Outcome:
    answer = site.ask(step.path, step.method, step.body, {"content-type": step.media_type})
    return Outcome(answer.status, answer.headers.get("warning"), MADE_UP.sub("?", answer.body))


@pytest.mark.parametrize("steps", [objects, decided, large])
def test_responses_and_stored_bytes_are_equal(steps: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here, stored_here = responses(monkeypatch, steps(), elsewhere=False)
    there, stored_there = responses(monkeypatch, steps(), elsewhere=True)
    for step, one, other in zip(steps(), here, there, strict=True):
        assert one == other, (step.method, step.path, json.dumps(step.body, default=str)[:200])
    assert stored_here == stored_there
    assert len({each.code for each in here}) >= 4
