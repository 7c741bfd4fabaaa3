"""Compares the state of an idle cluster with the expected state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES
from ctrlmgr.controllers import endpoints
from tests.controllers.endpoints.endpoints_stage import EndpointsStage
from tests.controllers.endpoints.oracle import (
    ExpectedEndpoint,
    Fields,
    expected_endpoints,
    expected_mirrors,
    expected_slices,
    said_by_endpoints,
    said_by_slice,
    selects,
)

Place = tuple[str, str]

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
KEPT = "endpointslice-controller.k8s.io"
MIRRORED = "endpointslicemirroring-controller.k8s.io"
SERVICE_NAME = "kubernetes.io/service-name"
HEADLESS = "service.kubernetes.io/headless"


class State:
    """All existing objects, as JSON."""

    def __init__(self, world: EndpointsStage) -> None:
        self.pods = [obj.to_dict() for obj in world.all(PODS)]
        self.nodes = [obj.to_dict() for obj in world.all(NODES)]
        self.services = {_place(each): each for each in map(_fields, world.all(SERVICES))}
        self.endpoints = {_place(each): each for each in map(_fields, world.all(ENDPOINTS))}
        self.slices = [obj.to_dict() for obj in world.all(ENDPOINT_SLICES)]

    @property
    def places(self) -> set[Place]:
        """Return the namespace and name of all Services and Endpoints that are compared."""
        return {*self.services, *self.endpoints, *map(_place_of_service, self.slices)}

    def slices_of(self, place: Place, manager: str) -> list[Fields]:
        return [
            each
            for each in self.slices
            if _place_of_service(each) == place and each["metadata"]["labels"][MANAGED_BY] == manager
        ]

    def check(self, slice_size: int) -> None:
        for place in sorted(self.places):
            self._check_endpoints(place)
            self._check_slices(place, slice_size)
            self._check_mirrors(place)

    def _check_endpoints(self, place: Place) -> None:
        service, found = self.services.get(place), self.endpoints.get(place)
        if service is None:
            by_hand = found is None or "endpoints.kubernetes.io/managed-by" not in _labels(found)
            assert by_hand, f"{place}: Endpoints were left over"
        elif selects(service):
            assert found is not None, f"{place}: there are no Endpoints"
            assert set(said_by_endpoints(found)) == expected_endpoints(service, self.pods), f"{place}: Endpoints"
            headless = {HEADLESS: ""} if service["spec"].get("clusterIP", "None") == "None" else {}
            managed = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
            assert _labels(found) == {**_labels(service), **managed, **headless}, f"{place}: labels of Endpoints"

    def _check_slices(self, place: Place, slice_size: int) -> None:
        service, found = self.services.get(place), self.slices_of(place, KEPT)
        if service is None:
            assert not found, f"{place}: slices were left over"
        if service is None or not selects(service):
            return
        expected = expected_slices(service, self.pods, self.nodes)
        _check_said(place, found, expected)
        assert {each["addressType"] for each in found} == expected.keys(), f"{place}: each family has a slice"
        for each in found:
            assert len(each["endpoints"] or ()) <= slice_size, f"{place}: too much in a slice"
            assert [owner["uid"] for owner in each["metadata"]["ownerReferences"]] == [service["metadata"]["uid"]]
            assert _labels(service).items() <= _labels(each).items(), f"{place}: labels of slices"
        for family, said in expected.items():
            if not said:
                assert sum(each["addressType"] == family for each in found) == 1, f"{place}: one placeholder"

    def _check_mirrors(self, place: Place) -> None:
        service, endpoints = self.services.get(place), self.endpoints.get(place)
        wanted = endpoints if service is not None and "selector" not in service["spec"] else None
        if wanted is not None and _labels(wanted).get("endpointslice.kubernetes.io/skip-mirror") == "true":
            wanted = None
        found = self.slices_of(place, MIRRORED)
        _check_said(place, found, expected_mirrors(wanted))
        for each in found:
            assert wanted is not None
            assert [owner["uid"] for owner in each["metadata"]["ownerReferences"]] == [wanted["metadata"]["uid"]]
            assert _labels(wanted).items() <= _labels(each).items(), f"{place}: labels of mirrors"


def check_end(world: EndpointsStage, slice_size: int) -> None:
    """Check the cluster's state, and check that neither the current process nor a newly started process has work."""
    state = State(world)
    state.check(slice_size)
    settled = world.log.head().revision
    world.nudge(state.services)
    world.settle()
    assert world.written_since(settled) == []
    world.start()
    world.settle()
    # Return slices without a Service: as in Kubernetes, a new process treats them as left over.
    deleted = f"{endpoints.DESCRIPTOR.user} DELETED endpoints"
    left_over = {f"{deleted} {'/'.join(each)}" for each in state.endpoints.keys() - state.services}
    assert set(world.written_since(settled)) <= left_over


def _check_said(place: Place, slices: Iterable[Fields], expected: dict[str, set[ExpectedEndpoint]]) -> None:
    found: Counter[tuple[str, ExpectedEndpoint]] = Counter()
    for each in slices:
        found.update((each["addressType"], said) for said in said_by_slice(each))
    assert set(found) == {(family, each) for family, said in expected.items() for each in said}, f"{place}: slices"
    assert not found or max(found.values()) == 1, f"{place}: an endpoint is in two slices"


def _fields(obj: Any) -> Fields:
    fields: Fields = obj.to_dict()
    return fields


def _place(fields: Fields) -> Place:
    return fields["metadata"]["namespace"], fields["metadata"]["name"]


def _place_of_service(slice_: Fields) -> Place:
    return slice_["metadata"]["namespace"], _labels(slice_)[SERVICE_NAME]


def _labels(fields: Fields) -> dict[str, str]:
    labels: dict[str, str] = fields["metadata"].get("labels") or {}
    return labels
