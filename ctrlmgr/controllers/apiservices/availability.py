"""Decides whether the group version of an APIService is available.

Source: kube-aggregator `pkg/controllers/status/remote/remote_available_controller.go` and
`pkg/apis/apiregistration/v1/helper`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.engine.calls.call import Reply
from ctrlmgr.engine.calls.remote_services import RemoteService
from ctrlmgr.golang.go_text import quote

AVAILABLE: Final = "Available"


class Availability(NamedTuple):
    """The condition Available of an APIService."""

    status: str
    reason: str
    message: str

    @property
    def is_true(self) -> bool:
        """Whether the group version of the APIService is available."""
        return self.status == "True"


LOCAL: Final = Availability("True", "Local", "Local APIServices are always available")
PASSED: Final = Availability("True", "Passed", "all checks passed")


class _Port(msgspec.Struct, frozen=True):
    name: str = ""
    port: int = 0


class _ServiceSpec(msgspec.Struct, frozen=True):
    type: str = "ClusterIP"
    ports: list[_Port] | None = None


class _Service(msgspec.Struct, frozen=True):
    spec: _ServiceSpec = _ServiceSpec()


class _SlicePort(msgspec.Struct, frozen=True):
    name: str | None = None
    port: int | None = None


class _Conditions(msgspec.Struct, frozen=True):
    ready: bool | None = None


class _Endpoint(msgspec.Struct, frozen=True):
    conditions: _Conditions | None = None

    @property
    def is_ready(self) -> bool:
        return self.conditions is None or self.conditions.ready is not False


class _Slice(msgspec.Struct, frozen=True):
    ports: list[_SlicePort] | None = None
    endpoints: list[_Endpoint] | None = None


def unmet(remote: RemoteService, service: Object | None, slices: Iterable[Object]) -> Availability | None:
    """Return the reason why no request can be sent to an extension server; None if requests can be sent.

    `slices` are the Service's EndpointSlices.
    """
    named = f"service/{remote.service} in {quote(remote.namespace)}"
    if service is None:
        return Availability("False", "ServiceNotFound", f"{named} is not present")
    spec = service.view(_Service).spec
    if spec.type != "ClusterIP":
        return None
    port = next((each for each in spec.ports or () if each.port == remote.port), None)
    if port is None:
        return Availability("False", "ServicePortError", f"{named} is not listening on port {remote.port}")
    found = [each.view(_Slice) for each in slices]
    if not found:
        return Availability("False", "EndpointsNotFound", f"cannot find endpointslices for {named}")
    if not any(_has_endpoint(each, port.name) for each in found):
        words = f"endpointslices for {named} have no addresses with port name {quote(port.name)}"
        return Availability("False", "MissingEndpoints", words)
    return None


def _has_endpoint(found: _Slice, port_name: str) -> bool:
    listens = any(each.name == port_name and each.port is not None for each in found.ports or ())
    return listens and any(each.is_ready for each in found.endpoints or ())


def failing(problem: str) -> Availability:
    """Return the condition Available for a server whose discovery check failed because of `problem`."""
    return Availability("False", "FailedDiscoveryCheck", problem)


def problem_of(url: str, reply: Reply) -> str:
    """Return the reason why a reply fails the discovery check; empty if the reply passes it."""
    if reply.problem:
        waited = " (Client.Timeout exceeded while awaiting headers)" if "deadline" in reply.problem else ""
        return f"failing or missing response from {url}: Get {quote(url)}: {reply.problem}{waited}"
    if 200 <= reply.code < 300:
        return ""
    return f"failing or missing response from {url}: bad status from {url}: {reply.code}"


def is_available(service: Object) -> bool:
    """Return whether the stored condition of an APIService says that its version is available."""
    conditions = (service.to_dict().get("status") or {}).get("conditions") or ()
    return any((each.get("type"), each.get("status")) == (AVAILABLE, "True") for each in conditions)


def with_availability(service: Object, found: Availability, now: str) -> Object | None:
    """Return an APIService with the condition `found`; None if the APIService already has the condition.

    If the condition's status changes, `now` becomes the transition time.
    """
    fields = service.to_dict()
    conditions: Sequence[Mapping[str, Any]] = (fields.get("status") or {}).get("conditions") or ()
    before = next((each for each in conditions if each.get("type") == AVAILABLE), None)
    since = now if before is None or before.get("status") != found.status else before.get("lastTransitionTime", now)
    after = {
        "lastTransitionTime": since,
        "message": found.message,
        "reason": found.reason,
        "status": found.status,
        "type": AVAILABLE,
    }
    if before == after:
        return None
    kept = [after if each is before else each for each in conditions]
    status = {**(fields.get("status") or {}), "conditions": kept if before is not None else [*kept, after]}
    return Object.from_dict({**fields, "status": status}).at(service.revision)
