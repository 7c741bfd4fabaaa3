"""A server in this process, a kubelet on plain sockets, and pods on the kubelet's node whose containers each have one
behaviour.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ctrlmgr.clock import SystemClock
from ctrlmgr.server.kubelets.proxying import KubeletProxy
from ctrlmgr.settings.kubelet_settings import KubeletSettings
from tests.authentication.authorities import CertificateAndKey as Issued
from tests.authentication.authorities import make as issue
from tests.authentication.authorities import subject
from tests.e2e.serving import until
from tests.server.kubelets.raw_kubelet import WRONG, RawKubelet
from tests.server.site import ApplicationAndLog, Response, Site, make, running

PODS = "/api/v1/namespaces/default/pods"
NAMES = ("good", "hangs", "endless", "waits", *WRONG)
_KUBELETS = "ctrlmgr.server.kubelets."
OURS = (
    "ctrlmgr.http.",
    "ctrlmgr.server.request",
    *(_KUBELETS + each for each in ("channels", "proxying", "translation")),
)
UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n"
)


class ConnectionResources(NamedTuple):
    """The resources that a process uses for connections."""

    files: int
    tasks: int
    objects: Counter[str]
    """The number of Python objects for connections and requests; these objects hold all buffers."""


class KubeletSite(NamedTuple):
    site: Site
    made: ApplicationAndLog
    kubelet: RawKubelet
    proxies: list[KubeletProxy]
    """The server's connections to kubelets, after the first request."""

    def log(self, container: str = "good", pod: str = "p") -> Response:
        return self.site.ask(f"{PODS}/{pod}/log?container={container}")

    def exec(self, container: str, pod: str = "p", headers: str = "") -> socket.socket:
        """Send a request for exec, and return the connection."""
        connection = self.site.connect()
        host = urlsplit(self.site.url).netloc
        target = f"{PODS}/{pod}/exec?container={container}&command=c&stdout=true"
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n{UPGRADE}{headers}\r\n".encode())
        return connection

    def census(self) -> ConnectionResources:
        async def tasks() -> int:
            return len(asyncio.all_tasks()) - 1

        count = self.made.backend.wait_for(tasks())
        gc.unfreeze()  # `gc.get_objects` omits frozen objects; an earlier server in this process may freeze them
        gc.collect()
        names = (f"{type(each).__module__}.{type(each).__name__}" for each in gc.get_objects())
        named = Counter(each for each in names if each.startswith(OURS))
        return ConnectionResources(len(os.listdir("/proc/self/fd")), count, named)

    def settled(self) -> ConnectionResources:
        """Return the resources in use when one idle connection to the kubelet is left."""
        assert self.log().body == "hello\n"
        self.kubelet.wait_for_open(1)
        return self.census()

    def expect_nothing_left(self, before: ConnectionResources) -> None:
        """Wait until the resources in use equal an earlier count; fail if this takes too long."""
        try:
            until(lambda: self.settled() == before)
        except AssertionError:
            after = self.settled()
            assert after == before, (after, before)


def read(connection: socket.socket) -> bytes:
    """Read the response to its end, and close the connection."""
    with connection:
        found = b""
        try:
            while piece := connection.recv(65536):
                found += piece
        except ConnectionError:
            pass
        return found


def authority(name: str) -> Issued:
    now = datetime.now(UTC)
    return issue(subject(name), is_authority=True, begins=now - timedelta(hours=1), ends=now + timedelta(days=1))


@contextmanager
def a_scene(folder: Path, **more: Any) -> Iterator[KubeletSite]:
    """Run a server, a kubelet with the pods `p`, and the pods `other` and `elsewhere` on kubelets with wrong
    certificates.

    The node of the pod `silent` accepts connections but does not respond. The arguments `more` are passed to `make`.
    """
    root = authority("nodes")
    (folder / "ca.crt").write_bytes(root.pem)
    settings = KubeletSettings(certificate_authority=str(folder / "ca.crt"), timeout=1.0)
    client = issue(subject("kube-apiserver-kubelet-client", ["system:masters"]))
    issued = client.pem, client.key_pem
    proxies: list[KubeletProxy] = []

    def connections() -> KubeletProxy:
        proxies.append(KubeletProxy(settings, lambda user, groups: issued, clock=SystemClock()))
        return proxies[0]

    made = make(kubelets=connections, **more)
    with ExitStack() as stack:
        good, other, elsewhere = (
            stack.enter_context(RawKubelet(folder, *each).serving())
            for each in ((root,), (authority("others"),), (root, "192.0.2.9"))
        )
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        site = stack.enter_context(running(made))
        ports = {"p": good.port, "other": other.port, "elsewhere": elsewhere.port, "silent": silent.getsockname()[1]}
        for name, port in ports.items():
            place(site, name, port)
        yield KubeletSite(site, made, good, proxies)


def place(site: Site, name: str, port: int) -> None:
    """Create a node and a pod on the node, with a container for each behaviour."""
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "declaredFeatures": ["ExtendWebSocketsToKubelet"],
    }
    assert site.ask("/api/v1/nodes", "POST", {"metadata": {"name": name}, "status": status}).status == 201
    containers = [{"name": each, "image": "i"} for each in NAMES]
    spec = {"nodeName": name, "containers": containers}
    assert site.ask(PODS, "POST", {"metadata": {"name": name}, "spec": spec}).status == 201
