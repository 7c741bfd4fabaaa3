"""Tests of the subresource `proxy` of nodes, pods and Services: kubectl and plain HTTP requests reach a real HTTP
server.
"""

from __future__ import annotations

import gzip
import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.kubelet.conftest import create_node, create_pod
from tests.e2e.kubelet.small_backend import PAGE, SmallBackend, own_address
from tests.e2e.kubelet.small_kubelet import SmallKubelet
from tests.e2e.serving import DEADLINE, Server, until


@pytest.fixture(scope="module")
def address() -> str:
    return own_address()


@pytest.fixture(scope="module")
def backend() -> Iterator[SmallBackend]:
    backend = SmallBackend()
    with backend.serving():
        yield backend


@pytest.fixture(scope="module")
def base(server: Server, kubelet: SmallKubelet, namespace: str, backend: SmallBackend, address: str) -> str:
    """The URL path of a namespace with a pod and a Service `web` that lead to the backend."""
    base = f"/api/v1/namespaces/{namespace}"
    create_node(server, "near", kubelet.port, [], address)
    create_pod(server, namespace, "web", "near")
    set_address(server, f"{base}/pods/web", address)
    ports = [{"name": "http", "port": 80, "targetPort": backend.port}, {"name": "bad", "port": 81, "targetPort": 1}]
    server.create(f"{base}/services", {"metadata": {"name": "web"}, "spec": {"ports": ports}})
    subset = {
        "addresses": [{"ip": address, "targetRef": {"kind": "Pod", "namespace": namespace, "name": "web"}}],
        "ports": [{"name": "http", "port": backend.port}, {"name": "bad", "port": 1}],
    }
    server.create(f"{base}/endpoints", {"metadata": {"name": "web"}, "subsets": [subset]})
    return base


def set_address(server: Server, path: str, address: str) -> None:
    """Set the address of a pod, as its kubelet does."""
    status = {"podIP": address, "podIPs": [{"ip": address}]}
    code, answer = server.request("PATCH", f"{path}/status", {"status": status})
    assert code == 200, answer


def mirrored(kubectl: Kubectl, path: str) -> Any:
    return json.loads(kubectl(f"get --raw '{path}'"))


def test_nodes_reach_the_kubelet_with_the_servers_certificate(
    kubectl: Kubectl, kubelet: SmallKubelet, base: str
) -> None:
    for name in ("near", f"near:{kubelet.port}", f"https:near:{kubelet.port}"):
        assert kubectl(f"get --raw /api/v1/nodes/{name}/proxy/healthz") == "ok"
        assert kubelet.certificates[-1]
        assert b"authorization" not in kubelet.headers[-1]
    page = kubectl("get --raw /api/v1/nodes/near/proxy/logs/")
    assert page == '<pre><a href="/api/v1/nodes/near/proxy/logs/a.log">a.log</a></pre>'


def test_another_port_of_a_node_is_reached_without_the_certificate(
    kubectl: Kubectl, backend: SmallBackend, base: str
) -> None:
    seen = mirrored(kubectl, f"/api/v1/nodes/near:{backend.port}/proxy/a/b?c=d%2Fe")
    assert (seen["path"], seen["query"]) == ("/a/b", "c=d%2Fe")


def test_addresses_outside_the_pods_are_refused(server: Server, base: str) -> None:
    code, answer = server.request("GET", "/api/v1/nodes/real/proxy/healthz")
    assert (code, answer["message"], answer["reason"]) == (400, "address not allowed", "BadRequest")
    namespace = base.rsplit("/", 1)[1]
    create_pod(server, namespace, "inside", "near")
    for address in ("127.0.0.1", "169.254.169.254", "::1", "224.0.0.1"):
        set_address(server, f"{base}/pods/inside", address)
        code, answer = server.request("GET", f"{base}/pods/inside:80/proxy/")
        assert (code, answer["message"]) == (400, "address not allowed"), address
    subset = {"addresses": [{"ip": "192.0.2.77"}], "ports": [{"port": 80}]}
    server.create(f"{base}/services", {"metadata": {"name": "outside"}, "spec": {"ports": [{"port": 80}]}})
    server.create(f"{base}/endpoints", {"metadata": {"name": "outside"}, "subsets": [subset]})
    code, answer = server.request("GET", f"{base}/services/outside/proxy/")
    assert (code, answer["message"]) == (503, 'no endpoints available for service "outside"')


@pytest.mark.parametrize("name", ["services/web:http", "services/web:80", "services/http:web:http", "pods/web:PORT"])
def test_pods_and_services_receive_the_request(
    server: Server, kubectl: Kubectl, backend: SmallBackend, base: str, name: str
) -> None:
    path = f"{base}/{name.replace('PORT', str(backend.port))}/proxy"
    seen = mirrored(kubectl, f"{path}/some%20where/x?a=b&c=d%2Fe")
    assert (seen["method"], seen["path"], seen["query"]) == ("GET", "/some%20where/x", "a=b&c=d%2Fe")
    headers = seen["headers"]
    assert "authorization" not in headers
    assert headers["x-forwarded-for"] == "127.0.0.1"
    assert headers["x-forwarded-uri"] == f"{path}/some%20where/x"
    assert headers["host"] == urlsplit(server.url).netloc
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        code, seen = server.request(method, f"{path}/a/", {"some": "body"})
        assert (code, seen["method"], seen["path"], seen["size"]) == (201, method, "/a/", 16)


def send_request(server: Server, method: str, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Send a request and return the status, headers and body of the response."""
    connection = http.client.HTTPSConnection(urlsplit(server.url).netloc, timeout=DEADLINE, context=server._trust)
    try:
        connection.request(method, path, headers={"Authorization": f"Bearer {server.token}", **headers})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def test_links_and_redirects_lead_through_the_proxy(server: Server, base: str) -> None:
    path = f"{base}/services/web:http/proxy"
    code, headers, body = send_request(server, "GET", f"{path}/page")
    expected = PAGE.replace(b'"/other', f'"{path}/other'.encode())
    assert (code, body) == (200, expected)
    assert "access-control-allow-origin" not in headers
    _, headers, body = send_request(server, "GET", f"{path}/packed")
    assert (headers["content-encoding"], gzip.decompress(body)) == ("gzip", expected)
    code, headers, _ = send_request(server, "GET", f"{path}/moved")
    assert (code, headers["location"]) == (302, f"{path}/target/")
    code, headers, _ = send_request(server, "GET", f"{path}?a=b")
    assert (code, headers["location"]) == (301, f"{path}/?a=b")
    code, _, body = send_request(server, "HEAD", f"{path}/page")
    assert (code, body) == (200, b"")
    code, _, body = send_request(server, "OPTIONS", path)
    assert (code, json.loads(body)["path"]) == (201, "/")


def test_large_responses_are_complete(server: Server, base: str) -> None:
    code, _, body = send_request(server, "GET", f"{base}/services/web:http/proxy/large")
    assert (code, len(body)) == (200, 5_000_000)


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        (
            "services/web:bad",
            503,
            "error trying to reach service: dial tcp ADDRESS:1: connect: connection refused",
        ),
        ("pods/web:1", 503, "error trying to reach service: dial tcp ADDRESS:1: connect: connection refused"),
        ("pods/web:none", 503, "error trying to reach service: dial tcp: lookup tcp/none: unknown port"),
        ("services/web", 503, 'no endpoints available for service "web"'),
        ("services/web:82", 503, 'no service port 82 found for service "web"'),
        ("pods/ftp:web:80", 400, 'invalid pod request "ftp:web:80"'),
        ("services/absent", 404, 'services "absent" not found'),
    ],
)
def test_errors_have_kubernetes_texts(
    server: Server, base: str, address: str, name: str, code: int, message: str
) -> None:
    found, answer = server.request("GET", f"{base}/{name}/proxy/")
    assert (found, answer["message"]) == (code, message.replace("ADDRESS", address))


def test_an_upgrade_becomes_a_tunnel(server: Server, base: str) -> None:
    parts = urlsplit(server.url)
    path = f"{base}/services/web:http/proxy/echo"
    raw = socket.create_connection((parts.hostname, parts.port), timeout=DEADLINE)
    with server._trust.wrap_socket(raw, server_hostname=parts.hostname) as client:
        lines = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n"
        client.sendall(f"{lines}Connection: Upgrade\r\nUpgrade: echo\r\n\r\n".encode())
        head = client.recv(65536)
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        for piece in (b"one", b"two" * 20_000):
            client.sendall(piece)
            back = b""
            while len(back) < len(piece):
                back += client.recv(65536)
            assert back == piece


def test_a_disconnected_client_ends_the_request(server: Server, backend: SmallBackend, base: str) -> None:
    parts = urlsplit(server.url)
    raw = socket.create_connection((parts.hostname, parts.port), timeout=DEADLINE)
    with server._trust.wrap_socket(raw, server_hostname=parts.hostname) as client:
        lines = f"GET {base}/services/web:http/proxy/hang HTTP/1.1\r\nHost: x\r\n"
        client.sendall(f"{lines}Authorization: Bearer {server.token}\r\n\r\n".encode())
        until(lambda: backend.hanging == 1)
    until(lambda: backend.hanging == 0)


def test_the_certificate_of_a_pod_is_not_verified(server: Server, kubelet: SmallKubelet, base: str) -> None:
    """The server on the kubelet's port requires a client certificate. The proxy sends no client certificate to pods."""
    code, answer = server.request("GET", f"{base}/pods/https:web:{kubelet.port}/proxy/healthz")
    assert (code, answer["reason"]) == (503, "ServiceUnavailable")
    assert answer["message"].startswith("error trying to reach service: ")
    assert "failed to verify certificate" not in answer["message"]


def test_the_subresource_determines_the_rights(server: Server, kubectl: Kubectl, base: str) -> None:
    kubectl("create role reads --verb get --resource services/proxy")
    kubectl("create rolebinding reads --role reads --user alice")
    seen = json.loads(kubectl(f"get --raw {base}/services/web:http/proxy/x --as alice"))
    assert "impersonate-user" not in seen["headers"]
    refused = kubectl.fails(f"create --raw {base}/services/web:http/proxy/x -f - --as alice", "{}")
    assert 'cannot create resource "services/proxy"' in refused
    assert 'cannot get resource "pods/proxy"' in kubectl.fails(f"get --raw {base}/pods/web:1/proxy/ --as alice")
