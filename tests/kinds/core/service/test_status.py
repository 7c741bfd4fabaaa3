from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.errors import Invalid
from ctrlmgr.kinds.core.service.warnings import status_warnings
from tests.kinds.core.service.service_stage import Stage, causes

BALANCER = {"type": "LoadBalancer", "ports": [{"port": 80}]}
INGRESS = "status.loadBalancer.ingress"
NO_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def status(*ingress: dict[str, Any]) -> dict[str, Any]:
    return {"status": {"loadBalancer": {"ingress": list(ingress)}}}


REFUSED = [
    (status({"ip": "bad"}), [(f"{INGRESS}[0].ip", f'Invalid value: "bad": {NO_IP}')]),
    (
        status({"ip": "198.51.100.1", "ipMode": "Odd"}),
        [(f"{INGRESS}[0].ipMode", 'Unsupported value: "Odd": supported values: "Proxy", "VIP"')],
    ),
    (
        status({"ipMode": "VIP", "hostname": "a.example"}),
        [(f"{INGRESS}[0].ipMode", "Forbidden: may not be specified when `ip` is not set")],
    ),
    (
        status({"hostname": "a.example"}, {"hostname": "198.51.100.1"}),
        [(f"{INGRESS}[1].hostname", 'Invalid value: "198.51.100.1": must be a DNS name, not an IP address')],
    ),
    (
        {"spec": {"type": "NodePort"}} | status({"ip": "198.51.100.1"}),
        [(f"{INGRESS}[0].ipMode", "Required value: must be specified when `ip` is set")],
    ),
]


@pytest.mark.parametrize(("patch", "found"), REFUSED)
def test_an_invalid_load_balancer_status_is_refused(patch: dict[str, Any], found: list[tuple[str, str]]) -> None:
    stage = Stage()
    stage.create(BALANCER)
    with pytest.raises(Invalid) as refusal:
        stage.patch(patch, subresource="status")
    assert causes(refusal.value) == found


def test_other_types_have_no_load_balancer_status() -> None:
    stage = Stage()
    stage.create({"ports": [{"port": 80}]})
    with pytest.raises(Invalid) as refusal:
        stage.patch(status({"ip": "198.51.100.1"}), subresource="status")
    assert causes(refusal.value) == [(INGRESS, "Forbidden: may only be used when `spec.type` is 'LoadBalancer'")]


def test_an_unchanged_invalid_address_is_tolerated() -> None:
    stage = Stage()
    service = stage.create(BALANCER)
    old = service | status({"ip": "198.051.100.1", "ipMode": "VIP"})
    ctx = stage.context(old=old, subresource="status")
    assert stage.strategy.validate_update(ctx, old, old) == []
    assert [error.field for error in stage.strategy.validate_update(ctx, old, service)] == [f"{INGRESS}[0].ip"]


def test_the_load_balancer_status_follows_the_type_and_conditions_are_kept() -> None:
    stage = Stage()
    stage.create(BALANCER, status={"loadBalancer": {"ingress": [{"ip": "198.51.100.9"}]}})
    assert stage.get("s")["status"] == {"loadBalancer": {}}
    reported = stage.patch(
        {"status": {**status({"ip": "198.51.100.1"})["status"], "conditions": [{"type": "X", "status": "True"}]}},
        subresource="status",
    )["status"]
    assert reported["loadBalancer"] == {"ingress": [{"ip": "198.51.100.1", "ipMode": "VIP"}]}
    assert stage.companions == []
    assert stage.patch({"spec": {"publishNotReadyAddresses": True}, "status": None})["status"] == reported
    left = stage.patch({"spec": {"type": "ClusterIP"}})["status"]
    assert left == {"conditions": reported["conditions"], "loadBalancer": {}}


def test_a_status_write_keeps_addresses_and_ports() -> None:
    stage = Stage()
    spec = stage.create(BALANCER)["spec"]
    held = stage.claimed()
    patch = {"spec": {"type": "ExternalName", "externalName": "a.example"}} | status({"hostname": "a.example"})
    assert stage.patch(patch, subresource="status")["spec"] == spec
    assert stage.claimed() == held


def test_non_canonical_addresses_cause_warnings() -> None:
    service = {"spec": BALANCER, **status({"ip": "FE80::1"}, {"hostname": "a.example"})}
    form = 'should be in RFC 5952 canonical format ("fe80::1")'
    assert status_warnings(service) == [f'{INGRESS}[0]: IPv6 address "FE80::1" {form}']
