"""Tests of the cleaner of PodCertificateRequests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.podcertificaterequest_cleaner.controller import REQUESTS, build
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.kinds.builtin import builtin_kinds
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage
from tests.kinds.certificates.test_pod_certificate_request import request


@pytest.fixture
def stage() -> Iterator[WorkedStage]:
    switch({"PodCertificateRequest": True})
    kinds = builtin_kinds(served=["certificates.k8s.io/v1beta1"])
    stage = WorkedStage(lambda stage: build(StageContext(stage), NoOptions()), kinds=kinds)
    stage.namespace("a")
    yield stage
    switch({})


def create(stage: WorkedStage, name: str) -> None:
    path = "/apis/certificates.k8s.io/v1beta1/namespaces/a/podcertificaterequests"
    stage.create(path, {**request(), "metadata": {"name": name}})


def test_requests_are_deleted_after_fifteen_minutes(stage: WorkedStage) -> None:
    create(stage, "old")
    stage.pass_by(600)
    create(stage, "new")
    stage.pass_by(299)
    assert stage.names(REQUESTS) == ["new", "old"]
    stage.pass_by(301)
    assert stage.names(REQUESTS) == ["new"]
