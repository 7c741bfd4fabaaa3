"""Tests of the address at which a webhook is called: the URL in its configuration, or a ready
endpoint of its Service.
"""

from __future__ import annotations

from base64 import b64encode
from random import Random
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.engine.calls.endpoint import endpoint_of
from tests.kinds.stage import Objects


def service(**spec: Any) -> Object:
    given = {"ports": [{"name": "https", "port": 443}, {"name": "more", "port": 8443}], **spec}
    metadata = {"name": "hooks", "namespace": "shop"}
    return Object.from_dict({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": given})


def slice_of(*addresses: str, name: str = "s", owner: str = "hooks", ready: bool | None = True) -> Object:
    metadata = {"name": name, "namespace": "shop", "labels": {"kubernetes.io/service-name": owner}}
    conditions = {} if ready is None else {"ready": ready}
    return Object.from_dict(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": metadata,
            "addressType": "IPv4",
            "ports": [{"name": "https", "port": 9443}, {"name": "more", "port": 9444}],
            "endpoints": [{"addresses": [each], "conditions": conditions} for each in addresses],
        }
    )


def node(name: str, *, simulated: bool) -> Object:
    labels = {"simulate.ctrlmgr.io/node": "true"} if simulated else {}
    return Object.from_dict({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})


def placed(slice_: Object, node: str) -> Object:
    fields = slice_.to_dict()
    return Object.from_dict({**fields, "endpoints": [{**each, "nodeName": node} for each in fields["endpoints"]]})


def found(*objects: Object, **reference: Any) -> Any:
    client = {"service": {"name": "hooks", "namespace": "shop", **reference}}
    return endpoint_of(client, Objects(objects), Random(1))


@pytest.mark.parametrize(
    ("reference", "url", "port"),
    [
        ({}, "https://hooks.shop.svc:443/", 9443),
        ({"path": "/v"}, "https://hooks.shop.svc:443/v", 9443),
        ({"path": "v", "port": 8443}, "https://hooks.shop.svc:8443/v", 9444),
    ],
)
def test_a_service_is_resolved_by_its_slices_and_keeps_its_host_name(
    reference: dict[str, Any], url: str, port: int
) -> None:
    strange = slice_of("192.0.2.9", name="t", owner="others")
    there = found(service(), slice_of("192.0.2.1"), strange, **reference)
    assert (there.url, there.address, there.problem) == (url, ("192.0.2.1", port), "")


def test_ready_endpoints_are_called_in_turn() -> None:
    objects = (service(), slice_of("192.0.2.1", "192.0.2.2"), slice_of("192.0.2.3", name="t", ready=None))
    random, client = Random(1), {"service": {"name": "hooks", "namespace": "shop"}}
    hosts = {(endpoint_of(client, Objects(objects), random).address or ("", 0))[0] for _ in range(50)}
    assert hosts == {"192.0.2.1", "192.0.2.2", "192.0.2.3"}


@pytest.mark.parametrize(
    ("objects", "reference", "problem"),
    [
        ((), {}, 'service "hooks" not found'),
        ((service(),), {}, 'no endpoints available for service "hooks"'),
        ((service(), slice_of("192.0.2.1", ready=False)), {}, 'no endpoints available for service "hooks"'),
        ((service(), slice_of("192.0.2.1")), {"port": 1}, 'no service port 1 found for service "hooks"'),
    ],
)
def test_a_service_without_endpoints_is_an_error(
    objects: tuple[Object, ...], reference: dict[str, Any], problem: str
) -> None:
    there = found(*objects, **reference)
    assert (there.address, there.problem) == (None, problem)


def test_endpoints_on_simulated_nodes_are_not_called() -> None:
    nodes = (node("sim", simulated=True), node("real", simulated=False))
    on = placed(slice_of("192.0.2.1", "192.0.2.2"), "sim")
    there = found(service(), *nodes, on)
    assert (there.is_simulated, there.address, there.problem) == (True, None, "")
    for other in (placed(slice_of("192.0.2.3", name="t"), "real"), slice_of("192.0.2.3", name="t")):
        there = found(service(), *nodes, on, other)
        assert (there.is_simulated, there.address) == (False, ("192.0.2.3", 9443))
    there = found(service(), *nodes, placed(slice_of("192.0.2.1", ready=False), "sim"))
    assert (there.is_simulated, there.problem) == (False, 'no endpoints available for service "hooks"')


def test_an_external_name_is_resolved() -> None:
    assert found(service(type="ExternalName", externalName="hooks.example.com")).address == ("hooks.example.com", 443)


def test_a_url_is_called_unchanged_except_for_its_query() -> None:
    client = {"url": "https://hooks.example.com:8443?a=b#c", "caBundle": b64encode(b"pem").decode()}
    there = endpoint_of(client, Objects(), Random(1))
    assert (there.url, there.ca_bundle, there.address) == ("https://hooks.example.com:8443/", b"pem", None)
