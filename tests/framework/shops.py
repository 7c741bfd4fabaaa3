"""The scenario that the example operator must pass in each environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

SHOP = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "corner"},
    "spec": {"prices": {"tea": 3, "milk": 2}},
}


class Cluster(Protocol):
    """The interface of a cluster in the scenario; all objects are in the namespace `default`."""

    def create(self, obj: Mapping[str, Any]) -> None: ...

    def patch(self, kind: str, name: str, patch: Mapping[str, Any]) -> None: ...

    def delete(self, kind: str, name: str) -> None: ...

    def get(self, kind: str, name: str) -> Any: ...

    def refusal(self, obj: Mapping[str, Any]) -> str: ...

    def eventually(self, holds: Callable[[], bool]) -> None: ...


def check_scenario(cluster: Cluster) -> None:
    def prices() -> Any:
        found = cluster.get("v1/ConfigMap", "corner-prices")
        return found and found["data"]

    def status() -> Any:
        return cluster.get("example.com/v1/Shop", "corner").get("status") or {}

    cluster.create(SHOP)
    cluster.eventually(lambda: prices() == {"tea": "3 EUR", "milk": "2 EUR"})
    cluster.eventually(lambda: status().get("prices") == 2)
    assert [(each["type"], each["status"]) for each in status()["conditions"]] == [("Ready", "True")]
    owners = cluster.get("v1/ConfigMap", "corner-prices")["metadata"]["ownerReferences"]
    assert [(each["kind"], each["name"], each["controller"]) for each in owners] == [("Shop", "corner", True)]

    cluster.patch("example.com/v1/Shop", "corner", {"spec": {"currency": "SEK", "prices": {"milk": None}}})
    cluster.eventually(lambda: prices() == {"tea": "3 SEK"})
    cluster.eventually(lambda: status().get("prices") == 1)
    assert status()["observedGeneration"] == 2

    cluster.delete("v1/ConfigMap", "corner-prices")
    cluster.eventually(lambda: prices() == {"tea": "3 SEK"})
    cluster.patch("v1/ConfigMap", "corner-prices", {"data": {"tea": "nothing"}})
    cluster.eventually(lambda: prices() == {"tea": "3 SEK"})

    assert "spec.currency" in cluster.refusal(
        {**SHOP, "metadata": {"name": "bad"}, "spec": {"prices": {"tea": 1}, "currency": "crowns"}}
    )
