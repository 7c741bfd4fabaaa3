"""Tests of every integer and timestamp field of the API at its limits, with create, update, tables, patch, eviction and
delete.

It must be possible to show and delete every stored object; otherwise the object's namespace could not be deleted
either. `test_integers_kept` tests such objects on the UI page, in recordings and with controllers.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.clock import format_time, format_time_seconds, parse_time
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.operations import Target
from ctrlmgr.engine.request_options import GetOptions
from ctrlmgr.schema.schema import Schema
from ctrlmgr.server.presenting.negotiation import AS_IS, Form
from ctrlmgr.server.presenting.presentation import Presentations
from tests.engine.stage import Stage

LIMITS = (-(1 << 63), -(1 << 31), -1, (1 << 31) - 1, 1 << 31, 1 << 62, (1 << 63) - 1)
TIMES = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
DEPTH = 9
MERGE = "application/merge-patch+json"

CONTAINER = {"name": "c", "image": "x"}
POD = {"containers": [CONTAINER], "nodeName": "n"}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
RUN_ONCE = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
SPECS: dict[str, dict[str, Any]] = {
    "Pod": {"spec": POD},
    "Service": {"spec": {"ports": [{"port": 80}]}},
    "Deployment": {"spec": SELECTED},
    "ReplicaSet": {"spec": SELECTED},
    "StatefulSet": {"spec": {**SELECTED, "serviceName": "s"}},
    "DaemonSet": {"spec": SELECTED},
    "Job": {"spec": RUN_ONCE},
    "CronJob": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": RUN_ONCE}}},
    "HorizontalPodAutoscaler": {
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}, "maxReplicas": 3}
    },
    "PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}},
    "Lease": {"spec": {"holderIdentity": "a"}},
    "EndpointSlice": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.1"]}],
        "ports": [{"name": "a", "port": 80}],
    },
    "Endpoints": {"subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]},
    "Event": {"involvedObject": {"namespace": "n", "kind": "Pod", "name": "p"}},
    "ConfigMap": {},
    "Secret": {},
    "Node": {},
    "Namespace": {},
    "PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "Ingress": {
        "spec": {
            "rules": [
                {
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "s", "port": {"number": 80}}},
                            }
                        ]
                    }
                }
            ]
        }
    },
    "NetworkPolicy": {"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}},
    "PriorityClass": {"value": 1},
    "ResourceQuota": {"spec": {"hard": {"pods": "1"}}},
}

Place = tuple[str | int, ...]


def places(schema: Schema, depth: int = DEPTH) -> Iterator[tuple[Place, str]]:
    """Yield the paths of all integer and timestamp fields of a kind."""
    if schema.kind in ("integer", "int-or-string"):
        yield (), "integer"
    elif schema.format in ("date-time", "micro-time"):
        yield (), schema.format
    elif depth and schema.kind == "array" and schema.items is not None:
        yield from (((0, *below), kind) for below, kind in places(schema.items, depth - 1))
    elif depth and schema.kind == "object":
        for name, field in schema.properties.items():
            if name != "managedFields":
                yield from (((name, *below), kind) for below, kind in places(field, depth - 1))


def put(fields: Any, place: Place, value: Any) -> None:
    """Set a field to a value, and create the parent fields that are missing."""
    for at, following in itertools.pairwise(place):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(at, int):
            if not fields:
                fields.append(empty)
            fields = fields[0]
        else:
            fields = fields.setdefault(at, empty)
    if isinstance(place[-1], int):
        fields[:1] = [value]
    else:
        fields[place[-1]] = value


def valid_object(kind: Kind, name: str) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": "n"} if kind.namespaced else {})}
    return {
        "apiVersion": kind.gvk.api_version,
        "kind": kind.gvk.kind,
        "metadata": metadata,
        **copy.deepcopy(SPECS[kind.gvk.kind]),
    }


def values(of: str) -> tuple[Any, ...]:
    if of == "integer":
        return LIMITS
    return tuple(each.replace("Z", ".000000Z") for each in TIMES) if of == "micro-time" else TIMES


class Cluster:
    """A cluster with a namespace and a node, and methods that show objects in several formats."""

    def __init__(self) -> None:
        self.stage = Stage()
        assert self.stage.namespace("n").code == 201
        self.presentations = Presentations(self.stage.clock)
        guarded = {"metadata": {"name": "guarded", "labels": {"a": "b"}}, "spec": POD}
        pods = "/api/v1/namespaces/n/pods"
        assert self.stage.send("POST", pods, guarded).code == 201
        running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        patched = self.stage.send("PATCH", f"{pods}/guarded/status", running, media_type=MERGE)
        assert patched.code == 200, patched

    def live_through(self, kind: Kind, fields: dict[str, Any]) -> int:
        """Create, show, change and delete an object; return the response to the create."""
        collection = self.collection(kind)
        created = self.stage.send("POST", collection, fields)
        if created.code != 201:
            return created.code
        path = f"{collection}/{fields['metadata']['name']}"
        self.show(kind, fields["metadata"]["name"])
        put_back = {**created.body, "metadata": {**created.body["metadata"], "labels": {"x": "y"}}}
        answers = [
            self.stage.send("PUT", path, put_back),
            self.stage.send("PATCH", path, {"metadata": {"labels": {"x": "z"}}}, media_type=MERGE),
        ]
        if kind.strategy.has_status:
            answers.append(self.stage.send("PUT", f"{path}/status", put_back))
        if kind.gvk.kind == "Pod":
            assert self.evict(fields["metadata"]["name"]) == 201
        answers += [self.stage.send("DELETE", path) for _ in range(2)]
        answers.append(self.stage.send("DELETE", path, query={"gracePeriodSeconds": "0"}))
        assert all(answer.code < 500 for answer in answers), answers
        return created.code

    def change_through(self, kind: Kind, name: str) -> int:
        """Create an object and set each of its integer and timestamp fields to each value; return the number of
        accepted changes.
        """
        plain, path = valid_object(kind, name), f"{self.collection(kind)}/{name}"
        created = self.stage.send("POST", self.collection(kind), plain)
        assert created.code == 201, created
        live, taken = created.body, 0
        for place, of in dict.fromkeys(places(kind.schema)):
            for value in values(of):
                fields = {**copy.deepcopy(live if place[0] == "status" else plain), "metadata": {**live["metadata"]}}
                put(fields, place, value)
                answer = self.stage.send("PUT", f"{path}/status" if place[0] == "status" else path, fields)
                assert answer.code < 500, (place, value, answer)
                if answer.code == 200:
                    self.stage.clock.step(1)  # so that every reader sees each value
                    live, taken = answer.body, taken + 1
                    self.show(kind, name)
                    if kind.gvk.kind == "PodDisruptionBudget":
                        assert self.evict("guarded", {"dryRun": ["All"]}) in (201, 429)
        return taken

    def evict(self, pod: str, options: dict[str, Any] | None = None) -> int:
        """Evict a pod, and return the status code of the response."""
        fields = {"metadata": {"name": pod, "namespace": "n"}, **({"deleteOptions": options} if options else {})}
        return self.stage.send("POST", f"/api/v1/namespaces/n/pods/{pod}/eviction", fields).code

    @staticmethod
    def collection(kind: Kind) -> str:
        top = f"/api/{kind.gvk.version}" if not kind.gvk.group else f"/apis/{kind.gvk.api_version}"
        return f"{top}{'/namespaces/n' if kind.namespaced else ''}/{kind.resource.plural}"

    def show(self, kind: Kind, name: str) -> None:
        target = Target(kind, "n" if kind.namespaced else "", name)
        obj: Object = self.stage.driver.run(self.stage.engine.get(target, GetOptions()))
        for form in (AS_IS, Form("Table", "v1"), Form("PartialObjectMetadata", "v1")):
            assert self.presentations.of(kind, kind.gvk, form).one(obj)


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


KINDS = {kind.gvk.kind: kind for kind in Stage().kinds if kind.gvk.kind in SPECS and kind.storage == kind.resource}


@pytest.mark.parametrize("name", list(KINDS))
def test_no_number_or_time_corrupts_an_object(name: str, cluster: Cluster) -> None:
    kind = KINDS[name]
    stored = tried = 0
    for place, of in dict.fromkeys(places(kind.schema)):
        for value in values(of):
            tried += 1
            fields = valid_object(kind, f"{kind.resource.plural}-{tried}")
            put(fields, place, value)
            code = cluster.live_through(kind, fields)
            assert code < 500, (place, value)
            stored += code == 201
    assert tried
    assert stored, "no value was taken: the valid object is wrong"


@pytest.mark.parametrize("name", list(KINDS))
def test_no_number_or_time_corrupts_an_update(name: str, cluster: Cluster) -> None:
    kind = KINDS[name]
    taken = cluster.change_through(kind, f"{kind.resource.plural}-changed")
    assert taken, "no value was taken: the valid object is wrong"


@pytest.mark.parametrize("value", LIMITS)
def test_options_accept_any_number(value: int, cluster: Cluster) -> None:
    kind = KINDS["Pod"]
    for option in ("gracePeriodSeconds", "limit", "timeoutSeconds"):
        fields = valid_object(kind, f"option-{abs(value)}-{option.lower()}")
        assert cluster.stage.send("POST", "/api/v1/namespaces/n/pods", fields).code == 201
        path = f"/api/v1/namespaces/n/pods/{fields['metadata']['name']}"
        assert cluster.stage.send("GET", "/api/v1/namespaces/n/pods", query={option: str(value)}).code < 500
        assert cluster.stage.send("DELETE", path, query={option: str(value)}).code < 500
        assert cluster.stage.send("DELETE", path, {"gracePeriodSeconds": 0}).code < 500
        assert cluster.stage.send("POST", "/api/v1/namespaces/n/pods", fields).code == 201
        for options in ({"dryRun": ["All"]}, {}):
            assert cluster.evict(fields["metadata"]["name"], {"gracePeriodSeconds": value, **options}) < 500
        assert cluster.stage.send("DELETE", path, {"gracePeriodSeconds": 0}).code < 500


@pytest.mark.parametrize(
    ("microseconds", "seconds", "micros"),
    [
        (1 << 100, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z"),
        (-(1 << 100), "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
        (0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"),
    ],
)
def test_a_time_out_of_range_becomes_the_latest_valid_one(microseconds: int, seconds: str, micros: str) -> None:
    assert (format_time_seconds(microseconds), format_time(microseconds)) == (seconds, micros)
    assert parse_time(seconds) // 1_000_000 == parse_time(micros) // 1_000_000
