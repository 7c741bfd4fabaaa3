"""A load for the endpoints controllers: pods become ready and are deleted, and namespaces are filled and deleted."""

from __future__ import annotations

from typing import Any

from tests.e2e.clients.client_go import Unstructured
from tests.e2e.load import LABELS
from tests.e2e.serving import Server, until

NODE = "node-a"
"""The name of the pods' node, because EndpointSlices contain no pods without a node."""

_SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"


def pod(name: str, node: str = NODE) -> Unstructured:
    container = {"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 8080}]}
    spec = {"containers": [container], "nodeName": node}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def running(name: str) -> Unstructured:
    """Return the status of a ready pod; the pod's address depends on its name."""
    address = f"10.0.0.{sum(name.encode()) % 250}"
    conditions = [{"type": "Ready", "status": "True"}]
    return {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}


def come_and_go(server: Server, namespace: str) -> None:
    """Create a namespace with a Service and its pod, and delete the namespace, which takes a while."""
    server.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    spec = {"selector": LABELS, "ports": [{"port": 80, "targetPort": "http"}]}
    server.create(f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": "web"}, "spec": spec})
    fields = pod("one", node="")  # so that the pod is removed without a kubelet
    made = server.create(
        f"/api/v1/namespaces/{namespace}/pods", {**fields, "metadata": {"name": "one", "labels": LABELS}}
    )
    place = f"/api/v1/namespaces/{namespace}/pods/one"
    assert server.request("PUT", f"{place}/status", {**made, "status": running("one")})[0] == 200
    assert server.request("DELETE", f"/api/v1/namespaces/{namespace}")[0] == 200


def settle(server: Server, namespace: str, gone: list[str]) -> None:
    """Wait until the Endpoints and EndpointSlices of the Services in `namespace` are correct, and the namespaces in
    `gone` are removed.
    """
    until(lambda: all(server.request("GET", f"/api/v1/namespaces/{name}")[0] == 404 for name in gone))
    until(lambda: _wanted(server, namespace).items() <= _by_service(server, namespace).items())


def _items(server: Server, path: str) -> list[Any]:
    code, answer = server.request("GET", path)
    assert code == 200, answer
    items: list[Any] = answer["items"]
    return items


def _wanted(server: Server, namespace: str) -> dict[str, tuple[list[str], list[str]]]:
    pods = _items(server, f"/api/v1/namespaces/{namespace}/pods")
    chosen = [each for each in pods if each["metadata"].get("labels") == LABELS and each["status"].get("podIP")]
    # Endpoints contain no terminating pods; slices contain terminating pods, marked as such.
    ready = [each["status"]["podIP"] for each in chosen if "deletionTimestamp" not in each["metadata"]]
    every = [each["status"]["podIP"] for each in chosen]
    services = _items(server, f"/api/v1/namespaces/{namespace}/services")
    # A terminating pod gets no new slices, so the time of its deletion determines whether it is in a slice.
    staying = [each for each in services if "deletionTimestamp" not in each["metadata"]]
    return {each["metadata"]["name"]: (sorted(ready), sorted(every)) for each in staying}


def _by_service(server: Server, namespace: str) -> dict[str, tuple[list[str], list[str]]]:
    slices: dict[str, list[str]] = {}
    for each in _items(server, _SLICES.format(namespace)):
        addresses = slices.setdefault(each["metadata"]["labels"]["kubernetes.io/service-name"], [])
        addresses += [address for endpoint in each["endpoints"] or () for address in endpoint["addresses"]]
    found = {}
    for each in _items(server, f"/api/v1/namespaces/{namespace}/endpoints"):
        name, subsets = each["metadata"]["name"], each.get("subsets", ())
        addresses = [address["ip"] for subset in subsets for address in subset.get("addresses", ())]
        found[name] = (sorted(addresses), sorted(slices.get(name, ())))
    return found
