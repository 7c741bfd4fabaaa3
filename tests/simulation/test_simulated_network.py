"""Tests of DNS names and Services in containers on simulated nodes, and of the tools that connect to them."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.simulation.shell import run
from ctrlmgr.simulation.simulated_files import Files
from ctrlmgr.simulation.simulated_network import (
    REFUSED,
    TIMEOUT,
    UNKNOWN_HOST,
    Answer,
    ServiceName,
    ServiceState,
    Slice,
    candidates,
    is_of_cluster,
)

READY = {"addresses": ["10.244.0.7"], "conditions": {"ready": True}}


class Hosts:
    """A network with the Services `web` and `db`; `db` becomes ready after ten seconds, and the host `slow` never
    responds.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, int | None]] = []

    def connect(self, host: str, port: int | None, at: float) -> Answer:
        self.asked.append((host, port))
        if host not in ("web", "db", "slow"):
            return Answer("", UNKNOWN_HOST)
        if host == "slow" and port is not None:
            return Answer("10.96.0.3", TIMEOUT)
        is_refused = port is not None and host == "db" and at < 10
        return Answer("10.96.0.1", REFUSED if is_refused else "")

    def next_change(self, after: float) -> float | None:
        return 10.0 if after < 10 and any(host == "db" for host, _ in self.asked) else None


def slice_of(*endpoints: dict[str, Any], ports: tuple[str, ...] = ("http",)) -> Slice:
    return Slice.of({"endpoints": endpoints, "ports": [{"name": each, "port": 8080} for each in ports]})


def state(*slices: Slice, **spec: Any) -> ServiceState:
    ports = [{"name": "http", "port": 80}, {"name": "admin", "port": 9000}]
    return ServiceState.of({"spec": {"clusterIP": "10.96.0.9", "ports": ports, **spec}}, slices)


@pytest.mark.parametrize(
    ("found", "port", "problem"),
    [
        pytest.param(state(slice_of(READY)), 80, "", id="a port with a ready endpoint"),
        pytest.param(state(slice_of({"addresses": ["10.244.0.7"]})), 80, "", id="an endpoint that says nothing of it"),
        pytest.param(state(slice_of(READY)), 9000, REFUSED, id="a port without endpoints"),
        pytest.param(state(slice_of(READY)), 81, TIMEOUT, id="no such port"),
        pytest.param(state(slice_of(READY)), None, "", id="its name alone"),
        pytest.param(state(), 80, REFUSED, id="no endpoints"),
        pytest.param(state(slice_of(READY | {"conditions": {"ready": False}})), 80, REFUSED, id="not ready"),
        pytest.param(state(slice_of(READY), clusterIP="None"), 4711, "", id="headless: any port of a pod"),
        pytest.param(state(clusterIP="None"), 80, UNKNOWN_HOST, id="headless without endpoints"),
        pytest.param(state(type="ExternalName", externalName="example.com", clusterIP=""), 80, "", id="external"),
    ],
)
def test_a_service_with_a_ready_endpoint_accepts_connections(
    found: ServiceState, port: int | None, problem: str
) -> None:
    assert found.connect(port).problem == problem


def test_pods_of_a_headless_service_have_names() -> None:
    found = state(slice_of(READY | {"hostname": "web-0"}), clusterIP="None")
    assert found.connect_host("web-0") == Answer("10.244.0.7")
    assert found.connect_host("web-1").problem == UNKNOWN_HOST


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("web", [ServiceName("a", "web")]),
        ("WEB.b", [ServiceName("a", "b", "web"), ServiceName("b", "web")]),
        ("web.b.svc", [ServiceName("svc", "b", "web"), ServiceName("b", "web")]),
        ("web.b.svc.cluster.local", [ServiceName("b", "web")]),
        ("web.b.svc.cluster.local.", [ServiceName("b", "web")]),
        ("db-0.db.b.svc", [ServiceName("b", "db", "db-0")]),
        ("web.", []),
    ],
)
def test_names_are_resolved_by_search_domains(host: str, names: list[ServiceName]) -> None:
    assert [*candidates(host, "a")] == names


@pytest.mark.parametrize(
    ("host", "expected"),
    [("web", True), ("web.b", True), ("web.b.svc", True), ("x.cluster.local", True), ("example.com", False)],
)
def test_hosts_outside_the_cluster_are_not_resolved(host: str, expected: bool) -> None:
    assert is_of_cluster(host, ["b"]) is expected


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("wget web:80", 0, "Connecting to web:80 (10.96.0.1:80)\nsaving to 'index.html'\n'index.html' saved\n"),
        ("wget -q -O- http://web/health", 0, ""),
        ("wget http://web/a/b.tgz -P /dl -q && ls /dl", 0, "b.tgz\n"),
        ("wget --spider --timeout=3 web", 0, "Connecting to web:80 (10.96.0.1:80)\nremote file exists\n"),
        ("wget db:5432", 1, "Connecting to db:5432 (10.96.0.1:5432)\nwget: can't connect to remote host (10.96.0.1): "
         "Connection refused\n"),
        ("wget nowhere", 1, "wget: bad address 'nowhere:80'\n"),
        ("wget -T 3 slow", 1, "Connecting to slow:80 (10.96.0.3:80)\nwget: download timed out\n"),
        ("wget", 1, "wget: missing URL\n"),
        ("curl -fsS https://web:8443/healthz", 0, ""),
        ("curl db:5432", 7, "curl: (7) Failed to connect to db port 5432 after 0 ms: Could not connect to server\n"),
        ("curl -s db:5432", 7, ""),
        ("curl -sS nowhere", 6, "curl: (6) Could not resolve host: nowhere\n"),
        ("curl -m 2 slow", 28, "curl: (28) Connection timed out after 2000 milliseconds\n"),
        ("curl -s -o /f -w '%{http_code}\\n' web && ls /f", 0, "200\n/f\n"),
        ("curl -s -w '%{http_code}' db; true", 0, "000"),
        ("curl -sI web", 0, "HTTP/1.1 200 OK\r\n\r\n"),
        ("curl", 2, "curl: (3) URL rejected: No host part in the URL\n"),
        ("nc -z web 80", 0, ""),
        ("nc -zv web 80", 0, "web (10.96.0.1:80) open\n"),
        ("nc -zv -w 2 db 5432", 1, "db (10.96.0.1:5432): Connection refused\n"),
        ("nc -z nowhere 80", 1, "nc: bad address 'nowhere'\n"),
        ("echo hello | nc web 80", 0, ""),
        ("nslookup web", 0, "Name:\tweb\nAddress: 10.96.0.1\n"),
        ("nslookup nowhere", 1, "** server can't find nowhere: NXDOMAIN\n"),
        ("getent hosts db", 0, "10.96.0.1  db\n"),
        ("getent hosts nowhere", 2, ""),
        ("(echo > /dev/tcp/web/80) && echo open", 0, "open\n"),
        ("(echo > /dev/tcp/db/80) 2>/dev/null || echo closed", 0, "closed\n"),
        ("exec 3<>/dev/tcp/web/80; echo $?", 0, "0\n"),
    ],
)  # fmt: skip
def test_network_tools_connect(script: str, code: int, said: str) -> None:
    found = run(script, Files(), {}, network=Hosts())
    assert ("".join(each.written for each in found.lines).replace("nc: db", "db"), found.code) == (said, code)
    assert not found.unknown


@pytest.mark.parametrize(
    ("script", "ends_at"),
    [
        pytest.param("until nc -z db 5432; do sleep 2; done", 10.06, id="a loop with a pause"),
        pytest.param("until wget -q db:5432; do :; done", 10.01, id="a loop without"),
        pytest.param("curl -m 5 slow", 5.0, id="an answer that does not come"),
        pytest.param("until nc -z nowhere 80; do sleep 1; done", None, id="a host that never exists"),
        pytest.param("nc -l -p 80", None, id="a server"),
        pytest.param("while true; do sleep 1; done", None, id="nothing is asked for"),
    ],
)
def test_scripts_that_wait_for_a_service_end(script: str, ends_at: float | None) -> None:
    found = run(script, Files(), {}, network=Hosts())
    assert found.ends_at == (None if ends_at is None else pytest.approx(ends_at, abs=0.02))
    assert not found.unknown
