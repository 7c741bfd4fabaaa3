"""A small kubelet: the kubelet's HTTPS endpoints for containers; the containers are processes of this machine.

The kubelet requires a client certificate that the control plane's authority has signed, as a kubelet with x509
authentication does. WebSocket frames are those of wsproto. All containers have the log file `log`, `exec` runs a
program of this machine, and `attach` runs a shell.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ctrlmgr import threads
from ctrlmgr.clock import SystemClock
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.http_server import HttpServer
from tests.e2e.kubelet.channels import PortForward, SpdyCommand, WebSocketChannels, WebSocketPorts, spdy_answer
from tests.e2e.kubelet.terminal import run_in_terminal
from tests.e2e.serving import DEADLINE

Query = dict[str, list[str]]


class SmallKubelet:
    """The endpoints of a kubelet, and the requests that the kubelet has received."""

    def __init__(self, pki: Path, folder: Path) -> None:
        """Serve with a certificate of the authority in `pki`, which is a folder of the control plane."""
        self.log = b""
        """The content of every container's log."""
        self.asked: list[str] = []
        """The targets (paths with queries) of all received requests."""
        self.headers: list[dict[bytes, bytes]] = []
        self.certificates: list[bool] = []
        """Whether the client had a certificate, for each connection."""
        self.refuses: tuple[int, bytes] | None = None
        """The status code and body with which the kubelet refuses all requests, if set."""
        self.commands = 0
        """The number of commands that are running."""
        self._server = HttpServer(self, ("0.0.0.0", 0), clock=SystemClock(), tls=_context(pki, folder))
        self._stop = threading.Event()
        self.port = self._server.port

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Serve while the block runs."""
        thread = threads.start("small kubelet", lambda: self._server.run(self._stop))
        try:
            yield
        finally:
            self._stop.set()
            thread.join(DEADLINE)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Do nothing between requests."""
        yield

    async def drain(self) -> None:
        """Do nothing, because clients end their streams."""

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request."""
        query = parse_qs(exchange.query.decode(), keep_blank_values=True)
        self.certificates.append(bool(exchange.certificates))
        self.asked.append(f"{exchange.method} {exchange.path.decode()}?{exchange.query.decode()}")
        self.headers.append(dict(exchange.headers))
        if self.refuses is not None:
            exchange.answer(self.refuses[0], [(b"content-type", b"text/plain")], self.refuses[1])
            return
        match exchange.path.decode().split("/"):
            case ["", "containerLogs", _, _, _]:
                await self._log(exchange, query)
            case ["", "exec", _, _, _]:
                await self._exec(exchange, query)
            case ["", "attach", _, _, _]:
                await self._exec(exchange, {**query, "command": ["sh"]})
            case ["", "healthz"]:
                exchange.answer(200, [(b"content-type", b"text/plain")], b"ok")
            case ["", "logs", ""]:
                exchange.answer(200, [(b"content-type", b"text/html")], b'<pre><a href="/logs/a.log">a.log</a></pre>')
            case ["", "portForward", _, _] if dict(exchange.headers).get(b"upgrade", b"").lower() == b"websocket":
                WebSocketPorts.accept(exchange, [int(each) for each in query["port"][0].split(",")])
            case ["", "portForward", _, _]:
                PortForward(exchange.switch(spdy_answer("portforward.k8s.io")))
            case _:
                exchange.answer(404, [], b"404 page not found")

    async def _log(self, exchange: Exchange, query: Query) -> None:
        stream = exchange.begin(200, [(b"content-type", b"text/plain")])
        tail = int(query["tailLines"][0]) if "tailLines" in query else None
        lines = self.log.splitlines(keepends=True)
        body = b"".join(lines[len(lines) - tail :] if tail is not None else lines)
        await stream.send_all((body[at : at + 65536] for at in range(0, len(body), 65536)), DEADLINE)
        if "follow" in query:
            await self._follow(stream)
        stream.end()

    async def _follow(self, stream: Any) -> None:
        for number in range(3):
            await asyncio.sleep(0.05)
            stream.send(b"followed %d\n" % number)

    async def _exec(self, exchange: Exchange, query: Query) -> None:
        channels: WebSocketChannels | SpdyCommand | None
        if dict(exchange.headers).get(b"upgrade", b"").lower() == b"spdy/3.1":
            channels = SpdyCommand.accept(exchange, _wanted(query))
        else:
            channels = WebSocketChannels.accept(exchange)
        if channels is None:
            exchange.answer(400, [], b"you must specify at least 1 of stdin, stdout, stderr")
            return
        self.commands += 1
        try:
            await _execute(query, channels)
        finally:
            self.commands -= 1


async def _execute(query: Query, channels: WebSocketChannels | SpdyCommand) -> None:
    if "tty" in query:
        code = await run_in_terminal(query["command"], channels)
        channels.send(3, json.dumps(_status(code)).encode())
        channels.finish()
        return
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*query["command"], stdin=pipe, stdout=pipe, stderr=pipe)
    await asyncio.gather(
        _feed(process, channels, "input" in query),
        _pump(process.stdout, channels, 1),
        _pump(process.stderr, channels, 2),
    )
    channels.send(3, json.dumps(_status(await process.wait())).encode())
    channels.finish()


def _wanted(query: Query) -> list[int]:
    """Return the channels that a client opens."""
    names = {"input": 0, "output": 1, "error": 2, "tty": 4}
    return [3, *(channel for name, channel in names.items() if name in query)]


async def _feed(
    process: asyncio.subprocess.Process, channels: WebSocketChannels | SpdyCommand, has_input: bool
) -> None:
    assert process.stdin is not None
    while has_input and (data := await channels.read()):
        process.stdin.write(data)
        try:
            await process.stdin.drain()
        except ConnectionError:
            break
    process.stdin.close()


async def _pump(output: asyncio.StreamReader | None, channels: WebSocketChannels | SpdyCommand, channel: int) -> None:
    assert output is not None
    while data := await output.read(32768):
        channels.send(channel, data)
        await channels.drain()
    if channel == 1:
        channels.stop_reading()


def _status(code: int) -> dict[str, Any]:
    if not code:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _context(pki: Path, folder: Path) -> ssl.SSLContext:
    """Return a TLS context with a certificate for 127.0.0.1, which requires a client certificate of
    the same authority.
    """
    authority = x509.load_pem_x509_certificate((pki / "ca.crt").read_bytes())
    signer = serialization.load_pem_private_key((pki / "ca.key").read_bytes(), password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "system:node:real")]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    file = folder / "kubelet.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    context.load_verify_locations(pki / "ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    return context
