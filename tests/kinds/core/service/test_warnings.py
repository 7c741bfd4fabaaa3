from __future__ import annotations

from typing import Any

import pytest

from tests.kinds.core.service.service_stage import Stage

PORTS: dict[str, Any] = {"ports": [{"port": 80}]}
DEPRECATED = "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
CANONICAL = "should be in RFC 5952 canonical format"
WARNED = [
    (PORTS, []),
    (PORTS | {"type": "LoadBalancer", "externalIPs": ["198.51.100.1"]}, [DEPRECATED]),
    (
        PORTS | {"externalIPs": ["2001:DB8::1"]},
        [DEPRECATED, f'spec.externalIPs[0]: IPv6 address "2001:DB8::1" {CANONICAL} ("2001:db8::1")'],
    ),
    (
        PORTS | {"clusterIP": "fd00:10:96::0009"},
        [f'spec.clusterIPs[0]: IPv6 address "fd00:10:96::0009" {CANONICAL} ("fd00:10:96::9")'],
    ),
    (
        {
            "clusterIP": "None",
            "sessionAffinity": "ClientIP",
            "externalIPs": ["198.51.100.1"],
            "loadBalancerIP": "192.0.2.1",
        },
        [
            "spec.loadBalancerIP is ignored for headless services",
            "spec.externalIPs is ignored for headless services",
            "spec.SessionAffinity is ignored for headless services",
            DEPRECATED,
        ],
    ),
    (
        PORTS | {"type": "LoadBalancer", "loadBalancerIP": "192.0.2.01"},
        ['spec.loadBalancerIP: non-standard IP address "192.0.2.01" is invalid: use "192.0.2.1"'],
    ),
    (
        PORTS | {"type": "LoadBalancer", "loadBalancerSourceRanges": ["2001:DB8::/64"]},
        [f'spec.loadBalancerSourceRanges[0]: IPv6 CIDR value "2001:DB8::/64" {CANONICAL} ("2001:db8::/64")'],
    ),
    (
        {"type": "ExternalName", "externalName": "a.example", "externalIPs": ["198.51.100.1"]},
        [DEPRECATED, 'spec.externalIPs is ignored when spec.type is "ExternalName"'],
    ),
    (PORTS | {"externalName": "a.example"}, ['spec.externalName is ignored when spec.type is not "ExternalName"']),
    (
        PORTS | {"trafficDistribution": "PreferClose"},
        ['spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'],
    ),
]


@pytest.mark.parametrize(("spec", "warned"), WARNED)
def test_ineffective_or_deprecated_fields_cause_warnings(spec: dict[str, Any], warned: list[str]) -> None:
    stage = Stage()
    stage.create(spec)
    assert stage.warnings == warned
    stage.patch({"metadata": {"labels": {"a": "b"}}})
    assert stage.warnings == warned


def test_a_renamed_annotation_causes_a_warning() -> None:
    stage = Stage()
    stage.create(PORTS, metadata={"annotations": {"service.kubernetes.io/topology-aware-hints": "Auto"}})
    assert stage.warnings == [
        "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use "
        "service.kubernetes.io/topology-mode instead"
    ]
    stage.patch({}, subresource="status")
    assert stage.warnings == []
