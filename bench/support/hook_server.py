"""A webhook that allows everything, in its own process: `python -m bench.support.hook_server PORT FOLDER`."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from pathlib import Path

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Respond to every review on a connection until the connection is closed."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").lower().split("\r\n")
            length = next((int(line.partition(":")[2]) for line in lines if line.startswith("content-length")), 0)
            body = await reader.readexactly(length)
            uid = json.loads(body)["request"]["uid"] if body else ""
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
            answer = json.dumps({**review, "response": {"uid": uid, "allowed": True}}).encode()
            writer.write(_HEAD % len(answer) + answer)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _serve(port: int, folder: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "pki" / "server.crt", folder / "pki" / "server.key")
    server = await asyncio.start_server(_answer, "127.0.0.1", port, ssl=context)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), Path(sys.argv[2])))
