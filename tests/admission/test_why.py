"""Tests of `ctrlmgr why` for objects that admission changed, and for refused writes of controllers."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import click
import pytest

from ctrlmgr import App, Untyped, Write
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.cli.output import trees
from ctrlmgr.client import EngineClient, LogClient, ReconcileClient
from ctrlmgr.engine.blocking_driver import Driver
from ctrlmgr.engine.calls.call import Call, Reply
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.errors import Forbidden
from ctrlmgr.eventlog import EventLog, Reconcile
from ctrlmgr.eventlog.event import Cause, Fence
from ctrlmgr.eventlog.opening import open_log
from ctrlmgr.framework.app_admission import plugin_of
from ctrlmgr.inspection import causes
from ctrlmgr.inspection.database import open_database
from ctrlmgr.manager import Controller, Watch
from ctrlmgr.testing import FakeClock
from tests.admission.webhooks.hooked import RULES
from tests.controllers.worked_stage import WorkedStage
from tests.engine.stage import Stage

MAPS = "/api/v1/namespaces/shop/configmaps"
CONFIGMAPS = Resource("", "configmaps")

app = App("rules")


@app.admission("v1/ConfigMap")
def sized(found: Untyped, write: Write) -> None:
    """Add a label to objects that are large."""
    if found.labels.get("size") == "big":
        found.labels["watch-out"] = "yes"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'log.db'}"


@pytest.fixture
def log(url: str) -> Iterator[EventLog]:
    opened = open_log(url, clock=FakeClock(), random=Random(1), migrate=True)
    try:
        yield opened
    finally:
        opened.close()


def labels_it(call: Call) -> Reply:
    """Respond like a webhook that adds a label to objects without this label."""
    request = json.loads(call.body)["request"]
    response = {"uid": request["uid"], "allowed": True}
    if "labels" not in request["object"]["metadata"]:
        patch = [{"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}}]
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return Reply(200, "application/json", json.dumps(review).encode())


def why_lines(url: str, name: str, resource: Resource = CONFIGMAPS, namespace: str = "shop") -> list[str]:
    with open_database(url) as database:
        newest = causes.newest_event(database, resource, Key(namespace, name), until=1_000_000)
        return [click.unstyle(line) for line in trees.causes(causes.why(database, newest))]


def test_why_shows_the_author_of_a_change_with_its_cause(log: EventLog, url: str) -> None:
    stage = Stage(log=log, caller=labels_it, plugins=[plugin_of(each) for each in app.admissions])
    stage.namespace("shop")
    hook = {
        "name": "label.example.com",
        "clientConfig": {"url": "https://hooks.invalid/"},
        "rules": RULES,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    assert stage.send("POST", path, {"metadata": {"name": "labels"}, "webhooks": [hook]}).code == 201
    assert stage.send("POST", MAPS, {"metadata": {"name": "plain"}}).code == 201
    assert stage.send("POST", MAPS, {"metadata": {"name": "big", "labels": {"size": "big"}}}).code == 201
    assert stage.send("POST", MAPS, {"metadata": {"name": "small", "labels": {"size": "small"}}}).code == 201
    log.flush()
    plain, big, small = (why_lines(url, name) for name in ("plain", "big", "small"))
    assert "changed during admission by webhook label.example.com of labels" in plain[1]
    assert "mutatingwebhookconfigurations.admissionregistration.k8s.io labels" in plain[2]
    assert "changed during admission by plugin sized" in big[1]
    assert len(small) == 1


def test_why_names_built_in_plugins(log: EventLog, url: str) -> None:
    stage = Stage(log=log)
    stage.namespace("shop")
    for name in ("a", "b"):
        pod = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        assert stage.send("POST", "/api/v1/namespaces/shop/pods", pod).code == 201
    assert stage.send("POST", "/api/v1/nodes", {"metadata": {"name": "n"}}).code == 201
    log.flush()
    pods = [why_lines(url, name, Resource("", "pods")) for name in ("a", "b")]
    assert [each[1] for each in pods] == [
        "└─ changed during admission by plugin Priority, plugin DefaultTolerationSeconds"
    ] * 2
    assert (
        why_lines(url, "n", Resource("", "nodes"), "")[1]
        == "└─ changed during admission by plugin TaintNodesByCondition"
    )
    with open_database(url) as database:
        rows = database.query("SELECT key, outcome FROM reconciles ORDER BY key").rows
    assert [tuple(row) for row in rows] == [
        ("plugin Priority, plugin DefaultTolerationSeconds", "ok"),  # one cause for both pods
        ("plugin TaintNodesByCondition", "ok"),
    ]


METADATA = {"name": "p", "namespace": "shop"}


def test_a_refusal_names_the_plugin() -> None:
    stage = WorkedStage(refusing)
    stage.namespace("shop")
    spec = {"priorityClassName": "absent", "containers": [{"name": "c", "image": "i"}]}
    pod = Object.from_dict({"apiVersion": "v1", "kind": "Pod", "metadata": METADATA, "spec": spec})
    with pytest.raises(Forbidden) as refused:
        stage.engine_client.create(pod)
    assert refused.value.refused_by == "Priority"


def worked(stage: WorkedStage) -> Reconcile:
    """Run the controller once, and return the stored reconcile that wrote the newest event."""
    stage.hear()
    stage.controller.process_next(timeout=0)
    stage.log.flush()
    (made,) = [each for each in stage.log.events_after(0, limit=100) if each.reconcile]
    ended = stage.log.reconcile(made.reconcile)
    assert ended is not None
    return ended


def test_a_refused_reconcile_names_the_plugin() -> None:
    stage = WorkedStage(refusing)
    stage.namespace("shop")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": METADATA}
    stage.log_client.create(Object.from_dict(secret))
    ended = worked(stage)
    assert ended.outcome is not None
    assert ended.outcome.message == "Forbidden: there is no such class (admission plugin Priority)"


def test_a_reconcile_names_the_plugins_that_changed_its_objects() -> None:
    stage = WorkedStage(creating)
    stage.namespace("shop")
    stage.log_client.create(Object.from_dict({"apiVersion": "v1", "kind": "Secret", "metadata": METADATA}))
    ended = worked(stage)
    assert ended.outcome is not None
    why_lines = "changed during admission by plugin Priority, plugin DefaultTolerationSeconds"
    assert (ended.cause.controller, ended.outcome.result, ended.outcome.message) == ("creating", "ok", why_lines)


class PodCreator:
    """A reconciler that creates a pod."""

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Make it."""
        spec = {"containers": [{"name": "c", "image": "i"}]}
        client.create(Object.from_dict({"apiVersion": "v1", "kind": "Pod", "metadata": METADATA, "spec": spec}))


def creating(stage: WorkedStage) -> Controller:
    def run(operation: Operation[Any], cause: Cause | None = None, fence: Fence | None = None) -> Any:
        return Driver(stage.log, stage.feed, stage.cacher, patience=0, cause=cause).run(operation)

    client = EngineClient(stage.engine, run, Requester("system:creating"))
    return controller(stage, "creating", PodCreator(), client)


class SecondWriteRefused:
    """A reconciler whose first write is allowed and whose second write is refused."""

    def reconcile(self, key: Key, client: LogClient) -> None:
        """Write."""
        client.create(Object.from_dict({"apiVersion": "v1", "kind": "ConfigMap", "metadata": METADATA}))
        error = Forbidden("there is no such class")
        error.refused_by = "Priority"
        raise error


def refusing(stage: WorkedStage) -> Controller:
    return controller(stage, "refusing", SecondWriteRefused(), stage.log_client)


def controller(stage: WorkedStage, name: str, reconciler: Any, client: ReconcileClient) -> Controller:
    secrets = stage.informers.informer(Resource("", "secrets"))
    return Controller(
        name,
        reconciler,
        watches=[Watch(secrets, lambda change: [change.new.key] if change.new is not None else [])],
        client=client,
        log=stage.log,
        clock=stage.clock,
        random=stage.random,
    )
