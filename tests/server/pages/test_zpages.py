"""Tests of `/flagz` and `/statusz`, in the forms that Kubernetes' pages have."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import msgspec
import pytest
import yaml

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.engine.features import gates
from ctrlmgr.errors import NotAcceptable
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.request_head import Head
from ctrlmgr.http.size_limits import DEFAULT
from ctrlmgr.server.filters.request_ids import RequestIds
from ctrlmgr.server.pages.nonresource_pages import Page
from ctrlmgr.server.pages.zpages import flagz_page, statusz_page, zpages
from ctrlmgr.server.presenting.responses import Response
from ctrlmgr.server.request import Request
from ctrlmgr.server.routes import locate
from ctrlmgr.testing import FakeClock
from tests.http.test_exchange import RecordedConnection

PATHS = ["/", "/api/v1", "/apis", "/healthz/ping", "/metrics", "/metrics/slis", "/.well-known/openid-configuration"]
STATUSZ = "as=Statusz;v=v1beta1;g=config.k8s.io"


class FirstChoice(Random):
    def choice(self, seq: Any) -> Any:
        return seq[0]


def ask(page: Page, accept: str = "") -> Response:
    headers = HeaderLines([(b"accept", accept.encode())] if accept else [])
    exchange = Exchange(Head("GET", b"/", b"", headers), RecordedConnection(), DEFAULT)
    return asyncio.run(_answered(page, Request(exchange, locate(b"/"), RequestIds(Random(1)))))


async def _answered(page: Page, request: Request) -> Response:
    return await page(request)


@pytest.mark.parametrize("accept", ["", "text/plain", "application/json, */*"])
def test_statusz_is_plain_text_by_default(accept: str) -> None:
    clock = FakeClock()
    page = statusz_page(lambda: PATHS, clock, FirstChoice())
    clock.step(3 * 3600 + 65)
    response = ask(page, accept)
    text = response.body.decode()
    assert text.startswith("\napiserver statusz\nWarning: This endpoint is not meant to be machine parseable")
    assert "\nUp: 3 hr 01 min 05 sec\n" in text
    assert "\nBinary version: 1.36\nEmulation version: 1.36\nPaths: /healthz /metrics\n" in text
    assert (b"content-type", b"text/plain; charset=utf-8") in response.headers


def test_statusz_is_an_object_if_the_client_asks_for_one() -> None:
    clock = FakeClock()
    page = statusz_page(lambda: PATHS, clock, FirstChoice())
    clock.step(7)
    found = msgspec.json.decode(ask(page, f"application/json;{STATUSZ}").body)
    assert (found["kind"], found["apiVersion"], found["metadata"]) == (
        "Statusz",
        "config.k8s.io/v1beta1",
        {"name": "apiserver"},
    )
    assert (found["uptimeSeconds"], found["paths"]) == (7, ["/healthz", "/metrics"])
    assert yaml.safe_load(ask(page, f"application/yaml;{STATUSZ}").body)["kind"] == "Statusz"


def test_an_old_version_of_an_object_has_a_warning() -> None:
    page = flagz_page({"profiling": "true"}, FirstChoice())
    response = ask(page, "application/json;as=Flagz;v=v1alpha1;g=config.k8s.io")
    assert msgspec.json.decode(response.body)["flags"] == {"profiling": "true"}
    assert dict(response.headers)[b"warning"].startswith(b'299 - "This version of the flagz endpoint is deprecated.')


def test_flagz_lists_the_flags_by_name() -> None:
    text = ask(flagz_page({"v": "2", "profiling": "true"}, FirstChoice())).body.decode()
    assert text.startswith("\napiserver flagz\nWarning: ")
    assert text.endswith("purposes only.\nprofiling:true\nv:2\n")


@pytest.mark.parametrize("accept", ["application/json", f"application/json;{STATUSZ}", "application/xml"])
def test_an_unsupported_format_of_flagz_is_refused(accept: str) -> None:
    with pytest.raises(NotAcceptable, match="only the following media types are accepted: application/json, "):
        ask(flagz_page({}, FirstChoice()), accept)


@pytest.mark.parametrize(("gate", "left"), [("ComponentFlagz", "/statusz"), ("ComponentStatusz", "/flagz")])
def test_each_page_is_served_only_with_its_feature_gate(gate: str, left: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(zpages({}, lambda: PATHS, FakeClock(), Random(1))) == {"/flagz", "/statusz"}
    monkeypatch.setitem(gates.ENABLED, gate, False)
    assert set(zpages({}, lambda: PATHS, FakeClock(), Random(1))) == {left}
