"""kr8s' `portforward` and `exec`: the port-forward offers no WebSocket protocol, and `exec` offers version 4."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import kr8s.asyncio
import pytest
from kr8s.asyncio.objects import Pod

from tests.e2e.kubelet.test_real_pods import echoing
from tests.e2e.serving import DEADLINE, Server
from tests.free_ports import free_port

# kr8s warns of versions of Kubernetes that are newer than itself. It cannot close its HTTP client, which is collected
# before another test runs.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported:UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
PODS = pytest.mark.parametrize("pod", ["real", "older"])
SENT = random.Random(1).randbytes(3_000_001)
"""More than kr8s sends in one message."""
T = TypeVar("T")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    yield
    gc.collect()


def with_pod(server: Server, namespace: str, name: str, use: Callable[[Pod], Awaitable[T]]) -> T:
    """Return what `use` returns for a pod."""

    async def scenario() -> T:
        api = await kr8s.asyncio.api(kubeconfig=str(server.kubeconfig))
        return await use(await Pod.get(name, namespace=namespace, api=api))

    return asyncio.run(asyncio.wait_for(scenario(), DEADLINE))


async def echoed(port: int) -> bytes:
    """Send `SENT` to a port of this machine, and return the received bytes up to the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(SENT)
    received = await reader.read()
    writer.close()
    await writer.wait_closed()
    return received


@PODS
def test_portforward_carries_the_bytes_of_each_connection(server: Server, namespace: str, pod: str) -> None:
    async def forward(found: Pod) -> tuple[bytes, bytes]:
        # The port that kr8s chooses by itself may be the port of another program's connection.
        async with found.portforward(port, local_port=free_port()) as local:
            return await asyncio.gather(echoed(local), echoed(local))

    with echoing(ends_after=len(SENT)) as port:
        first, second = with_pod(server, namespace, pod, forward)
    assert first == SENT
    assert second == SENT


@PODS
def test_exec_returns_the_output_and_the_exit_code(server: Server, namespace: str, pod: str) -> None:
    command = ["sh", "-c", "echo out; echo err >&2; exit 4"]
    done = with_pod(server, namespace, pod, lambda found: found.exec(command, check=False))
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 4)
