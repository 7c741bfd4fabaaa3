"""An extension API server for tests, with real TLS and programmable behaviour."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ctrlmgr import threads

Behaviour = Callable[[str, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]]
"""A function that responds to a request, given the request's header; it returns whether the connection stays open."""


class Extension:
    """A running extension API server: its port, its certificate authority, and the requests that it has received."""

    def __init__(self, ca: bytes) -> None:
        self.ca = ca
        self.port = 0
        self.heads: list[str] = []
        self.shown: list[str] = []
        """The common names of the client certificates on the server's connections."""
        self.behaviour: Behaviour = echoes


def certificate_for(name: str, folder: Path) -> tuple[bytes, Path]:
    """Create a self-signed certificate for a host name; return the certificate as PEM, and a file with the certificate
    and its private key.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / f"{name}.pem"
    file.write_bytes(pem + secret)
    return pem, file


def answer(code: str, body: bytes, *lines: str) -> bytes:
    head = "".join(f"{line}\r\n" for line in lines)
    return f"HTTP/1.1 {code}\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def echoes(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Respond with the lines of the request header, as JSON."""
    writer.write(answer("200 OK", msgspec.json.encode(head.strip().split("\r\n")), "content-type: application/json"))
    return True


@contextmanager
def extension(folder: Path, front_proxy_ca: bytes, name: str = "ext.default.svc") -> Iterator[Extension]:
    """Run an extension API server with a certificate for `name`, which requests the front proxy's
    client certificate.
    """
    ca, file = certificate_for(name, folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=front_proxy_ca.decode())
    made = Extension(ca)
    ready, stop = threading.Event(), threading.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peercert") or {}
        made.shown += [value for names in peer.get("subject", ()) for key, value in names if key == "commonName"]
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                made.heads.append(head)
                if not await made.behaviour(head, reader, writer):
                    break
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        made.port = server.sockets[0].getsockname()[1]
        ready.set()
        await asyncio.to_thread(stop.wait)
        server.close()

    thread = threads.start("extension server", lambda: asyncio.run(run()))
    ready.wait(10)
    try:
        yield made
    finally:
        stop.set()
        thread.join(10)
