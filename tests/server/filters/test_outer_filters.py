"""Tests of the outer filters for CORS, HSTS and GOAWAY."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from ctrlmgr.errors import SettingsError
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.server.filters.outer_filters import OuterFilters
from ctrlmgr.server.filters.request_ids import RequestIds
from ctrlmgr.server.request import Request
from ctrlmgr.server.routes import locate
from ctrlmgr.settings.server_settings import ServerSettings
from tests.http.loopback import Client
from tests.server.site import CONFIG_MAPS, Site, make, running

ORIGIN = "https://console.example.com"
DIRECTIVES = ("max-age=31536000", "includeSubDomains")


def filters(**settings: Any) -> OuterFilters:
    return OuterFilters(ServerSettings(**settings), random=Random(1))


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    configured = filters(
        cors_allowed_origins=(r"^https://console\.example\.com(:|$)", "//localhost:"),
        strict_transport_security_directives=DIRECTIVES,
    )
    with running(make(filters=configured)) as site:
        yield site


@pytest.mark.parametrize("origin", [ORIGIN, f"{ORIGIN}:8443", "http://localhost:3000"])
def test_a_page_of_an_allowed_origin_can_read_responses(site: Site, origin: str) -> None:
    answer = site.ask(CONFIG_MAPS, headers={"Origin": origin})
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["access-control-allow-methods"] == "POST, GET, OPTIONS, PUT, DELETE, PATCH"
    assert answer.headers["access-control-expose-headers"] == "Date"
    assert answer.headers["access-control-allow-credentials"] == "true"


@pytest.mark.parametrize(
    "origin", ["https://console.example.com.evil.example", "https://consoleXexample.com", "null", ""]
)
def test_a_page_of_another_origin_cannot_read_responses(site: Site, origin: str) -> None:
    answer = site.ask(CONFIG_MAPS, headers={"Origin": origin})
    assert answer.status == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_errors_have_the_cors_headers(site: Site) -> None:
    answer = site.ask("/api/v1/namespaces/default/configmaps/absent", headers={"Origin": ORIGIN})
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (404, ORIGIN)


def test_a_preflight_request_is_answered_at_once(site: Site) -> None:
    answer = site.ask(CONFIG_MAPS, "OPTIONS", headers={"Origin": ORIGIN, "Access-Control-Request-Method": "POST"})
    assert (answer.status, answer.body) == (204, "")
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert site.ask(CONFIG_MAPS, "OPTIONS").status == 405


def test_every_response_has_the_directives(site: Site) -> None:
    for path in ("/version", CONFIG_MAPS, "/nowhere"):
        assert site.ask(path).headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"


def test_watches_have_the_headers(site: Site) -> None:
    with site.watch(Origin=ORIGIN) as watch:
        assert watch.response.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert watch.response.headers["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains"


def test_no_filter_is_active_by_default() -> None:
    assert not filters().is_active
    assert filters(goaway_chance=0.01).is_active


def test_connections_are_closed_with_the_configured_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    retired: list[Exchange] = []
    monkeypatch.setattr(Exchange, "retire", lambda exchange: retired.append(exchange))
    request = Request(client.exchanges[0], locate(b"/"), RequestIds(Random(1)))
    chosen = filters(goaway_chance=0.02)
    assert [chosen.begin(request) for _ in range(5_000)] == [None] * 5_000
    assert 50 < len(retired) < 150


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"cors_allowed_origins": ("(",)}, "server.cors_allowed_origins has an invalid regular expression: "),
        ({"cors_allowed_origins": ("example.com$",)}, "does not match the host's start and end"),
        ({"cors_allowed_origins": ("//example.com",)}, "does not match the host's start and end"),
        ({"strict_transport_security_directives": ("max-age",)}, "'max-age' is not one of max-age=SECONDS"),
        ({"strict_transport_security_directives": ("forever",)}, "'forever' is not one of max-age=SECONDS"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem.replace("(", r"\(") if problem != "(" else problem):
        filters(**settings)
