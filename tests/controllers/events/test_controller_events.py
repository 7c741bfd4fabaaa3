"""Tests of the Events that the controllers of Endpoints and EndpointSlices record."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ctrlmgr.api.core import EndpointAddress, EndpointPort, EndpointSubset, ObjectReference
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import EVENTS
from ctrlmgr.client import LogClient
from ctrlmgr.controllers import endpoints as keeper
from ctrlmgr.controllers import endpointslice, endpointslice_mirroring
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.controllers.endpointslice_mirroring.mirrored_subsets import skipped_addresses
from ctrlmgr.controllers.events.recorder import EventBroadcaster, Recorder, Silent, reference_to
from ctrlmgr.errors import AlreadyExists, Conflict, InternalError, LogUnavailable, NamespaceTerminating
from ctrlmgr.eventlog import Author, EventType, Proposal
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer import EventWindow, Informers
from ctrlmgr.manager import Controller
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.builders import a_namespace, a_pod, a_service, endpoints
from tests.controllers.stage_context import HandContext

MAX_ADDRESSES = endpointslice_mirroring.Options().mirroring_max_endpoints_per_subset
MANY = MAX_ADDRESSES + 7


class RecorderStub(Silent):
    """A recorder that stores its Events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, str]] = []

    def event(self, subject: Object | ObjectReference, type: str, reason: str, message: str, **newer: object) -> None:
        reference = reference_to(subject) if isinstance(subject, Object) else subject
        self.events.append((reference.kind, type, reason, message))


class RefusingClient(LogClient):
    """A client for which every write fails."""

    error: Exception = InternalError("out of luck")

    def for_reconcile(self, cause: Any) -> RefusingClient:
        return self

    def create(self, obj: Object) -> Object:
        raise self.error

    def update(self, obj: Object, subresource: str = "") -> Object:
        raise self.error


TELLING: dict[str, ControllerDescriptor[Any]] = {
    "endpoints": keeper.DESCRIPTOR,
    "slices": endpointslice.DESCRIPTOR,
    "mirroring": endpointslice_mirroring.DESCRIPTOR,
}


def built(
    descriptor: ControllerDescriptor[Any],
    informers: Informers,
    log: MemoryEventLog,
    client: LogClient,
    recorder: Recorder,
    clock: FakeClock,
) -> Controller:
    context = HandContext(
        informers=informers,
        event_log=log,
        clock=clock,
        random=random.Random(1),
        writer=lambda descriptor: client,
        recorded=recorder,
    )
    return descriptor.build(context, descriptor.options())


def recorded_events(teller: str, *there: Object, error: Exception | None = None) -> list[tuple[str, str, str, str]]:
    """Return the Events that a controller records for these objects; if `error` is set, every write of the controller's
    client fails with it.
    """
    clock = FakeClock()
    log = MemoryEventLog(clock=clock, random=random.Random(1))
    for obj in (a_namespace(), *there):
        log.append([Proposal(EventType.ADDED, obj, 0)], author=Author("client"))
    informers = Informers(log, EventWindow(log, clock=clock), clock=clock)
    made = RefusingClient if error is not None else LogClient
    client = made(log, author=Author("controller"), clock=clock, new_uid=lambda: "uid")
    if isinstance(client, RefusingClient) and error is not None:
        client.error = error
    recorder = RecorderStub()
    controller = built(TELLING[teller], informers, log, client, recorder, clock)
    informers.sync()
    controller.start()
    assert controller.process_next(timeout=0)
    return recorder.events


MANUAL = endpoints(subsets=[{"addresses": [{"ip": "203.0.113.7"}], "ports": [{"port": 1}]}])
FAILED = [
    (
        "endpoints",
        [a_service(), a_pod()],
        ("Endpoints", "Warning", "FailedToCreateEndpoint", "Failed to create endpoint for service default/web: "),
    ),
    (
        "endpoints",
        [a_service(), a_pod(), MANUAL],
        ("Endpoints", "Warning", "FailedToUpdateEndpoint", "Failed to update endpoint default/web: "),
    ),
    (
        "slices",
        [a_service(), a_pod()],
        (
            "Service",
            "Warning",
            "FailedToUpdateEndpointSlices",
            "Error updating Endpoint Slices for Service default/web: ",
        ),
    ),
    (
        "mirroring",
        [a_service(selects_nothing=True), MANUAL],
        (
            "Endpoints",
            "Warning",
            "FailedToUpdateEndpointSlices",
            "Error updating Endpoint Slices for Endpoints default/web: ",
        ),
    ),
]


@pytest.mark.parametrize(("teller", "there", "event"), FAILED, ids=["create", "update", "slices", "mirrors"])
def test_a_refused_write_emits_an_event(teller: str, there: list[Object], event: tuple[str, str, str, str]) -> None:
    error = InternalError("out of luck")
    assert recorded_events(teller, *there, error=error) == [(*event[:3], event[3] + "out of luck")]
    assert recorded_events(teller, *there) == []


@pytest.mark.parametrize("error", [Conflict(), AlreadyExists(), NamespaceTerminating(), LogUnavailable()])
@pytest.mark.parametrize("teller", ["endpoints", "slices"])
def test_conflicts_and_log_outages_emit_no_event(teller: str, error: Exception) -> None:
    assert recorded_events(teller, a_service(), a_pod(), error=error) == []


def addresses(number: int) -> list[dict[str, str]]:
    return [{"ip": f"10.{each >> 16}.{each >> 8 & 255}.{each & 255}"} for each in range(number)]


def test_unmirrored_addresses_emit_an_event() -> None:
    subset = {"addresses": [{"ip": "!"}, *addresses(MANY)], "ports": [{"port": 1}]}
    assert recorded_events("mirroring", a_service(selects_nothing=True), endpoints(subsets=[subset])) == [
        ("Endpoints", "Warning", "InvalidIPAddress", "Skipped 1 invalid IP addresses when mirroring to EndpointSlices"),
        (
            "Endpoints",
            "Warning",
            "TooManyAddressesToMirror",
            "A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 8 addresses were skipped",
        ),
    ]


def a_subset(ready: int = 0, not_ready: int = 0, wrong: int = 0, port: int = 1) -> EndpointSubset:
    found = [EndpointAddress(each["ip"]) for each in addresses(ready + not_ready)]
    invalid = [EndpointAddress(f"!{number}") for number in range(wrong)]
    return EndpointSubset([*invalid, *found[:ready]], found[ready:], [EndpointPort("", port, "TCP")])


@pytest.mark.parametrize(
    ("subsets", "skipped"),
    [
        ([], (0, 0)),
        ([a_subset(MAX_ADDRESSES)], (0, 0)),
        ([a_subset(MAX_ADDRESSES, 3)], (3, 0)),
        ([a_subset(5, wrong=2)], (2, 2)),
        ([a_subset(MAX_ADDRESSES, wrong=2)], (2, 2)),
        ([a_subset(MAX_ADDRESSES + 1, wrong=2)], (3, 2)),
        ([a_subset(MAX_ADDRESSES), a_subset(0, 7, port=2)], (0, 0)),
        ([a_subset(MAX_ADDRESSES), EndpointSubset([EndpointAddress("2001:db8::1")], None, a_subset().ports)], (1, 0)),
    ],
)
def test_the_event_counts_unmirrored_addresses(subsets: list[EndpointSubset], skipped: tuple[int, int]) -> None:
    assert skipped_addresses(subsets, MAX_ADDRESSES) == skipped


def test_a_reported_message_becomes_an_event() -> None:
    clock = FakeClock()
    log = MemoryEventLog(clock=clock, random=random.Random(1))
    broadcaster = EventBroadcaster(clock=clock, random=random.Random(1))
    client = LogClient(log, author=Author("controller"), clock=clock, new_uid=lambda: "uid")
    informers = Informers(log, EventWindow(log, clock=clock), clock=clock)
    subset = {"addresses": addresses(MANY), "ports": [{"port": 1}]}
    for obj in (a_namespace(), a_service(selects_nothing=True), endpoints(subsets=[subset])):
        log.append([Proposal(EventType.ADDED, obj, 0)], author=Author("client"))
    recorder = broadcaster.recorder("tested", client)
    controller = built(endpointslice_mirroring.DESCRIPTOR, informers, log, client, recorder, clock)
    informers.sync()
    assert controller.process_next(timeout=0)
    broadcaster.flush()
    [event] = [each.to_dict() for each in log.snapshot(EVENTS).objects]
    assert (event["involvedObject"]["kind"], event["reason"]) == ("Endpoints", "TooManyAddressesToMirror")
    assert event["source"] == {"component": "tested"}
