"""Tests of the refusals with 429 while a server stops (`shutdown_send_retry_after`)."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from urllib.parse import urlsplit

import pytest

from ctrlmgr import threads
from ctrlmgr.clock import SystemClock
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.server import Check, Health, HttpServer
from ctrlmgr.server.filters.outer_filters import OuterFilters
from ctrlmgr.server.filters.request_ids import RequestIds
from ctrlmgr.server.filters.running_requests import RunningRequests
from ctrlmgr.server.request import Request
from ctrlmgr.server.routes import locate
from ctrlmgr.settings.server_settings import ServerSettings
from ctrlmgr.testing.builders import a_namespace
from tests.http.loopback import Client
from tests.server.site import CONFIG_MAPS, TIMEOUT, Site, add, await_refusal, make

BODY = '{"metadata":{"name":"late"}}'
TEXT = "The apiserver is shutting down, please try again later.\n"


@contextmanager
def stopping(*, refuses: bool = True) -> Iterator[tuple[Site, socket.socket, threading.Thread]]:
    """Yield a stopping server with one running request whose body has not arrived, and its connection."""
    stop = threading.Event()
    filters = OuterFilters(ServerSettings(shutdown_send_retry_after=refuses), random=Random(1))
    made = make(health=[Health("livez", [Check("ping", lambda: None)])], filters=filters)
    add(made.log, a_namespace())
    server = HttpServer(made.app, ("127.0.0.1", 0), clock=SystemClock(), listens_until_drained=refuses)
    thread = threads.start("server under test", lambda: server.run(stop))
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname or "", address.port or 0), TIMEOUT) as running:
        head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(BODY)}\r\nExpect: 100-continue\r\n\r\n"
        running.sendall(head.encode())
        assert b"100 Continue" in running.recv(4096)  # the request's handler waits for the body
        stop.set()
        yield Site(server.url, made.log), running, thread
    thread.join(TIMEOUT)
    assert not thread.is_alive()


def await_refusals(site: Site) -> None:
    """Return when the server refuses requests."""
    while site.ask(CONFIG_MAPS).status != 429:
        pass


def test_a_stopping_server_refuses_new_requests_until_the_running_ones_have_ended() -> None:
    with stopping() as (site, running, thread):
        await_refusals(site)
        answer = site.ask(CONFIG_MAPS)
        assert (answer.status, answer.body) == (429, TEXT)
        assert (answer.headers["retry-after"], answer.headers["connection"]) == ("5", "close")
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "audit-id" in answer.headers
        assert "cache-control" not in answer.headers
        assert thread.is_alive()
        running.sendall(BODY.encode())
        assert b"HTTP/1.1 201" in running.recv(4096)
        thread.join(TIMEOUT)
        assert not thread.is_alive()
        with pytest.raises(ConnectionRefusedError):
            site.ask(CONFIG_MAPS)


@pytest.mark.parametrize("path", ["/livez", "/livez/ping", "/metrics"])
def test_probes_and_metrics_are_served_to_the_end(path: str) -> None:
    with stopping() as (site, running, _):
        await_refusals(site)
        assert site.ask(path).status == 200
        running.sendall(BODY.encode())


def test_requests_of_api_servers_are_served_to_the_end() -> None:
    with stopping() as (site, running, _):
        await_refusals(site)
        assert site.ask(CONFIG_MAPS, headers={"User-Agent": "kube-apiserver/v1.36.2"}).status == 200
        assert site.ask(CONFIG_MAPS, headers={"User-Agent": "my-kube-apiserver/v1"}).status == 429
        running.sendall(BODY.encode())


def test_a_refused_client_is_asked_to_leave_its_http2_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    client, retired = Client(), list[Exchange]()
    client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    monkeypatch.setattr(Exchange, "retire", lambda exchange: retired.append(exchange))
    request = Request(client.exchanges[0], locate(b"/"), RequestIds(Random(1)))
    filters = OuterFilters(ServerSettings(shutdown_send_retry_after=True), random=Random(1))
    assert filters.begin(request) is None
    filters.stop()
    refusal = filters.begin(request)
    assert refusal is not None
    assert (refusal.status, retired, client.exchanges[0].keep_alive) == (429, client.exchanges, False)


def test_a_server_that_stops_does_not_wait_longer_than_a_request_may_take() -> None:
    async def drained() -> bool:
        running = RunningRequests()
        with running:
            await running.ended(0.01)
        await running.ended(TIMEOUT)
        return True

    assert asyncio.run(asyncio.wait_for(drained(), TIMEOUT / 2))


def test_without_the_setting_a_stopping_server_refuses_connections() -> None:
    with stopping(refuses=False) as (site, running, thread):
        address = urlsplit(site.url)
        await_refusal(address.hostname or "", address.port or 0)
        assert thread.is_alive()
        running.sendall(BODY.encode())
        assert b"HTTP/1.1 201" in running.recv(4096)
