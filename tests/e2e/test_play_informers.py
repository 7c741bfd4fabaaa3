"""Tests that the Python client's informers follow a played recording, and have its final state."""

# The client's own functions are not annotated.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.informer import SharedInformer

from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, NAMESPACES, PODS, SERVICES, Resource
from tests.background import background
from tests.e2e.clients import python_client as make
from tests.e2e.clients.test_python_client_lease import Candidate, lease_holder, lease_lock
from tests.e2e.mock_cluster import MockCluster, changes, mock_cluster, recorded, versions
from tests.e2e.serving import DEADLINE, until
from tests.recording.samples import LARGER, SMALL

MEDIUM = [path for path in LARGER if path.name.startswith("medium")]
PATHS = {
    PODS: "/api/v1/pods",
    SERVICES: "/api/v1/services",
    ENDPOINTS: "/api/v1/endpoints",
    ENDPOINT_SLICES: "/apis/discovery.k8s.io/v1/endpointslices",
    NAMESPACES: "/api/v1/namespaces",
}

STRIDE = 100
"""The maximum number of events that a client must receive within the timeout of a test."""

FOLLOWED = (PODS, SERVICES, ENDPOINT_SLICES, NAMESPACES)


def lists(api: client.ApiClient) -> dict[Resource, Callable[..., Any]]:
    core = client.CoreV1Api(api)
    return {
        PODS: core.list_pod_for_all_namespaces,
        SERVICES: core.list_service_for_all_namespaces,
        ENDPOINT_SLICES: client.DiscoveryV1Api(api).list_endpoint_slice_for_all_namespaces,
        NAMESPACES: core.list_namespace,
    }


class Informer:
    """One informer of the Python client, and the events that the informer has received."""

    def __init__(self, resource: Resource, list_: Callable[..., Any]) -> None:
        self.resource = resource
        self.told: list[tuple[str, int]] = []
        self.shared = SharedInformer(list_)
        for type_ in ("ADDED", "MODIFIED", "DELETED"):
            self.shared.add_event_handler(type_, lambda obj, type_=type_: self._remember(type_, obj))

    def _remember(self, type_: str, obj: Any) -> None:
        self.told.append((type_, int(obj.metadata.resource_version)))

    def since(self, revision: int) -> list[tuple[str, int]]:
        """Return the events that the informer has received after a revision."""
        return [each for each in self.told if each[1] > revision]

    def versions(self) -> dict[str, str]:
        """Return the resourceVersions of the objects in the informer's store."""
        found = [obj.metadata for obj in self.shared.cache.list()]
        return {"/".join(filter(None, (each.namespace, each.name))): each.resource_version for each in found}


@contextmanager
def following(server: MockCluster, *resources: Resource) -> Iterator[list[Informer]]:
    """Run informers of some resources within the block, which begins when all informers watch."""
    with make.connected(server) as api:
        informers = [Informer(resource, lists(api)[resource]) for resource in resources]
        for informer in informers:
            informer.shared.start()
        try:
            until(lambda: server.watches() == len(informers))
            yield informers
        finally:
            for stopped in [background(informer.shared.stop) for informer in informers]:
                # An informer that is connecting does not notice the stop, and stops at its next event.
                until(lambda stopped=stopped: has_stopped(server, stopped))


def has_stopped(server: MockCluster, stopped: Future[None]) -> bool:
    if not stopped.done():
        server.end_watches()
    return stopped.done()


def have_arrived(informers: list[Informer], recording: Path, revision: int | None = None) -> bool:
    return all(informer.versions() == versions(recording, informer.resource, revision) for informer in informers)


@pytest.mark.parametrize("recording", [SMALL, *MEDIUM], ids=lambda path: path.name)
def test_informers_receive_the_recorded_changes_and_reach_the_final_state(recording: Path, tmp_path: Path) -> None:
    with (
        mock_cluster(tmp_path, recording, "--paused", "--speed", "100") as server,
        following(server, SERVICES, PODS) as informers,
    ):
        began = server.command("resume")["firstRevision"]
        until(lambda: server.request("GET", "/play")[1]["ended"])
        for informer in informers:
            of_it = [each for each in changes(recording) if each.object.resource == informer.resource]
            expected = [(each.type.name, each.object.revision) for each in of_it if each.object.revision > began]
            for count in (*range(0, len(expected), STRIDE), len(expected)):
                until(lambda informer=informer, count=count: len(informer.since(began)) >= count)
            assert informer.since(began) == expected
        assert have_arrived(informers, recording)
        for resource, path in PATHS.items():
            items = server.request("GET", path)[1]["items"]
            stored = [json.loads(obj.wire()) for (of, _), obj in recorded(recording).items() if of == resource]
            for fields in stored:
                del fields["kind"], fields["apiVersion"]
            assert sorted(items, key=uid) == sorted(stored, key=uid)


def uid(fields: Any) -> str:
    return str(fields["metadata"]["uid"])


def test_informers_restart_after_a_rewind(tmp_path: Path) -> None:
    middle = 400
    with mock_cluster(tmp_path, SMALL, "--paused") as server, following(server, *FOLLOWED) as informers:
        server.command("seek?to=end")
        until(lambda: have_arrived(informers, SMALL))
        server.command(f"seek?to={middle}")
        until(lambda: have_arrived(informers, SMALL, middle))
        server.command("seek?to=start")
        server.command("seek?to=end")
        until(lambda: have_arrived(informers, SMALL))


def test_a_leader_elected_controller_becomes_the_leader(tmp_path: Path) -> None:
    with mock_cluster(tmp_path, SMALL, "--writes", "pretend") as server, make.connected(server) as api:
        candidate = Candidate(lease_lock(api, "default", "me"))
        assert candidate.leads.wait(DEADLINE)
        server.command("seek?to=end")
        server.command("seek?to=start")
        assert lease_holder(api, "default") == "me"
        candidate.resigns.set()
        candidate.done.result(DEADLINE)
