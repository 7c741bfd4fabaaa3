"""Tests that the root CA publisher and the service account controller share, because both create objects in every
namespace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.root_ca_certificate_publisher.controller import CONFIG_MAPS
from ctrlmgr.controllers.serviceaccount.controller import SERVICE_ACCOUNTS
from ctrlmgr.manager import Controller
from tests.controllers import test_root_ca_certificate_publisher, test_serviceaccount
from tests.controllers.worked_stage import WorkedStage


class NamespaceObject(NamedTuple):
    """The object that each namespace gets, and the controller that creates it."""

    make: Callable[[WorkedStage], Controller]
    resource: Resource
    name: str

    @property
    def collection(self) -> str:
        return f"/api/v1/namespaces/a/{self.resource.plural}"

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"


@pytest.fixture(
    params=[
        NamespaceObject(test_root_ca_certificate_publisher.controller, CONFIG_MAPS, "kube-root-ca.crt"),
        NamespaceObject(test_serviceaccount.controller, SERVICE_ACCOUNTS, "default"),
    ],
    ids=lambda gift: gift.resource.plural,
)
def gift(request: pytest.FixtureRequest) -> NamespaceObject:
    found: NamespaceObject = request.param
    return found


@pytest.fixture
def stage(gift: NamespaceObject) -> WorkedStage:
    stage = WorkedStage(gift.make)
    stage.namespace("a")
    stage.work()
    assert stage.written() == [("ADDED", f"a/{gift.name}")]
    return stage


def test_other_objects_are_unchanged(stage: WorkedStage, gift: NamespaceObject) -> None:
    stage.create(gift.collection, {"metadata": {"name": "mine"}})
    stage.patch(f"{gift.collection}/mine", {"metadata": {"labels": {"a": "b"}}})
    stage.delete(f"{gift.collection}/mine")
    stage.work()
    assert len(stage.written()) == 1


def test_nothing_is_created_in_a_terminating_namespace(stage: WorkedStage, gift: NamespaceObject) -> None:
    stage.delete("/api/v1/namespaces/a")
    stage.delete(gift.path)
    stage.work()
    assert stage.names(gift.resource) == []


def test_a_namespace_deleted_before_the_cache_knows_is_no_failure(stage: WorkedStage, gift: NamespaceObject) -> None:
    stage.delete(gift.path)
    stage.hear()
    stage.delete("/api/v1/namespaces/a")
    assert stage.controller.process_next(timeout=0)
    stage.clock.step(60)
    stage.work()
    assert stage.names(gift.resource) == []
