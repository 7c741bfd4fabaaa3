"""Tests of the API group metrics.k8s.io, which an extension server serves to the front proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.authentication.user import CredentialsRefused, User
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.request_head import Head
from ctrlmgr.http.size_limits import DEFAULT
from ctrlmgr.server.authn.authenticator_interfaces import RequestParts
from ctrlmgr.server.metrics_api import MetricsApi
from tests.http.test_exchange import RecordedConnection

PODS = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "shop", "labels": labels}, "containers": []}


def listed(resource: str, namespace: str) -> Iterable[dict[str, Any]]:
    assert resource == "pods"
    return [pod("web-1", app="web"), pod("db-1", app="db")] if namespace in ("", "shop") else []


class Proxy:
    """An authenticator that accepts any client certificate of the front proxy except one."""

    async def authenticate(self, parts: RequestParts) -> User | None:
        if parts.certificates == (b"other",):
            raise CredentialsRefused
        return User("jane") if parts.certificates else None


def ask(path: str, query: bytes = b"", method: str = "GET", certificates: Sequence[bytes] = (b"proxy",)) -> Any:
    class ProxyConnection(RecordedConnection):
        @property
        def certificates(self) -> Sequence[bytes]:
            return certificates

    line = ProxyConnection()
    head = Head(method, path.encode(), query, HeaderLines())
    asyncio.run(MetricsApi(listed, Proxy())(Exchange(head, line, DEFAULT)))
    first, _, body = line.written.partition(b"\r\n\r\n")
    return int(first.split()[1]), msgspec.json.decode(body)


def test_pods_are_listed_and_selected_by_labels() -> None:
    code, found = ask(PODS)
    assert (code, found["kind"], found["apiVersion"]) == (200, "PodMetricsList", "metrics.k8s.io/v1beta1")
    assert [each["metadata"]["name"] for each in found["items"]] == ["web-1", "db-1"]
    _, found = ask(PODS, b"labelSelector=app%3Dweb")
    assert [each["metadata"]["name"] for each in found["items"]] == ["web-1"]
    assert ask("/apis/metrics.k8s.io/v1beta1/namespaces/other/pods")[1]["items"] == []


def test_one_pod_is_found_by_its_name() -> None:
    assert ask(f"{PODS}/db-1")[1]["metadata"]["labels"] == {"app": "db"}
    code, found = ask(f"{PODS}/gone")
    assert (code, found["message"]) == (404, 'pods.metrics.k8s.io "gone" not found')


def test_the_version_lists_its_resources() -> None:
    _, found = ask("/apis/metrics.k8s.io/v1beta1")
    assert [(each["name"], each["kind"]) for each in found["resources"]] == [
        ("nodes", "NodeMetrics"),
        ("pods", "PodMetrics"),
    ]
    assert ask("/apis")[1]["groups"][0]["name"] == "metrics.k8s.io"


@pytest.mark.parametrize(
    ("path", "query", "method", "code"),
    [
        (PODS, b"watch=1", "GET", 405),
        (PODS, b"", "POST", 405),
        (PODS, b"labelSelector=a%3D%3D%3Db", "GET", 400),
        ("/apis/metrics.k8s.io/v1beta1/things", b"", "GET", 404),
        ("/api/v1/pods", b"", "GET", 404),
    ],
)
def test_other_requests_are_refused(path: str, query: bytes, method: str, code: int) -> None:
    assert ask(path, query, method)[0] == code


@pytest.mark.parametrize("certificates", [(), (b"other",)])
def test_only_the_front_proxy_is_answered(certificates: Sequence[bytes]) -> None:
    assert ask(PODS, certificates=certificates)[0] == 401
