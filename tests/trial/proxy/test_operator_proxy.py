"""The proxy relays requests, answers and watches between an operator and a server over real connections."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import yaml

from ctrlmgr import threads
from ctrlmgr.clock import SystemClock
from ctrlmgr.trial.proxy.operator_proxy import Forward, OperatorProxy, Upstream, operator_kubeconfig
from ctrlmgr.trial.proxy.operator_request import Answer, ConnectionDropped, Request
from ctrlmgr.trial.proxy.watch_streams import EXPIRED, WatchStreams

PODS = "/api/v1/pods"
EVENT = b'{"type":"ADDED"}\n'


class Server(BaseHTTPRequestHandler):
    """A server that answers with what it has received, and watches that end with the connection."""

    protocol_version = "HTTP/1.1"

    def handle_request(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        if "watch=1" in self.path:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in (EVENT[:5], EVENT[5:]):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.rfile.read(1)  # until the proxy closes the connection
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        found = {"method": self.command, "path": self.path, "headers": headers, "body": body}
        answer = json.dumps(found).encode()
        self.send_response(404 if "missing" in self.path else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.send_header("Warning", "299 - careful")
        self.end_headers()
        self.wfile.write(answer)

    do_GET = handle_request  # noqa: N815  # the name that http.server requires
    do_POST = handle_request  # noqa: N815  # the name that http.server requires

    def log_message(self, format: str, *args: Any) -> None: ...


class Exchange:
    """Lets all requests pass, unless a test replaces the functions."""

    def __init__(self) -> None:
        self.act: Callable[[Request, Forward], Answer] = lambda request, forward: forward(request)
        self.act_on_watch: Callable[[Request], Request | Answer] = lambda request: request

    def answer(self, request: Request, forward: Forward) -> Answer:
        return self.act(request, forward)

    def watched(self, request: Request) -> Request | Answer:
        return self.act_on_watch(request)


class _Threaded(HTTPServer):
    def process_request(self, request: Any, client_address: Any) -> None:
        def serve() -> None:
            self.finish_request(request, client_address)
            self.shutdown_request(request)

        threads.start("test-server", serve)


@pytest.fixture
def server() -> Iterator[str]:
    with _Threaded(("127.0.0.1", 0), Server) as found:
        threads.start("test-server", found.serve_forever)
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()


@pytest.fixture
def exchange() -> Exchange:
    return Exchange()


@pytest.fixture
def proxy(server: str, exchange: Exchange) -> Iterator[OperatorProxy]:
    clock = SystemClock()
    upstream = Upstream(server, None, {"Authorization": "Bearer admin", "Impersonate-User": "trial-operator"})
    with OperatorProxy(upstream, exchange, WatchStreams(clock=clock), clock=clock) as found:
        yield found


@pytest.fixture
def operator(proxy: OperatorProxy) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(proxy.url.removeprefix("http://"), timeout=30)
    yield connection
    connection.close()


def test_the_server_sees_the_operators_user(operator: http.client.HTTPConnection) -> None:
    headers = {"Authorization": "Bearer trial", "Impersonate-User": "admin", "User-Agent": "my-operator"}
    operator.request("POST", f"{PODS}?dryRun=All", "{}", headers)
    response = operator.getresponse()
    found = json.load(response)
    assert (response.status, response.getheader("Warning")) == (200, "299 - careful")
    assert (found["method"], found["path"], found["body"]) == ("POST", f"{PODS}?dryRun=All", "{}")
    assert found["headers"]["authorization"] == "Bearer admin"
    assert found["headers"]["impersonate-user"] == "trial-operator"
    assert found["headers"]["user-agent"] == "my-operator"


def test_one_connection_serves_several_requests_with_bodies_in_chunks(operator: http.client.HTTPConnection) -> None:
    for path, code in ((PODS, 200), ("/api/v1/missing", 404)):
        operator.request(
            "POST", path, iter([b"ab", b"cde"]), encode_chunked=True, headers={"Transfer-Encoding": "chunked"}
        )
        response = operator.getresponse()
        assert response.status == code
        assert json.load(response)["body"] == "abcde"


def test_an_answer_may_be_replaced(exchange: Exchange, operator: http.client.HTTPConnection) -> None:
    exchange.act = lambda request, forward: Answer(409, {"X": "y"}, b"conflict")
    operator.request("GET", PODS)
    response = operator.getresponse()
    assert (response.status, response.getheader("X"), response.read()) == (409, "y", b"conflict")


def test_a_connection_may_be_dropped(exchange: Exchange, operator: http.client.HTTPConnection) -> None:
    def drop(request: Request, forward: Forward) -> Answer:
        raise ConnectionDropped

    exchange.act = drop
    operator.request("GET", PODS)
    with pytest.raises(http.client.RemoteDisconnected):
        operator.getresponse()


def test_a_request_of_a_killed_operator_does_not_reach_the_server(
    exchange: Exchange, proxy: OperatorProxy, operator: http.client.HTTPConnection
) -> None:
    sent: list[Request] = []

    def cut(request: Request, forward: Forward) -> Answer:
        proxy.cut()
        answer = forward(request)
        sent.append(request)
        return answer

    exchange.act = cut
    operator.request("POST", PODS, "{}")
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        operator.getresponse()
    assert sent == []


def test_events_of_a_watch_pass_as_whole_lines(operator: http.client.HTTPConnection, proxy: OperatorProxy) -> None:
    operator.request("GET", f"{PODS}?watch=1")
    response = operator.getresponse()
    assert response.readline() == EVENT
    assert {str(each) for each in proxy.watches.resources} == {"pods"}
    assert proxy.traffic.of_resources == 1
    proxy.watches.expire()
    assert response.read() == EXPIRED
    operator.request("GET", PODS)
    assert operator.getresponse().status == 200, "the connection serves further requests"


def test_a_watch_may_be_refused(exchange: Exchange, operator: http.client.HTTPConnection) -> None:
    exchange.act_on_watch = lambda request: Answer(403, {}, b"forbidden")
    operator.request("GET", f"{PODS}?watch=1")
    assert operator.getresponse().status == 403


def test_upgrades_are_refused(operator: http.client.HTTPConnection) -> None:
    operator.request("GET", f"{PODS}/web/exec", headers={"Connection": "Upgrade", "Upgrade": "websocket"})
    assert operator.getresponse().status == 501


def test_traffic_is_idle_between_requests(proxy: OperatorProxy, operator: http.client.HTTPConnection) -> None:
    operator.request("GET", "/version")
    operator.getresponse().read()
    assert proxy.traffic.of_resources == 0
    before = proxy.traffic.idle_seconds()
    assert before < proxy.traffic.idle_seconds()


def test_the_kubeconfig_names_the_proxy(proxy: OperatorProxy) -> None:
    config = yaml.safe_load(operator_kubeconfig(proxy.url))
    assert config["clusters"][0]["cluster"]["server"] == proxy.url
    assert config["contexts"][0]["name"] == config["current-context"]
