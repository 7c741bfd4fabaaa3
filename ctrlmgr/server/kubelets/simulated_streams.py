"""Serves exec, attach and portforward for pods on simulated nodes, with the protocols of a kubelet.

Guarantees:
- The server sends output at the times that the simulation determines, at the speed of the simulation.
- The server writes output only while the client reads. All streams end when the server stops.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.pod_log_options import LogOptions
from ctrlmgr.errors import BadRequest, Forbidden
from ctrlmgr.http.tunnel import Side
from ctrlmgr.http.websocket import WebSocketSide, accepting, offered_protocols
from ctrlmgr.server.connect_subresources import ContainerLogReader, Execution, Output, Runtime
from ctrlmgr.server.kubelets.channels import (
    SPDY_PROTOCOLS,
    STATUS,
    STDERR,
    STDIN,
    STDOUT,
    WEBSOCKET_PROTOCOLS,
    Channels,
    SpdyChannels,
    WebSocketChannels,
    wanted_channels,
)
from ctrlmgr.server.kubelets.kubelet_urls import container_of
from ctrlmgr.server.kubelets.shares import TunnelShares
from ctrlmgr.server.kubelets.simulated_ports import SimulatedPorts
from ctrlmgr.server.kubelets.translation import SUCCESS
from ctrlmgr.server.request import Request

FORWARD: Final = "portforward.k8s.io"
_TUNNELLED: Final = "SPDY/3.1+"
_LOOK: Final = 0.25
"""Maximum seconds between two reads of the pod while a client is attached to its container."""


class SimulatedStreams:
    """Serves requests for streams of simulated pods. Used on the event loop's thread only."""

    def __init__(self, runtime: Runtime) -> None:
        """Create an instance that runs commands with `runtime`."""
        self._runtime = runtime
        self._shares = TunnelShares()
        self._open: set[SimulatedCommand | SimulatedPorts] = set()

    def close(self) -> None:
        """End all streams of simulated pods."""
        for each in list(self._open):
            each.abort()

    async def stream(self, request: Request, pod: Object, node: Object, part: str, options: Unstructured) -> None:
        """Serve exec, attach or portforward (`part`); raises `ApiError` if the request is invalid."""
        if part == "portforward":
            await self._forward(request, pod)
            return
        container = container_of(pod, str(options.get("container", "")))
        executions = self._runtime.executions
        execution = (executions.exec if part == "exec" else executions.attach)(pod, node, container, options)
        reading = None
        if execution is None:
            reading = self._runtime.logs(pod, node, LogOptions(container, follow=True, tail_lines=0))
        flags = [flag for flag in ("stdin", "stdout", "stderr", "tty") if options.get(flag)]
        with self._shares.held(request.user):
            channels, is_plain = accept(request, wanted_channels(flags))
            running = SimulatedCommand(channels, self._runtime.speed, is_plain=is_plain)
            if execution is not None:
                running.start(execution, has_input="stdin" in flags)
            elif reading is not None:
                running.follow(reading, pod, node)
            await self._run(running)

    async def _forward(self, request: Request, pod: Object) -> None:
        protocol = _TUNNELLED + FORWARD
        with self._shares.held(request.user):
            side: Side
            if _is_websocket(request):
                if protocol not in offered_protocols(request.raw_headers):
                    raise BadRequest(f"unable to upgrade: the simulation forwards ports with {protocol} only")
                side = WebSocketSide(request.switch(accepting(request.header(b"sec-websocket-key"), protocol)))
            else:
                side = _accept_spdy(request, (FORWARD,))
            await self._run(SimulatedPorts(side, pod, self._runtime.executions))

    async def _run(self, running: SimulatedCommand | SimulatedPorts) -> None:
        self._open.add(running)
        try:
            await running.over
        finally:
            self._open.discard(running)
            running.abort()


class SimulatedCommand:
    """Connects a command in a simulated container to the channels of its client."""

    def __init__(self, channels: Channels, speed: float, *, is_plain: bool) -> None:
        """Create a stream that writes to `channels`.

        `is_plain` says whether the status is plain text, as in protocol versions before 4.
        """
        loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = loop.create_future()
        """A future that ends when the connection is closed."""
        self._loop = loop
        self._channels = channels
        self._speed = speed
        self._is_plain = is_plain
        self._began = loop.time()
        self._execution: Execution | None = None
        self._output: deque[Output] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, execution: Execution, *, has_input: bool) -> None:
        """Start a command; if the request has no input, the command's input is empty."""
        self._execution = execution
        self._channels.open(self)
        self._take(execution.receive(b"", 0.0) if has_input else execution.end(0.0))

    def follow(self, reading: ContainerLogReader, pod: Object, node: Object) -> None:
        """Write to the client the lines that the container writes to its log from now on."""
        self._channels.open(self)
        self._read(reading, pod, node)

    def abort(self) -> None:
        """Close the connection at once."""
        self._channels.abort()

    # The channels call the following methods.

    def receive(self, channel: int, data: bytes) -> None:
        """Pass input to the command."""
        if channel == STDIN and self._execution is not None:
            self._take(self._execution.receive(data, self._now))

    def end_of(self, channel: int) -> None:
        """Handle the end of the input."""
        if channel == STDIN and self._execution is not None:
            self._take(self._execution.end(self._now))

    def resume(self) -> None:
        """Continue to write output, because the client accepts more bytes."""
        self._write()

    def end(self) -> None:
        """Handle the client's disconnection."""
        if self._timer is not None:
            self._timer.cancel()
        if not self.over.done():
            self.over.set_result(None)

    @property
    def _now(self) -> float:
        """Simulated seconds since the start of the command."""
        return (self._loop.time() - self._began) * self._speed

    def _take(self, output: Sequence[Output]) -> None:
        self._output.extend(output)
        self._write()

    def _write(self) -> None:
        """Write the output that is due; after the command has ended, write its status."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._output and self._output[0].at <= self._now and not self._channels.is_paused:
            piece = self._output.popleft()
            self._channels.write(STDERR if piece.is_error else STDOUT, piece.data)
        execution = self._execution
        if execution is None or self._channels.is_paused or self.over.done():
            return
        if self._output:
            self._later(self._output[0].at)
        elif execution.code is not None and execution.ends_at > self._now:
            self._later(execution.ends_at)
        elif execution.code is not None:
            self._tell(execution.code)

    def _later(self, at: float) -> None:
        self._timer = self._loop.call_later((at - self._now) / self._speed, self._write)

    def _read(self, reading: ContainerLogReader, pod: Object, node: Object) -> None:
        piece = reading.more(pod, node)
        if piece.data:
            self._channels.write(STDOUT, piece.data)
        if piece.wait is None:
            self._tell(0)
        elif not self.over.done():
            self._timer = self._loop.call_later(min(piece.wait, _LOOK), self._read, reading, pod, node)

    def _tell(self, code: int) -> None:
        """Send the status of the command, and close the connection."""
        self._execution = None
        if not self._is_plain:
            self._channels.write(STATUS, exit_status(code))
        elif code:
            self._channels.write(STATUS, f"command terminated with non-zero exit code: exit status {code}".encode())
        for channel in (STDOUT, STDERR, STATUS):
            self._channels.end_of(channel)
        self._channels.finish()


def exit_status(code: int) -> bytes:
    """Return the status of a command with this exit code, in the form that a kubelet sends."""
    if not code:
        return SUCCESS
    return msgspec.json.encode(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: exit status {code}",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
        }
    )


def accept(request: Request, requested: Sequence[int]) -> tuple[Channels, bool]:
    """Switch to the client's protocol; return its channels, and whether the status is plain text.

    Raises `BadRequest` if the request is not an upgrade request, and `Forbidden` if client and server have no protocol
    in common.
    """
    if not request.upgrades:
        raise BadRequest("Upgrade request required")
    if not _is_websocket(request):
        return SpdyChannels(_accept_spdy(request, SPDY_PROTOCOLS), wanted=requested, is_client=False), False
    offered = offered_protocols(request.raw_headers)
    chosen = next((each for each in offered if each in WEBSOCKET_PROTOCOLS), "")
    if offered and not chosen:
        raise Forbidden(f"unable to upgrade: the client offers {offered}, the server accepts {WEBSOCKET_PROTOCOLS}")
    side = request.switch(accepting(request.header(b"sec-websocket-key"), chosen))
    channels = WebSocketChannels(side, chosen)
    return channels, not chosen.startswith(("v4.", "v5."))


def _is_websocket(request: Request) -> bool:
    return request.header(b"upgrade").lower() == b"websocket"


def _accept_spdy(request: Request, accepted: Sequence[str]) -> Side:
    """Switch to SPDY with a protocol that both client and server support (`httpstream.Handshake`)."""
    if request.header(b"upgrade").lower() != b"spdy/3.1":
        raise BadRequest("unable to upgrade: missing upgrade headers in request")
    lines = [value for name, value in request.raw_headers if name == b"x-stream-protocol-version"]
    offered = [each.strip() for line in lines for each in line.decode("latin-1").split(",")]
    chosen = next((each for each in accepted if each in offered), None)
    if chosen is None:
        raise Forbidden(
            f"unable to upgrade: unable to negotiate protocol: client supports {offered}, server accepts {[*accepted]}"
        )
    return request.switch(
        [(b"Upgrade", b"SPDY/3.1"), (b"Connection", b"Upgrade"), (b"X-Stream-Protocol-Version", chosen.encode())]
    )
