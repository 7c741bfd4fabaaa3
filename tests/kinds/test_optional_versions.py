"""Tests of kinds that are served only if their version is enabled and their feature gate is on."""

from collections.abc import Iterator

import pytest

from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.schema import published_schema
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.schema.protobuf.message import message_of
from ctrlmgr.server.describe.openapi.v2 import swagger

VERSION = "internal.apiserver.k8s.io/v1alpha1"
GVK = GroupVersionKind("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion")
PATH = f"/apis/{VERSION}/storageversions"
DEFINITION = "io.k8s.api.apiserverinternal.v1alpha1.StorageVersion"


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    yield
    switch({})


def served(*versions: str, gate: bool) -> Kinds:
    switch({"StorageVersionAPI": gate})
    return builtin_kinds(served=versions)


@pytest.mark.parametrize(
    ("versions", "gate"), [((), True), ((VERSION,), False), (("certificates.k8s.io/v1beta1",), True)]
)
def test_a_kind_needs_its_version_and_its_gate(versions: tuple[str, ...], gate: bool) -> None:
    kinds = served(*versions, gate=gate)
    assert kinds.find(*GVK[:2], "storageversions") is None
    assert GVK.group not in {group.name for group in kinds.groups}
    document = swagger(kinds)
    assert PATH not in document["paths"]
    assert DEFINITION not in document["definitions"]


def test_a_served_kind_is_in_discovery_and_in_openapi() -> None:
    kinds = served(VERSION, gate=True)
    kind = kinds.find(*GVK[:2], "storageversions")
    assert kind is not None
    assert kind.gvk == GVK
    assert kind.strategy.has_status
    assert [group.name for group in kinds.groups][-1] == GVK.group
    document = swagger(kinds)
    assert {PATH, f"{PATH}/{{name}}/status", f"/apis/{GVK.group}/", f"/apis/{VERSION}/"} <= set(document["paths"])
    assert DEFINITION in document["definitions"]
    assert "/apis/storagemigration.k8s.io/" not in document["paths"]


def test_stored_objects_of_a_kind_that_is_not_served_can_be_read() -> None:
    kinds = builtin_kinds()
    kind = kinds.stored(Resource(GVK.group, "storageversions"))
    assert kind is not None
    assert kinds.by_gvk(GVK) is kind
    assert message_of(VERSION, "StorageVersion") == "k8s.io.api.apiserverinternal.v1alpha1.StorageVersion"


def test_the_published_structure_of_optional_versions_is_complete() -> None:
    """Every struct has its Go fields, and every listed kind has a definition and a message."""
    definitions = Definitions.builtin()
    for name, version in published_schema.optional().items():
        for definition in version.definitions:
            fields = {field.name for field in published_schema.go_fields(definition) or ()}
            assert fields == set(definitions.raw(definition).get("properties", ())), definition
            definitions.struct(definition)
        for resource in version.discovery["resources"]:
            assert (name, resource["kind"]) in definitions.by_kind
            assert message_of(name, resource["kind"]) is not None
