"""Fixtures with a server that has an aggregator, and with an extension API server."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.http.front_proxy import FrontProxyCertificate, own_front_proxy
from ctrlmgr.server.aggregating.extension_servers import ExtensionServers
from ctrlmgr.server.aggregating.proxy_handler import Aggregator
from tests.server.aggregating.extension import Extension, extension
from tests.server.aggregating.registering import register
from tests.server.site import Site, make, serving


@pytest.fixture(scope="module")
def front_proxy(tmp_path_factory: pytest.TempPathFactory) -> FrontProxyCertificate:
    return FrontProxyCertificate(*own_front_proxy(tmp_path_factory.mktemp("front-proxy"), clock=SystemClock()))


@pytest.fixture(scope="module")
def ext(tmp_path_factory: pytest.TempPathFactory, front_proxy: FrontProxyCertificate) -> Iterator[Extension]:
    with extension(tmp_path_factory.mktemp("ext"), front_proxy.authority.encode()) as made:
        yield made


@pytest.fixture(scope="module")
def site(ext: Extension, front_proxy: FrontProxyCertificate) -> Iterator[Site]:
    def aggregator(cacher: Any) -> Aggregator:
        return Aggregator(ExtensionServers(cacher, lambda: front_proxy.pem, Random(1)))

    made = make(aggregator=aggregator)
    with serving(made.app) as url:
        site = Site(url, made.log)
        site.ask("/api/v1/namespaces", "POST", {"metadata": {"name": "default"}})
        service = {"metadata": {"name": "ext"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        assert site.ask("/api/v1/namespaces/default/services", "POST", service).status == 201
        register(site, "v1", ext, ext.ca)
        yield site


@pytest.fixture(autouse=True)
def _as_it_was(ext: Extension) -> Iterator[None]:
    before = ext.behaviour
    yield
    ext.behaviour = before
