"""Tests of two serving processes on one log, one of which does not serve some API groups: it forwards their requests to
the other.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.errors import SettingsError
from ctrlmgr.serve.identity.serving_peers import GATE, new_peer_proxy, peer_address, peer_authorities
from ctrlmgr.settings import Settings
from ctrlmgr.settings.server_settings import ServerSettings
from tests.e2e.serving import Server, until
from tests.free_ports import free_ports

JOBS = "/apis/batch/v1/namespaces/default/jobs"
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
HOOKS = (
    "peer-endpoint-reconciler-controller",
    "mixed-version-proxy-handler",
    "local-discovery-cache-sync",
    "peer-discovery-workers",
)


class Pair(NamedTuple):
    """Two processes that serve the same log."""

    full: Server
    partial: Server
    """A process that does not serve batch/v1 and authentication.k8s.io/v1."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    shared = tmp_path_factory.mktemp("peers")
    flags = [
        f"--database=sqlite:///{shared / 'log.db'}",
        f"--identity-dir={shared / 'identity'}",
        f"--peer-ca-file={shared / 'identity' / 'ca.crt'}",
    ]
    without = "--runtime-config=batch/v1=false,authentication.k8s.io/v1=false"
    full_port, partial_port = free_ports(2)
    full = Server(tmp_path_factory.mktemp("full"), *flags, f"--listen=127.0.0.1:{full_port}")
    partial = Server(tmp_path_factory.mktemp("partial"), *flags, f"--listen=127.0.0.1:{partial_port}", without)
    with full.running():
        partial.start()
        until(lambda: partial.request("GET", "/api/v1/namespaces/default")[0] == 200)
        until(lambda: partial.request("GET", JOBS)[0] == 200)
        yield Pair(full, partial)
        partial.stop()
    # the Lease of a stopped process is deleted, so it is no peer any more


def raw(server: Server, path: str, **headers: str) -> tuple[int, str]:
    """Send a GET with further headers; return the status code and the text of the body."""
    with closing(
        http.client.HTTPSConnection(urlsplit(server.url).netloc, timeout=30, context=server._trust)
    ) as connection:
        connection.request("GET", path, headers={"Authorization": f"Bearer {server.token}", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def names(document: Any) -> list[str]:
    return [each["metadata"]["name"] for each in document["items"]]


def test_a_request_for_a_resource_of_a_peer_is_forwarded(pair: Pair) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    created = pair.partial.create(JOBS, {"metadata": {"name": "forwarded"}, "spec": {"template": template}})
    code, found = pair.full.request("GET", f"{JOBS}/forwarded")
    assert (code, found["metadata"]["uid"]) == (200, created["metadata"]["uid"])
    code, watched = raw(pair.partial, f"{JOBS}?watch=1&timeoutSeconds=1&resourceVersion=0")
    assert (code, json.loads(watched.splitlines()[0])["object"]["metadata"]["name"]) == (200, "forwarded")
    _, metrics = pair.partial.request("GET", "/metrics")
    line = 'apiserver_rerouted_request_total{code="201",group="batch",resource="jobs",version="v1"} 1.0'
    assert line in metrics.splitlines()


def test_the_peer_gets_the_user_of_the_request(pair: Pair) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = pair.partial.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    user = answer["status"]["userInfo"]
    assert (user["username"], sorted(user["groups"])) == ("system:admin", ["system:authenticated", "system:masters"])


def test_a_forwarded_request_is_not_forwarded_again(pair: Pair) -> None:
    assert raw(pair.partial, JOBS, **{"X-Kubernetes-Peer-Proxied": "true"})[0] == 404


def test_a_resource_that_no_process_serves_is_not_found(pair: Pair) -> None:
    assert pair.partial.request("GET", "/apis/batch/v7/namespaces/default/jobs")[0] == 404


def test_discovery_contains_the_groups_of_peers(pair: Pair) -> None:
    _, merged = pair.partial.request("GET", "/apis", accept=V2)
    assert "batch" in names(merged)
    assert pair.full.request("GET", "/apis", accept=V2)[1]["items"] == merged["items"]
    _, own = pair.partial.request("GET", "/apis", accept=f"{V2};profile=nopeer")
    assert "batch" not in names(own)
    assert {*names(own)} < {*names(merged)}


def test_the_hooks_have_the_names_of_kubernetes(pair: Pair) -> None:
    _, checks = pair.partial.request("GET", "/readyz?verbose")
    assert [name for name in HOOKS if f"[+]poststarthook/{name} ok" not in checks] == []


def settings(**values: Any) -> Settings:
    return Settings(server=ServerSettings(**values))


def proxy(**values: Any) -> Any:
    nothing: Any = None
    return new_peer_proxy(settings(**values), nothing, nothing, None, nothing, clock=SystemClock(), random=Random(1))


@pytest.fixture
def _without_gate() -> Iterator[None]:
    switch({GATE: False})
    yield
    switch({})


@pytest.mark.parametrize(
    ("setting", "flag"),
    [
        ("peer_ca_file", "--peer-ca-file"),
        ("peer_advertise_ip", "--peer-advertise-ip"),
        ("peer_advertise_port", "--peer-advertise-port"),
    ],
)
@pytest.mark.usefixtures("_without_gate")
def test_without_the_feature_gate_the_flags_are_refused(setting: str, flag: str) -> None:
    assert peer_address(settings(), 6443) == ""
    with pytest.raises(SettingsError, match=f"{flag} requires {GATE} feature to be turned on"):
        proxy(**{setting: "x"})


@pytest.mark.parametrize("port", ["0", "65536", "https", "-1"])
def test_an_invalid_port_is_refused(port: str) -> None:
    with pytest.raises(SettingsError, match="--peer-advertise-port is"):
        proxy(peer_advertise_port=port)


def test_the_address_for_peers_can_be_set() -> None:
    assert peer_address(settings(listen="127.0.0.1:0"), 6443) == "127.0.0.1:6443"
    given = settings(peer_advertise_ip="2001:db8::1", peer_advertise_port="443", advertise_address="192.0.2.1")
    assert peer_address(given, 6443) == "[2001:db8::1]:443"
    only_port = settings(peer_advertise_port="443", advertise_address="192.0.2.1")
    assert peer_address(only_port, 6443) == "192.0.2.1:6443"


def test_an_unusable_file_of_authorities_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_text("no certificate")
    for path in (file, tmp_path / "missing.crt"):
        with pytest.raises(SettingsError, match="--peer-ca-file: "):
            peer_authorities(path)
