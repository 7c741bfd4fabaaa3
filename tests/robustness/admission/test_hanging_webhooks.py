"""Tests that a hanging webhook delays only the writes that call it."""

from __future__ import annotations

import asyncio
import ssl
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median

import httpx
import pytest

from tests.e2e.serving import Server

HANGING = 200
MAPS = "/api/v1/namespaces/default/configmaps"
LOOKED = "/api/v1/namespaces/default"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    # One user may have half of the concurrent writes.
    writes = {"CTRLMGR_SERVER_MAX_WRITES": str(2 * HANGING)}
    made = Server(tmp_path, "--database", "memory:", "--controllers", "namespace-controller", **writes)
    made.start()
    try:
        yield made
    finally:
        made.close()


def configure(server: Server, port: int, authority: bytes) -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    hook = {
        "name": "hangs.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": b64encode(authority).decode()},
        "rules": rules,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 15,
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    server.create(path, {"metadata": {"name": "hangs"}, "webhooks": [hook]})


async def latency(client: httpx.AsyncClient) -> float:
    """Return the median duration of several GETs in seconds."""
    taken = []
    for _ in range(40):
        began = time.perf_counter()
        answer = await client.get(LOOKED)
        taken.append(time.perf_counter() - began)
        assert answer.status_code == 200
    return median(taken)


@pytest.mark.slow
def test_two_hundred_hanging_calls_do_not_slow_a_get(server: Server, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pki" / "server.crt", tmp_path / "pki" / "server.key")
    authority = (tmp_path / "pki" / "ca.crt").read_bytes()
    asked, many = 0, asyncio.Event()
    handlers: list[asyncio.Task[None] | None] = []

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        if asked == HANGING:
            many.set()
        handlers.append(asyncio.current_task())
        with suppress(OSError):
            await reader.read()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def run() -> tuple[float, float, list[httpx.Response]]:
        hooks = await asyncio.start_server(hang, "127.0.0.1", 0, ssl=context, backlog=HANGING)
        await asyncio.to_thread(configure, server, hooks.sockets[0].getsockname()[1], authority)
        trust = ssl.create_default_context(cadata=authority.decode())
        headers = {"authorization": f"Bearer {server.token}"}
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(
            base_url=server.url, verify=trust, headers=headers, limits=limits, timeout=60.0
        ) as client:
            before = await latency(client)
            writes = [
                asyncio.create_task(client.post(MAPS, json={"metadata": {"name": f"m{number}"}}))
                for number in range(HANGING)
            ]
            async with asyncio.timeout(14.0):
                await many.wait()
            during = await latency(client)
            assert not any(write.done() for write in writes)
            answers = await asyncio.gather(*writes)
        hooks.close()
        await asyncio.gather(*(each for each in handlers if each is not None))
        return before, during, answers

    before, during, answers = asyncio.run(run())
    assert {each.status_code for each in answers} == {500}
    assert "context deadline exceeded" in answers[0].json()["message"]
    assert during < 4 * before + 0.05, (before, during)
