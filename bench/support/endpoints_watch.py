"""Watches Endpoints and EndpointSlices over TLS, in its own process, and measures when they are complete, and delays.

`python -m bench.support.endpoints_watch` reads a `Plan` as JSON from its standard input, prints `ready` once its
watches are connected, performs the plan, and prints its observations as JSON: a `Completion` or `Flips`.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from collections.abc import Callable, Sequence

import msgspec
import uvloop


class Plan(msgspec.Struct, frozen=True):
    """The plan: wait until each of `services` Services has `pods` ready addresses, or send the patches in `flips`.

    `endpoints` and `slices` are whole HTTP requests that start a watch. Each request in `flips` changes whether a pod
    is ready; the Endpoints with the corresponding name in `names` show the change. `first` is a request that is sent,
    and whose response is received, before the first change.
    """

    host: str
    port: int
    authority: str
    endpoints: str
    slices: str
    services: int = 0
    pods: int = 0
    seconds: float = 600.0
    flips: Sequence[str] = ()
    names: Sequence[str] = ()
    first: str = ""


class Completion(msgspec.Struct, frozen=True):
    """The times when the last Endpoints object and the last slice were complete, and the numbers of writes.

    Times are in seconds of the monotonic clock.
    """

    at: float
    endpoints_writes: int
    slices_writes: int


class Flips(msgspec.Struct, frozen=True):
    """The milliseconds from sending each patch to the patch's response, and to the watch event of the Endpoints."""

    patches: Sequence[float]
    events: Sequence[float]


class _Meta(msgspec.Struct):
    name: str
    labels: dict[str, str] = {}


class _Subset(msgspec.Struct):
    addresses: list[msgspec.Raw] = []


class _Conditions(msgspec.Struct):
    ready: bool = False


class _Endpoint(msgspec.Struct):
    conditions: _Conditions


class _Object(msgspec.Struct):
    metadata: _Meta
    subsets: list[_Subset] | None = None
    endpoints: list[_Endpoint] | None = None


class _Event(msgspec.Struct):
    type: str
    object: _Object


_decode = msgspec.json.Decoder(_Event).decode


class Stream(asyncio.Protocol):
    """A connection that watches a collection; it calls a function with every event."""

    def __init__(self, on_event: Callable[[_Event], None]) -> None:
        """Create a connection that passes events to `on_event`."""
        self._on_event = on_event
        self._rest = b""
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        """Process received data; each event is a line, and the frame of each HTTP chunk is a line, too."""
        if not self.ready.done():
            assert data.startswith(b"HTTP/1.1 200"), data[:500]
            self.ready.set_result(None)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"{"):
                self._on_event(_decode(line))


class _Answers(asyncio.Protocol):
    """A connection that is used for one request at a time."""

    def __init__(self) -> None:
        self.answered: asyncio.Future[float] | None = None
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, found, body = self._data.partition(b"\r\n\r\n")
        if not found or self.answered is None:
            return
        assert head.startswith(b"HTTP/1.1 200"), self._data[:500]
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) >= length:
            self._data = b""
            self.answered.set_result(time.perf_counter())


class _Watched:
    """The state of all Endpoints and slices after the events so far."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._incomplete = {f"{kind} {number}" for kind in ("Endpoints", "slices") for number in range(plan.services)}
        self._ready: dict[str, dict[str, int]] = {}
        self.writes = [0, 0]
        self.complete: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self.awaited = ""
        self.changed: asyncio.Future[float] | None = None

    def on_endpoints(self, event: _Event) -> None:
        self.writes[0] += 1
        if self.changed is not None and not self.changed.done() and event.object.metadata.name == self.awaited:
            self.changed.set_result(time.perf_counter())
        ready = sum(len(subset.addresses) for subset in event.object.subsets or ())
        self._note("Endpoints", event.object.metadata.name, ready)

    def on_slice(self, event: _Event) -> None:
        self.writes[1] += 1
        service = event.object.metadata.labels["kubernetes.io/service-name"]
        slices = self._ready.setdefault(service, {})
        slices[event.object.metadata.name] = sum(each.conditions.ready for each in event.object.endpoints or ())
        self._note("slices", service, sum(slices.values()))

    def _note(self, kind: str, service: str, ready: int) -> None:
        if ready == self._plan.pods:
            self._incomplete.discard(f"{kind} {service.rpartition('-')[2]}")
            if not self._incomplete and not self.complete.done():
                self.complete.set_result(time.monotonic())


async def _run(plan: Plan) -> Completion | Flips:
    context = ssl.create_default_context(cafile=plan.authority)
    loop = asyncio.get_running_loop()
    watched = _Watched(plan)
    for request, on_event in ((plan.endpoints, watched.on_endpoints), (plan.slices, watched.on_slice)):
        transport, stream = await loop.create_connection(
            lambda on_event=on_event: Stream(on_event),  # type: ignore[misc]  # binds the variable
            plan.host,
            plan.port,
            ssl=context,
        )
        transport.write(request.encode())
        await stream.ready
    print("ready", flush=True)
    if plan.flips:
        transport, answers = await loop.create_connection(_Answers, plan.host, plan.port, ssl=context)
        if plan.first:
            answers.answered = loop.create_future()
            transport.write(plan.first.encode())
            await answers.answered
        return await _flip(plan, transport, answers, watched)
    at = await asyncio.wait_for(watched.complete, plan.seconds)
    return Completion(at, *watched.writes)


async def _flip(plan: Plan, transport: asyncio.Transport, answers: _Answers, watched: _Watched) -> Flips:
    """Send patches one by one; each patch waits for the response to the previous patch and for that patch's event."""
    loop = asyncio.get_running_loop()
    patches, events = [], []
    for request, watched.awaited in zip(plan.flips, plan.names, strict=True):
        answers.answered, watched.changed = loop.create_future(), loop.create_future()
        began = time.perf_counter()
        transport.write(request.encode())
        patches.append((await answers.answered - began) * 1e3)
        events.append((await asyncio.wait_for(watched.changed, 10.0) - began) * 1e3)
        await asyncio.sleep(0.005)  # the pause separates two changes, so that the slices are written, too
    return Flips(patches, events)


def main() -> None:
    """Read a plan from standard input and perform it."""
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=Plan)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        seen = runner.run(_run(plan))
    print(msgspec.json.encode(seen).decode(), flush=True)


if __name__ == "__main__":
    main()
