"""Tests of create requests whose bodies differ only in their names: each object equals the object that a new engine
creates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from tests.engine.stage import Response, Stage

Fields = dict[str, Any]
NAMES = ("web-1", "web-2", "web-3", "other")
POD: Fields = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "NAME",
        "labels": {"app": "web"},
        "annotations": {"example.com/a": "1"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u"}],
        "finalizers": ["example.com/f"],
    },
    "spec": {"containers": [{"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "0.10"}}}]},
}
SERVICE: Fields = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "NAME"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}
TEMPLATE: Fields = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENT: Fields = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "NAME"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
}
JOB: Fields = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "NAME"},
    "spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}},
}
NAMED_AGAIN: Fields = {**SERVICE, "metadata": {"name": "NAME", "labels": {"app": "NAME"}}}
SELECTING: Fields = {**SERVICE, "spec": {"selector": {"app": "no-NAME"}, "ports": [{"port": 80}]}}
LABELLED: Fields = {
    **DEPLOYMENT,
    "metadata": {"name": "NAME", "labels": {"app": "the-NAME", "tier": "NAME.NAME"}},
    "spec": {
        "selector": {"matchLabels": {"app": "NAME"}},
        "template": {**TEMPLATE, "metadata": {"labels": {"app": "NAME"}}},
    },
}
ELSEWHERE: Fields = {
    **POD,
    "metadata": {"name": "NAME", "labels": {"NAME": "a"}, "annotations": {"example.com/a": "NAME"}},
    "spec": {"containers": [{"name": "NAME", "image": "i:NAME"}]},
}
BADLY_LABELLED: Fields = {**SERVICE, "metadata": {"name": "NAME", "labels": {"app": "not a label"}}}
APPLIED: Fields = {
    "manager": "other",
    "operation": "Apply",
    "apiVersion": "v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:spec": {"f:hostname": {}}},
}
MANAGED: Fields = {**POD, "metadata": {**POD["metadata"], "managedFields": [APPLIED]}}
BODIES = {
    "pods": POD,
    "services": SERVICE,
    "services that are named again": NAMED_AGAIN,
    "services that select by their name": SELECTING,
    "deployments whose labels have their name": LABELLED,
    "pods that are named elsewhere": ELSEWHERE,
    "pods that are managed already": MANAGED,
    "services with bad labels": BADLY_LABELLED,
    "services with an unknown field": {**SERVICE, "spec": {**SERVICE["spec"], "odd": 1}},
    "services of a version": {**SERVICE, "metadata": {"name": "NAME", "resourceVersion": "7"}},
    "deployments": DEPLOYMENT,
    "jobs": JOB,
}


def place(body: Mapping[str, Any], namespace: str = "shop") -> str:
    version = body["apiVersion"]
    return f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/{namespace}/{body['kind'].lower()}s"


def named(body: Mapping[str, Any], name: str) -> bytes:
    return json.dumps(body).replace("NAME", name).encode()


def fresh() -> Stage:
    """Return a cluster with a new engine."""
    stage = Stage()
    for name in ("shop", "bar"):
        stage.namespace(name)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        stage.send("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
    return stage


def comparable(answer: Response, *unlike: str) -> str:
    """Return a response without values that are random or depend on the order of requests."""
    body = json.loads(json.dumps(answer.body))
    metadata = body.get("metadata", {})
    uid = metadata.pop("uid", "no uid")
    for each in ("resourceVersion", *unlike):
        metadata.pop(each, None)
    spec = body.get("spec", {})
    for each in ("clusterIP", "clusterIPs"):
        spec.pop(each, None)
    text = json.dumps((answer.code, body, answer.warnings)).replace(uid, "UID")
    for volume in spec.get("volumes", ()):
        text = text.replace(volume["name"], "VOLUME")
    return text


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_each_creation_equals_a_single_creation(body: Fields) -> None:
    stage = fresh()
    for second, name in enumerate(NAMES):
        alone = fresh()
        alone.clock.step(second)
        assert comparable(stage.send("POST", place(body), named(body, name))) == comparable(
            alone.send("POST", place(body), named(body, name))
        )
        stage.clock.step(1)


def test_another_namespace_has_a_separate_template() -> None:
    stage = fresh()
    for name in NAMES:
        assert stage.send("POST", place(POD), named(POD, name)).code == 201
    for name in NAMES:
        answer = stage.send("POST", place(POD, "bar"), named(POD, name))
        assert (answer.code, answer.body["metadata"]["namespace"]) == (201, "bar")


def test_another_manager_has_a_separate_template() -> None:
    stage = fresh()
    for manager in ("kubectl", "helm"):
        for name in NAMES:
            query = {"fieldManager": manager}
            answer = stage.send("POST", place(POD), named(POD, f"{manager}-{name}"), query=query)
            assert [each["manager"] for each in answer.body["metadata"]["managedFields"]] == [manager]


@pytest.mark.parametrize("name", ["Web", "a_b", "-web", "w" * 300, "", "wé"])
def test_an_invalid_name_is_refused(name: str) -> None:
    stage = fresh()
    for each in NAMES:
        stage.send("POST", place(POD), named(POD, each))
    assert comparable(stage.send("POST", place(POD), named(POD, name))) == comparable(
        fresh().send("POST", place(POD), named(POD, name))
    )


@pytest.mark.parametrize(("name", "code"), [("9" * 64, 422), ("91", 201), ("0.9", 201)])
def test_a_name_in_labels_is_replaced_as_a_label(name: str, code: int) -> None:
    stage = fresh()
    for each in ("80", "81", "82", name):
        answer = stage.send("POST", place(LABELLED), named(LABELLED, each))
    assert (answer.code, answer.body.get("metadata", {}).get("name", name)) == (code, name)


@pytest.mark.parametrize(("name", "code"), [("90", 201), ("090", 400), ("99999", 422), ("a90", 400)])
def test_a_name_that_looks_like_a_number_has_no_template(name: str, code: int) -> None:
    stage = fresh()
    body = b'{"metadata":{"name":"%s"},"spec":{"ports":[{"port":%s}],"type":"ExternalName","externalName":"x"}}'
    for each in ("80", "81", "82", name):
        answer = stage.send("POST", place(SERVICE), body % (each.encode(), each.encode()))
    assert answer.code == code


NAMED = (b'"web"', b'"\\u0077eb"')
"""A name in its usual JSON form, and the same name with an escape sequence."""
CRAFTED = b'{"metadata":{"labels":{"name":"%s"},"name":%s},"spec":{"ports":[{"port":80}]}}'


@pytest.mark.parametrize("name", NAMED)
def test_a_label_named_name_is_kept(name: bytes) -> None:
    stage = fresh()
    for label in (b"web", b"web", b"web", b"other"):
        metadata = stage.send("POST", place(SERVICE), CRAFTED % (label, name)).body["metadata"]
        assert (metadata["name"], metadata["labels"]) == ("web", {"name": label.decode()})
        stage.send("DELETE", f"{place(SERVICE)}/web")


def test_a_name_that_looks_like_a_quantity_has_no_template() -> None:
    """Tests a value that is sent in a form that differs from its stored form."""
    stage, containers = fresh(), [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "NAME"}}}]
    body = {**POD, "metadata": {"name": "NAME"}, "spec": {"containers": containers}}
    for name in ("0.1", "0.2", "0.3", "0.4"):
        spec = stage.send("POST", place(body), named(body, name)).body["spec"]
        assert spec["containers"][0]["resources"]["limits"] == {"cpu": f"{name[2:]}00m"}


def test_a_pod_named_like_a_default_keeps_the_default() -> None:
    stage, body = fresh(), {**POD, "metadata": {"name": "NAME"}}
    for name in ("default-scheduler", "default-scheduler", "web-1", "web-2"):
        spec = stage.send("POST", place(body), named(body, name)).body["spec"]
        assert spec["schedulerName"] == "default-scheduler"
        stage.send("DELETE", f"{place(body)}/{name}", query={"gracePeriodSeconds": "0"})


def test_names_chosen_by_the_server_are_chosen_again() -> None:
    stage = fresh()
    body = {**POD, "metadata": {"generateName": "web-"}, "spec": {"containers": [{"name": "NAME", "image": "i"}]}}
    made = [stage.send("POST", place(POD), named(body, name)).body for name in ("c", "c", "c", "d")]
    assert [each["spec"]["containers"][0]["name"] for each in made] == ["c", "c", "c", "d"]
    assert len({each["metadata"]["name"] for each in made}) == 4


def test_ignored_unknown_fields_of_one_creation_do_not_affect_others() -> None:
    stage = fresh()
    body = BODIES["services with an unknown field"]
    for name in NAMES:
        assert stage.send("POST", place(body), named(body, name), query={"fieldValidation": "Ignore"}).code == 201
    assert stage.send("POST", place(body), named(body, "last"), query={"fieldValidation": "Strict"}).code == 400


class LabellingPlugin(Plugin):
    """A plugin that adds the configured labels to pods."""

    name: ClassVar[str] = "Labelling"

    def __init__(self) -> None:
        self.label = "fine"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        return resource == PODS

    def admit(self, attributes: Attributes) -> None:
        attributes.fields["metadata"].setdefault("labels", {})["labelled"] = self.label


def test_metadata_changed_by_admission_is_checked_again() -> None:
    labelling = LabellingPlugin()
    stage = Stage(plugins=[labelling])
    stage.namespace("shop")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    stage.send("POST", "/api/v1/namespaces/shop/serviceaccounts", account)
    for name in NAMES:
        assert stage.send("POST", place(POD), named(POD, name)).code == 201
    labelling.label = "not a label"
    answer = stage.send("POST", place(POD), named(POD, "last"))
    assert (answer.code, "metadata.labels" in answer.message) == (422, True)
