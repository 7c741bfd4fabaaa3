"""Tests of CustomResourceDefinitions: their names are accepted, they are established, and they are deleted after their
instances.
"""

from __future__ import annotations

import base64

import pytest

from tests.controllers.customresourcedefinitions.defined import (
    DEFINITIONS,
    NAME,
    WIDGETS,
    DefinedStage,
    definition,
    widget,
)
from tests.controllers.worked_stage import MERGE


@pytest.fixture
def stage() -> DefinedStage:
    return DefinedStage()


def test_a_definition_is_established_and_its_kind_is_served(stage: DefinedStage) -> None:
    assert stage.send("GET", WIDGETS).code == 404
    created = stage.define()
    assert created.code == 201
    assert created.body["status"]["storedVersions"] == ["v1"]
    assert stage.conditions() == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    names = stage.send("GET", f"{DEFINITIONS}/{NAME}").body["status"]["acceptedNames"]
    assert names == {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    assert stage.send("GET", WIDGETS).body["kind"] == "WidgetList"


def test_an_established_definition_is_not_written_again(stage: DefinedStage) -> None:
    stage.define()
    before = stage.send("GET", f"{DEFINITIONS}/{NAME}").body["metadata"]["resourceVersion"]
    stage.start()
    stage.work()
    assert stage.send("GET", f"{DEFINITIONS}/{NAME}").body["metadata"]["resourceVersion"] == before


def test_a_name_in_use_is_not_accepted_until_it_is_free(stage: DefinedStage) -> None:
    stage.define(definition(shortNames=["w"]))
    stage.define(definition("gadgets", "Widget", shortNames=["w", "g"]))
    name = "gadgets.example.com"
    assert stage.conditions(name) == {
        "NamesAccepted": ("False", "ListKindConflict"),
        "Established": ("False", "NotAccepted"),
    }
    held = stage.send("GET", f"{DEFINITIONS}/{name}").body["status"]["acceptedNames"]
    assert held == {"plural": "gadgets", "kind": ""}
    stage.send("DELETE", f"{DEFINITIONS}/{NAME}")
    stage.work()
    assert stage.conditions(name)["Established"] == ("True", "InitialNamesAccepted")
    held = stage.send("GET", f"{DEFINITIONS}/{name}").body["status"]["acceptedNames"]
    assert held["kind"] == "Widget"
    assert held["shortNames"] == ["w", "g"]


def test_instances_are_deleted_before_their_definition(stage: DefinedStage) -> None:
    stage.define()
    stage.send("POST", WIDGETS, widget())
    gone = stage.send("DELETE", f"{DEFINITIONS}/{NAME}")
    assert gone.body["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert "deletionGracePeriodSeconds" not in gone.body["metadata"]
    assert gone.body["metadata"]["generation"] == 1
    assert stage.conditions()["Terminating"] == ("True", "InstanceDeletionPending")
    stage.work()
    stage.pass_by(1)
    assert stage.send("GET", f"{DEFINITIONS}/{NAME}").code == 404
    assert stage.send("GET", WIDGETS).code == 404


def test_a_finalizer_of_an_instance_keeps_its_definition(stage: DefinedStage) -> None:
    stage.define()
    stage.send("POST", WIDGETS, widget() | {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    stage.send("DELETE", f"{DEFINITIONS}/{NAME}")
    stage.work()
    assert stage.send("GET", f"{WIDGETS}/a").body["metadata"]["deletionTimestamp"]
    refused = stage.send("POST", WIDGETS, widget("b"))
    assert refused.code == 403
    assert refused.message.endswith("create not allowed while custom resource definition is terminating")
    stage.pass_by(70)
    assert stage.conditions()["Terminating"] == ("True", "InstanceDeletionCheck")
    stage.send("PATCH", f"{WIDGETS}/a", {"metadata": {"finalizers": None}}, media_type=MERGE)
    stage.pass_by(10)
    assert stage.send("GET", f"{DEFINITIONS}/{NAME}").code == 404


@pytest.mark.parametrize("steps", range(6))
def test_an_interrupted_deletion_is_continued(stage: DefinedStage, steps: int) -> None:
    stage.define()
    for name in ("a", "b"):
        stage.send("POST", WIDGETS, widget(name))
    stage.send("DELETE", f"{DEFINITIONS}/{NAME}")
    for _ in range(steps):
        stage.hear()
        stage.controller.process_next(0)
    stage.start()
    stage.work()
    stage.pass_by(1)
    assert stage.send("GET", f"{DEFINITIONS}/{NAME}").code == 404
    assert stage.define().code == 201
    assert stage.send("GET", WIDGETS).body["items"] == []


def test_a_definition_that_was_never_established_is_deleted_at_once(stage: DefinedStage) -> None:
    stage.define()
    stage.define(definition("gadgets", "Widget"))
    stage.send("DELETE", f"{DEFINITIONS}/gadgets.example.com")
    stage.work()
    assert stage.send("GET", f"{DEFINITIONS}/gadgets.example.com").code == 404
    assert stage.send("GET", WIDGETS).code == 200


def test_a_definition_with_an_invalid_webhook_bundle_is_established_after_its_correction(stage: DefinedStage) -> None:
    client = {"url": "https://hooks.example.com/convert", "caBundle": base64.b64encode(b"no certificate").decode()}
    fields = definition()
    fields["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client},
    }
    assert stage.define(fields).code == 201
    assert stage.conditions()["Established"] == ("False", "InvalidCABundle")
    assert stage.send("GET", WIDGETS).code == 404
    right = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": None}}}}}
    assert stage.send("PATCH", f"{DEFINITIONS}/{NAME}", right, media_type=MERGE).code == 200
    stage.work()
    assert stage.conditions()["Established"] == ("True", "InitialNamesAccepted")
