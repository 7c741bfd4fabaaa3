"""Callers that create, change and delete Services with few names; each caller sends requests to one server."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.robustness.allocation.truth import ReturnedService, held_by
from tests.robustness.serving import ConfiguredServer
from tests.robustness.wire import Connection, ConnectionLost, RequestNotSent, Response, path_of

NAMESPACE = "allocations"
RANGE = "10.99.0.0/24"
PORTS = "30000-30199"
FULL = {
    "Internal error occurred: failed to allocate a serviceIP: range is full",
    "Internal error occurred: failed to allocate a nodePort: range is full",
    "Internal error occurred: failed to allocate a HealthCheck NodePort 0: range is full",
}
"""Messages with which Kubernetes refuses allocations (`pkg/registry/core/service/storage/alloc.go`)."""

_REFUSED = ("provided IP is already allocated", "provided port is already allocated", "may not be set to 'None'")
"""Errors that are allowed for a request of a certain value, or for a change of a headless Service."""
_NAMES = 400
"""Names of Services; there are more names than addresses, so that callers find a full range, and conflict with each
other.
"""
_PAUSE = 0.05


class ReceivedResponses:
    """The responses that callers received."""

    def __init__(self) -> None:
        self.answers = Counter[str]()
        self.granted: list[ReturnedService] = []
        self.wrong: list[str] = []
        self.slowest_refusal = 0.0
        """The durations in seconds of refusals because of a full range; they are only measured while no server is
        killed.
        """

    def take(self, verb: str, answer: Response, seconds: float) -> None:
        """Count a response, and check it."""
        self.answers[f"{verb} {answer.code}"] += 1
        fields = answer.fields
        if answer.code in (200, 201) and verb != "delete":
            metadata = fields["metadata"]
            self.granted.append(ReturnedService(int(metadata["resourceVersion"]), metadata["name"], held_by(fields)))
        elif answer.code == 500 and fields["message"] in FULL:
            self.slowest_refusal = max(self.slowest_refusal, seconds)
        elif not _is_expected(answer.code, fields):
            self.wrong.append(f"{verb}: {answer.code} {fields}")


def _is_expected(code: int, fields: Any) -> bool:
    if code == 422:
        return any(refused in fields["message"] for refused in _REFUSED)
    return code in (200, 404, 409, 429)


class Change(NamedTuple):
    """A change that a caller requests: its type, the Service, and the requested value."""

    verb: str
    name: str
    body: Any = None


class Caller:
    """A caller, which runs until it is stopped."""

    def __init__(self, server: ConfiguredServer, tally: ReceivedResponses, seed: str) -> None:
        self._connection = Connection(server.site)
        self._tally = tally
        self._random = random.Random(seed)

    async def run(self, stopped: asyncio.Event) -> None:
        """Request changes one after the other until the caller is stopped."""
        while not stopped.is_set():
            await self.ask(self._next())
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        await asyncio.sleep(0)  # the time in which the loop releases it

    async def ask(self, change: Change) -> Response | None:
        """Request one change; return None if the result of the request is unknown."""
        method, media_type = _METHODS[change.verb]
        path = path_of("services", NAMESPACE, "" if change.verb == "create" else change.name)
        began = time.monotonic()
        try:
            answer = await self._connection.request(method, path, change.body, content_type=media_type)
        except (RequestNotSent, ConnectionLost) as error:
            self._tally.answers[f"{change.verb} {type(error).__name__}"] += 1
            await asyncio.sleep(_PAUSE)
            return None
        self._tally.take(change.verb, answer, time.monotonic() - began)
        return answer

    def _next(self) -> Change:
        draw = self._random
        name = f"service-{draw.randrange(_NAMES)}"
        verb = draw.choices(("create", "change", "delete"), (6, 3, 2))[0]
        if verb == "create":
            return creation(name, _spec(draw))
        return Change(verb, name, {"spec": _change(draw)} if verb == "change" else None)


_METHODS = {
    "create": ("POST", ""),
    "change": ("PATCH", "application/merge-patch+json"),
    "delete": ("DELETE", ""),
}


def creation(name: str, spec: Any) -> Change:
    """Return a request that creates a Service."""
    return Change("create", name, {"kind": "Service", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec})


_ONE = [{"name": "a", "port": 80}]
_TWO = [*_ONE, {"name": "b", "port": 81}]


def one_port(**fields: Any) -> Any:
    """Return the spec of a Service with one port."""
    return {"ports": _ONE, **fields}


def _spec(draw: random.Random) -> Any:
    choices: Sequence[Any] = (
        one_port(),
        one_port(),
        one_port(type="NodePort"),
        {"ports": _TWO, "type": "NodePort"},
        one_port(type="LoadBalancer", externalTrafficPolicy="Local"),
        one_port(clusterIP=f"10.99.0.{draw.randrange(1, 255)}"),
        {"ports": [{"name": "a", "port": 80, "nodePort": 30000 + draw.randrange(200)}], "type": "NodePort"},
        one_port(clusterIP="None"),
        one_port(type="ExternalName", externalName="example.com"),
    )
    return draw.choice(choices)


def _change(draw: random.Random) -> Any:
    return draw.choice(
        (
            {"type": "ClusterIP", "externalName": None, "externalTrafficPolicy": None},
            {"type": "NodePort", "externalName": None},
            {"type": "LoadBalancer", "externalName": None, "externalTrafficPolicy": "Local"},
            {"type": "ExternalName", "externalName": "example.com", "externalTrafficPolicy": None},
            {"type": "NodePort", "externalName": None, "ports": _TWO},
        )
    )
