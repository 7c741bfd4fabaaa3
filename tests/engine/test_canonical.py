"""Tests of canonical writes: a controller's object is stored in the same form as by the full write path, and admission
can require the full path.
"""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from ctrlmgr.admission.admission_chain import Chain
from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, Key, Resource
from ctrlmgr.client import CONTROLLER_MANAGER, EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.errors import AlreadyExists, Conflict, Forbidden, NamespaceTerminating, NotFound
from tests.controllers.log_cluster import LogCluster
from tests.engine.stage import Stage

WEB = Key("shop", "web")
META = {"name": "web", "namespace": "shop", "labels": {"app": "web"}}
ENDPOINTS_OF = {"kind": "Endpoints", "apiVersion": "v1", "metadata": META}
SLICE_OF = {"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "metadata": META, "addressType": "IPv4"}


def subsets(*ips: str) -> dict[str, Any]:
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
    return {**ENDPOINTS_OF, "subsets": [{"addresses": [{"ip": ip} for ip in ips], "ports": ports}]}


def slices(*ips: str, generation: int = 1) -> dict[str, Any]:
    listed = [{"addresses": [ip], "conditions": {"ready": True}} for ip in ips]
    ports = [{"name": "", "protocol": "TCP", "port": 80}]
    return {**SLICE_OF, "metadata": {**META, "generation": generation}, "endpoints": listed, "ports": ports}


class Cluster(Stage):
    """A cluster with the namespace `shop`; some clients guarantee that their objects are canonical, others do not."""

    def __init__(self, *plugins: Plugin) -> None:
        super().__init__()
        if plugins:
            self.engine.admission = Chain([NamespaceLifecycle(), *plugins], self.clock)
        self.namespace("shop")

    def client(self, *, canonical: bool) -> EngineClient:
        def run(operation: Any, cause: Any = None, fence: Any = None) -> Any:
            return self.driver.run(operation)

        requester = Requester("controller")
        return EngineClient(self.engine, run, requester, manager=CONTROLLER_MANAGER, canonical=canonical)

    def write(self, fields: dict[str, Any], *, canonical: bool) -> Object:
        wanted = Object.from_dict(fields)
        current = self.log.get(wanted.resource, wanted.key)
        client = self.client(canonical=canonical)
        if current is None:
            return client.create(wanted)
        return client.update(Object(wanted.resource, wanted.body, current.revision))


def stored(*writes: dict[str, Any], canonical: bool) -> dict[str, Any]:
    """Make writes at intervals of one second; return the stored objects without their random uids."""
    cluster = Cluster()
    for fields in writes:
        cluster.clock.step(1)
        last = cluster.write(fields, canonical=canonical)
    found: dict[str, Any] = last.to_dict()
    found["metadata"].pop("uid")
    return found


@pytest.mark.parametrize(
    "writes",
    [
        [subsets("10.0.0.1"), subsets("10.0.0.1", "10.0.0.2"), subsets("10.0.0.1", "10.0.0.2"), subsets("10.0.0.3")],
        [slices("10.0.0.1"), slices("10.0.0.1", "10.0.0.2", generation=2), slices("10.0.0.3", generation=3)],
    ],
    ids=["Endpoints", "EndpointSlices"],
)
def test_the_fast_path_equals_the_full_path(writes: list[dict[str, Any]]) -> None:
    assert stored(*writes, canonical=True) == stored(*writes, canonical=False)


def test_an_update_without_changes_appends_nothing() -> None:
    cluster = Cluster()
    cluster.write(subsets("10.0.0.1"), canonical=True)
    head = cluster.log.head().revision
    cluster.clock.step(60)
    cluster.write(subsets("10.0.0.1"), canonical=True)
    assert cluster.log.head().revision == head


def test_a_write_requires_the_revision_that_was_read() -> None:
    cluster = Cluster()
    first = cluster.write(subsets("10.0.0.1"), canonical=True)
    client = cluster.client(canonical=True)
    with pytest.raises(AlreadyExists):
        client.create(first)
    cluster.write(subsets("10.0.0.2"), canonical=True)
    late = Object(ENDPOINTS, Object.from_dict(subsets("10.0.0.3")).body, first.revision)
    with pytest.raises(Conflict):
        client.update(late)
    with pytest.raises(Conflict):
        client.delete(first)
    found = cluster.log.get(ENDPOINTS, WEB)
    assert found is not None
    client.delete(found)
    with pytest.raises(NotFound):
        client.update(found)


def test_the_namespace_is_checked() -> None:
    cluster = Cluster()
    elsewhere = Object.from_dict({**ENDPOINTS_OF, "metadata": {"name": "web", "namespace": "nowhere"}})
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        cluster.client(canonical=True).create(elsewhere)
    cluster.send("DELETE", "/api/v1/namespaces/shop")
    with pytest.raises(NamespaceTerminating, match=r"is forbidden: unable to create new content in namespace shop"):
        cluster.write(slices("10.0.0.1"), canonical=True)


class RefusingPlugin(Plugin):
    """A plugin that refuses objects with a label, and that can be configured to need objects."""

    name: ClassVar[str] = "Refuses"

    def __init__(self, *, wants: bool) -> None:
        self.wants = wants

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        return resource == ENDPOINT_SLICES

    def wants_object(self, attributes: Attributes) -> bool:
        return self.wants

    def validate(self, attributes: Attributes) -> None:
        if self.wants and attributes.fields["metadata"]["labels"] == META["labels"]:
            raise attributes.forbidden("no")


def test_a_plugin_that_requires_the_object_receives_it() -> None:
    with pytest.raises(Forbidden, match="no"):
        Cluster(RefusingPlugin(wants=True)).write(slices("10.0.0.1"), canonical=True)
    assert Cluster(RefusingPlugin(wants=True)).write(subsets("10.0.0.1"), canonical=True).name == "web"
    assert Cluster(RefusingPlugin(wants=False)).write(slices("10.0.0.1"), canonical=True).name == "web"


def test_a_terminating_object_is_deleted_with_its_last_finalizer() -> None:
    cluster = Cluster()
    held = cluster.write({**subsets("10.0.0.1"), "metadata": {**META, "finalizers": ["example.com/a"]}}, canonical=True)
    client = cluster.client(canonical=True)
    client.delete(held)
    marked = cluster.log.get(ENDPOINTS, WEB)
    assert marked is not None
    assert marked.is_terminating
    assert client.update(marked.with_metadata(finalizers=None)).is_terminating
    assert cluster.log.get(ENDPOINTS, WEB) is None


def test_a_controller_decides_again_after_a_conflict() -> None:
    cluster = LogCluster()
    cluster.put(Object.from_dict({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "shop"}}))
    endpoints = cluster.informers.informer(ENDPOINTS)
    cluster.informers.sync()
    client = cluster.client("controller")
    created = client.create(Object.from_dict(subsets("10.0.0.1")))
    assert endpoints.lister.get(WEB) is None, "the cache is behind"
    changed = client.update(Object(ENDPOINTS, Object.from_dict(subsets("10.0.0.2")).body, created.revision))
    assert endpoints.lister.get(WEB) is not None, "the first write was looked for, as the second was decided on it"
    assert changed.revision == cluster.log.head().revision


def test_deadlines_use_the_injected_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = LogCluster()
    cluster.informers.sync()
    clock: Clock = cluster.clock
    before = clock.monotonic()
    assert cluster.informers.reach(0, 1.0)
    assert clock.monotonic() == before
