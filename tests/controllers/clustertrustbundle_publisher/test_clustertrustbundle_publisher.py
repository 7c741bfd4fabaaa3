"""Tests of the ClusterTrustBundle publisher."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from ctrlmgr.controllers.clustertrustbundle_publisher.controller import BUNDLES, SIGNER, SYNCS, build
from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.kinds.builtin import builtin_kinds
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage
from tests.kinds.certificates.authorities import certificate

CA, FORMER = certificate("now"), certificate("former")
PATH = "/apis/certificates.k8s.io/v1beta1/clustertrustbundles"
PREFIX = "kubernetes.io:kube-apiserver-serving:"


@pytest.fixture(autouse=True)
def gate() -> Iterator[None]:
    switch({"ClusterTrustBundle": True})
    yield
    switch({})


def staged(*served: str) -> WorkedStage:
    kinds = builtin_kinds(served=served)
    return WorkedStage(lambda stage: build(StageContext(stage, root_ca=CA), NoOptions()), kinds=kinds)


@pytest.fixture
def stage() -> WorkedStage:
    return staged("certificates.k8s.io/v1beta1")


def bundle(name: str, certificates: str, signer: str = SIGNER) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"signerName": signer, "trustBundle": certificates}}


def test_the_authority_is_published_under_a_name_with_its_hash(stage: WorkedStage) -> None:
    synced = SYNCS.labels("200")._value.get()
    stage.work()
    (name,) = stage.names(BUNDLES)
    assert name == PREFIX + sha256(CA.encode()).hexdigest()[:24]
    published = stage.stored(BUNDLES, name)
    assert published is not None
    assert published.to_dict()["spec"] == {"signerName": SIGNER, "trustBundle": CA}
    assert SYNCS.labels("200")._value.get() > synced


def test_a_changed_bundle_is_corrected_and_a_deleted_one_created_again(stage: WorkedStage) -> None:
    stage.work()
    (name,) = stage.names(BUNDLES)
    stage.patch(f"{PATH}/{name}", {"spec": {"trustBundle": FORMER}})
    stage.work()
    published = stage.stored(BUNDLES, name)
    assert published is not None
    assert published.to_dict()["spec"]["trustBundle"] == CA
    stage.delete(f"{PATH}/{name}")
    stage.work()
    assert stage.names(BUNDLES) == [name]


def test_bundles_of_former_authorities_are_deleted_and_those_of_other_signers_stay(stage: WorkedStage) -> None:
    stage.create(PATH, bundle(f"{PREFIX}old", FORMER))
    stage.create(PATH, bundle("example.com:s:mine", FORMER, "example.com/s"))
    stage.work()
    assert [each.startswith(PREFIX) for each in stage.names(BUNDLES)] == [False, True]
    assert f"{PREFIX}old" not in stage.names(BUNDLES)


def test_nothing_is_written_if_the_kind_is_not_served() -> None:
    stage = staged()
    stage.work()
    assert stage.written() == []
