"""Tests of misbehaving webhooks with `ctrlmgr serve`, within the timeouts of the webhooks, and of requests about
`exec`.
"""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.serving import Server
from tests.server.test_outbound_calls import certified, closes, hangs, talks

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"
TIMEOUT = 2

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("serve"), "--database", "memory:", "--controllers", "namespace-controller")
    made.start()
    try:
        yield made
    finally:
        made.close()


async def read_request(reader: asyncio.StreamReader) -> dict[str, Any]:
    """Read a request."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
    review = json.loads(await reader.readexactly(int(length.partition(b":")[2])))
    request: dict[str, Any] = review["request"]
    return request


async def answer(writer: asyncio.StreamWriter, response: dict[str, Any], head: bytes = b"200 OK") -> None:
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).encode()
    writer.write(b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (head, len(body)))
    writer.write(body)
    await writer.drain()


async def lies(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    await answer(writer, {"uid": "another", "allowed": True})


async def redirects(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await read_request(reader)
        await answer(writer, {}, b"307 Temporary Redirect\r\nlocation: /again")


async def serves_a_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>")
    await writer.drain()


def hooked(
    server: Server, folder: Path, handler: Handler, send: Callable[[], Any], rule: dict[str, Any], *, days: int = 1
) -> Any:
    """Register a webhook with these responses, and return the result of `send`, which is called meanwhile."""
    context, pem = certified(folder, days=days)

    handlers: list[asyncio.Task[None]] = []

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.append(task)
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await handler(reader, writer)
        finally:
            writer.transport.abort()  # the server keeps connections open, and the stop would wait for them

    async def run() -> Any:
        hooks = await asyncio.start_server(met, "127.0.0.1", 0, ssl=context)
        port = hooks.sockets[0].getsockname()[1]
        hook = {
            "name": "odd.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": b64encode(pem).decode()},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], **rule}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": TIMEOUT,
        }
        code, _ = await asyncio.to_thread(
            server.request, "POST", HOOKS, {"metadata": {"name": "odd"}, "webhooks": [hook]}
        )
        assert code == 201
        try:
            return await asyncio.to_thread(send)
        finally:
            await asyncio.to_thread(server.request, "DELETE", f"{HOOKS}/odd")
            hooks.close()
            for each in handlers:
                each.cancel()
            await asyncio.gather(*handlers, return_exceptions=True)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("handler", "days", "told"),
    [
        pytest.param(hangs, 1, "context deadline exceeded", id="hangs"),
        pytest.param(lies, 1, "expected response.uid=", id="answers another question"),
        pytest.param(redirects, 1, "stopped after 10 redirects", id="sends elsewhere for ever"),
        pytest.param(talks, 1, "response body of more than", id="sends 100 MB"),
        pytest.param(closes, 1, "EOF", id="closes"),
        pytest.param(lies, -1, "certificate has expired or is not yet valid", id="has an expired certificate"),
        pytest.param(serves_a_page, 1, "json parse error", id="serves a page"),
    ],
)
def test_a_failing_webhook_is_reported_within_its_timeout(
    server: Server, tmp_path: Path, handler: Handler, days: int, told: str
) -> None:
    def send() -> tuple[int, Any, float]:
        began = time.monotonic()
        code, body = server.request("POST", MAPS, {"metadata": {"name": "m"}})
        return code, body, time.monotonic() - began

    rule = {"operations": ["CREATE"], "resources": ["configmaps"]}
    code, body, seconds = hooked(server, tmp_path, handler, send, rule, days=days)
    assert (code, body["reason"]) == (500, "InternalError")
    assert body["message"].startswith('Internal error occurred: failed calling webhook "odd.example.com": ')
    assert told in body["message"]
    assert seconds < TIMEOUT + 2.0
    assert server.request("GET", f"{MAPS}/m")[0] == 404


def test_admission_is_called_before_a_connection_is_made(server: Server, tmp_path: Path) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    server.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    server.create("/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})
    seen: list[dict[str, Any]] = []

    async def denies(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        await answer(writer, {"uid": seen[-1]["uid"], "allowed": False, "status": {"message": "not in", "code": 403}})

    path = "/api/v1/namespaces/default/pods/p/exec?command=sh&command=-c&container=c&stdout=true"
    rule = {"operations": ["CONNECT"], "resources": ["pods/exec"]}
    code, body = hooked(server, tmp_path, denies, lambda: server.request("POST", path), rule)
    assert (code, body["message"]) == (403, 'admission webhook "odd.example.com" denied the request: not in')
    (question,) = seen
    assert (question["operation"], question["name"], question["subResource"]) == ("CONNECT", "p", "exec")
    assert question["kind"] == {"group": "", "version": "v1", "kind": "PodExecOptions"}
    assert question["object"]["command"] == ["sh", "-c"]
    assert question["oldObject"] is None
