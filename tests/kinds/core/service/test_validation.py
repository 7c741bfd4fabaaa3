from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.errors import Invalid
from tests.kinds.core.service.service_stage import Stage, causes

PORT = "must be between 1 and 65535, inclusive"
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NO_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
BALANCERS = "Forbidden: may only be used when `type` is 'LoadBalancer'"
EXTERNAL = "Forbidden: may not be set for ExternalName services"


def bad(field: str, value: str, detail: str) -> tuple[str, str]:
    return field, f"Invalid value: {value}: {detail}"


def one(**port: Any) -> dict[str, Any]:
    return {"ports": [{"port": 80, **port}]}


GO_PORT = '{"Name":"","Protocol":"%s","AppProtocol":null,"Port":%d,"TargetPort":0,"NodePort":0}'
TYPES = 'supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'
REFUSED = [
    ({"ports": []}, [("spec.ports", "Required value")]),
    (
        {"ports": [{"port": 0}]},
        [bad("spec.ports[0].port", "0", PORT), bad("spec.ports[0].targetPort", "0", PORT)],
    ),
    (
        {"ports": [{"port": 70000}]},
        [bad("spec.ports[0].port", "70000", PORT), bad("spec.ports[0].targetPort", "70000", PORT)],
    ),
    (
        {"ports": [{"port": 1}, {"port": 2}]},
        [("spec.ports[0].name", "Required value"), ("spec.ports[1].name", "Required value")],
    ),
    (
        {"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]},
        [("spec.ports[1].name", 'Duplicate value: "a"')],
    ),
    (
        {"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]},
        [("spec.ports[1]", f"Duplicate value: {GO_PORT % ('TCP', 1)}")],
    ),
    (one(name="Bad_Name"), [bad("spec.ports[0].name", '"Bad_Name"', LABEL)]),
    (
        one(protocol="XYZ"),
        [("spec.ports[0].protocol", 'Unsupported value: "XYZ": supported values: "SCTP", "TCP", "UDP"')],
    ),
    (
        one(targetPort="way-too-long-port-name"),
        [bad("spec.ports[0].targetPort", '"way-too-long-port-name"', "must be no more than 15 characters")],
    ),
    (
        one(targetPort="Not_Valid"),
        [
            bad(
                "spec.ports[0].targetPort",
                '"Not_Valid"',
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
            )
        ],
    ),
    (
        one(appProtocol="a b"),
        [
            bad(
                "spec.ports[0].appProtocol",
                '"a b"',
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
                "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            )
        ],
    ),
    (one() | {"type": "Odd"}, [("spec.type", f'Unsupported value: "Odd": {TYPES}')]),
    (one() | {"clusterIP": "x"}, [bad("spec.clusterIPs[0]", '"x"', NO_IP)]),
    (
        one() | {"clusterIP": "1.2.3.4"},
        [
            bad(
                "spec.clusterIPs",
                '["1.2.3.4"]',
                "failed to allocate IP 1.2.3.4: the provided network does not match the current range",
            )
        ],
    ),
    (
        one() | {"sessionAffinity": "x"},
        [("spec.sessionAffinity", 'Unsupported value: "x": supported values: "ClientIP", "None"')],
    ),
    (one() | {"type": "ExternalName"}, [("spec.externalName", "Required value")]),
    (one() | {"type": "ExternalName", "externalName": "."}, [("spec.externalName", "Required value")]),
    (
        one() | {"type": "ExternalName", "externalName": "bad name"},
        [bad("spec.externalName", '"bad name"', SUBDOMAIN)],
    ),
    (
        {
            "type": "ExternalName",
            "externalName": "a.example.",
            "clusterIP": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
        },
        [("spec.clusterIPs", EXTERNAL), ("spec.ipFamilies", EXTERNAL), ("spec.ipFamilyPolicy", EXTERNAL)],
    ),
    (
        one() | {"type": "NodePort", "clusterIP": "None"},
        [bad("spec.clusterIPs[0]", '"None"', "may not be set to 'None' for NodePort services")],
    ),
    (
        one() | {"type": "LoadBalancer", "clusterIP": "None"},
        [bad("spec.clusterIPs[0]", '"None"', "may not be set to 'None' for LoadBalancer services")],
    ),
    (
        one() | {"externalIPs": ["0.0.0.0"]},
        [bad("spec.externalIPs[0]", '"0.0.0.0"', "may not be unspecified (0.0.0.0)")],
    ),
    (
        one() | {"externalIPs": ["198.51.100.1", "not-ip", "010.0.0.1"]},
        [
            bad("spec.externalIPs[1]", '"not-ip"', NO_IP),
            bad("spec.externalIPs[2]", '"010.0.0.1"', "must not have leading 0s"),
        ],
    ),
    (
        one() | {"externalTrafficPolicy": "Local"},
        [bad("spec.externalTrafficPolicy", '"Local"', "may only be set for externally-accessible services")],
    ),
    (
        one() | {"type": "NodePort", "externalTrafficPolicy": "x"},
        [("spec.externalTrafficPolicy", 'Unsupported value: "x": supported values: "Cluster", "Local"')],
    ),
    (
        one(nodePort=1) | {"type": "NodePort"},
        [
            bad(
                "spec.ports[0].nodePort",
                "1",
                "provided port is not in the valid range. The range of valid ports is 30000-32767",
            )
        ],
    ),
    (one(nodePort=30000), [("spec.ports[0].nodePort", "Forbidden: may not be used when `type` is 'ClusterIP'")]),
    (one() | {"loadBalancerSourceRanges": ["10.0.0.0/8"]}, [("spec.LoadBalancerSourceRanges", BALANCERS)]),
    (
        one() | {"type": "LoadBalancer", "loadBalancerSourceRanges": [" 10.0.0.0/8 ", "10.0.0.1/8", "x"]},
        [
            bad("spec.LoadBalancerSourceRanges[1]", '"10.0.0.1/8"', "must not have bits set beyond the prefix length"),
            bad("spec.LoadBalancerSourceRanges[2]", '"x"', NO_CIDR),
        ],
    ),
    (one() | {"allocateLoadBalancerNodePorts": False}, [("spec.allocateLoadBalancerNodePorts", BALANCERS)]),
    (one() | {"loadBalancerClass": "example.com/lb"}, [("spec.loadBalancerClass", BALANCERS)]),
    (
        one() | {"healthCheckNodePort": 30000},
        [
            bad(
                "spec.healthCheckNodePort",
                "30000",
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
            )
        ],
    ),
    (
        one() | {"internalTrafficPolicy": "x"},
        [("spec.internalTrafficPolicy", 'Unsupported value: "x": supported values: "Cluster", "Local"')],
    ),
    (
        one() | {"trafficDistribution": "x"},
        [
            (
                "spec.trafficDistribution",
                'Unsupported value: "x": supported values: "PreferClose", "PreferSameZone", "PreferSameNode"',
            )
        ],
    ),
    (
        one() | {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}},
        [
            bad(
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
                "0",
                "must be greater than 0 and less than 86400",
            )
        ],
    ),
    (
        one() | {"ipFamilies": ["IPv7"]},
        [("spec.ipFamilies[0]", 'Unsupported value: "IPv7": supported values: "IPv4", "IPv6"')],
    ),
    (
        one() | {"ipFamilies": ["IPv4", "IPv4"], "ipFamilyPolicy": "PreferDualStack"},
        [("spec.ipFamilies[1]", 'Duplicate value: "IPv4"')],
    ),
    (
        one() | {"ipFamilyPolicy": "Wrong"},
        [
            (
                "spec.ipFamilyPolicy",
                'Unsupported value: "Wrong": supported values: "PreferDualStack", "RequireDualStack", "SingleStack"',
            )
        ],
    ),
    (
        one() | {"clusterIPs": ["10.96.0.133", "10.96.0.134"], "ipFamilyPolicy": "PreferDualStack"},
        [
            bad(
                "spec.clusterIPs",
                '["10.96.0.133","10.96.0.134"]',
                "must be empty when `clusterIP` is not specified",
            ),
            bad(
                "spec.clusterIPs",
                '["10.96.0.133","10.96.0.134"]',
                "may specify no more than one IP for each IP family",
            ),
        ],
    ),
    (
        one() | {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.2"]},
        [bad("spec.clusterIPs", '["10.96.0.2"]', "first value must match `clusterIP`")],
    ),
    (
        one() | {"clusterIP": "None", "clusterIPs": ["None", "None"], "ipFamilyPolicy": "PreferDualStack"},
        [
            bad("spec.clusterIPs", '["None","None"]', "'None' must be the first and only value"),
            bad("spec.clusterIPs[1]", '"None"', NO_IP),
        ],
    ),
    (
        one() | {"clusterIP": "10.96.0.2", "clusterIPs": ["10.96.0.2", "fd00:10:96::2", "10.96.0.3"]},
        [
            bad("spec.clusterIPs", '["10.96.0.2","fd00:10:96::2","10.96.0.3"]', "may only hold up to 2 values"),
        ],
    ),
    (
        one() | {"clusterIP": "10.96.0.2", "ipFamilies": ["IPv6"]},
        [bad("spec.clusterIPs[0]", '"10.96.0.2"', "expected an IPv6 value as indicated by `ipFamilies[0]`")],
    ),
    (
        one() | {"clusterIP": "10.96.0.02"},
        [bad("spec.clusterIPs[0]", '"10.96.0.02"', "must not have leading 0s")],
    ),
    (
        one() | {"clusterIP": "::ffff:10.96.0.2"},
        [bad("spec.clusterIPs[0]", '"::ffff:10.96.0.2"', "must not be an IPv4-mapped IPv6 address")],
    ),
]


@pytest.mark.parametrize(("spec", "found"), REFUSED)
def test_invalid_services_have_kubernetes_errors(spec: dict[str, Any], found: list[tuple[str, str]]) -> None:
    stage = Stage()
    for _ in range(2):  # an invalid value is refused again
        with pytest.raises(Invalid) as refusal:
            stage.create({"selector": {"a": "b"}, **spec})
        assert causes(refusal.value) == found
    assert not stage.state.objects


def test_the_fast_path_for_valid_ports_covers_only_cluster_ips() -> None:
    """The validation caches only valid values, regardless of the order and number of calls."""
    stage = Stage()
    for at, port in enumerate([*range(1, 400), *range(1, 400)]):
        ports = {"ports": [{"port": 80, "name": "a"}, {"port": port, "name": "b"}]}
        if port != 80:
            stage.create({"selector": {"a": "b"}, **ports}, name=f"s-{at}")
            continue
        with pytest.raises(Invalid) as refusal:
            stage.create({"selector": {"a": "b"}, **ports})
        assert causes(refusal.value) == [("spec.ports[1]", f"Duplicate value: {GO_PORT % ('TCP', 80)}")]


@pytest.mark.parametrize(
    "spec",
    [
        one(targetPort=0),
        one(targetPort=""),
        one(appProtocol="kubernetes.io/h2c"),
        {"clusterIP": "None"},
        {"type": "ExternalName", "externalName": "a.example."},
        {"ports": [{"port": 53, "name": "a"}, {"port": 53, "name": "b", "protocol": "UDP"}]},
        one() | {"clusterIP": "FD00:10:96::0:9"},
        one() | {"type": "LoadBalancer", "loadBalancerClass": "example.com/lb"},
        one() | {"trafficDistribution": "PreferSameNode"},
        one() | {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86400}}},
    ],
)
def test_unusual_valid_services_are_accepted(spec: dict[str, Any]) -> None:
    stage = Stage()
    stage.create(spec)
    assert stage.used() == stage.claimed()


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("UPPER_case", LABEL),
        ("-a", LABEL),
        ("a.b", "must not contain dots"),
        ("a" * 64, "must be no more than 63 characters"),
    ],
)
def test_a_name_is_a_dns_label(name: str, detail: str) -> None:
    with pytest.raises(Invalid) as refusal:
        Stage().create(one(), name)
    assert causes(refusal.value) == [bad("metadata.name", f'"{name}"', detail)]


def test_a_name_can_start_with_a_digit() -> None:
    assert Stage().create(one(), "9a")["metadata"]["name"] == "9a"


ANNOTATIONS = [
    (
        {"service.beta.kubernetes.io/load-balancer-source-ranges": "10.0.0.0/8"},
        "ClusterIP",
        [("metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]", BALANCERS)],
    ),
    (
        {"service.beta.kubernetes.io/load-balancer-source-ranges": "10.0.0.0/8, x"},
        "LoadBalancer",
        [bad("metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]", '"x"', NO_CIDR)],
    ),
    (
        {"service.kubernetes.io/topology-mode": "Auto", "service.kubernetes.io/topology-aware-hints": "Disabled"},
        "ClusterIP",
        [
            bad(
                "metadata.annotations[service.kubernetes.io/topology-mode]",
                '"Auto"',
                "must match annotations[service.kubernetes.io/topology-aware-hints] when both are specified",
            )
        ],
    ),
]


@pytest.mark.parametrize(("annotations", "kind", "found"), ANNOTATIONS)
def test_annotations_that_became_fields_are_checked(
    annotations: dict[str, str], kind: str, found: list[tuple[str, str]]
) -> None:
    with pytest.raises(Invalid) as refusal:
        Stage().create(one() | {"type": kind}, metadata={"annotations": annotations})
    assert causes(refusal.value) == found


BALANCER = one() | {"type": "LoadBalancer"}
CHANGES = [
    (
        one() | {"clusterIP": "10.96.0.9"},
        {"clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10"]},
        [bad("spec.clusterIPs[0]", '["10.96.0.10"]', "may not change once set")],
    ),
    (
        one() | {"clusterIP": "10.96.0.9"},
        {"clusterIP": "None"},
        [bad("spec.clusterIPs[0]", '["None"]', "may not change once set")],
    ),
    (
        BALANCER | {"loadBalancerClass": "example.com/a"},
        {"loadBalancerClass": "example.com/b"},
        [bad("spec.loadBalancerClass", '"example.com/b"', "may not change once set")],
    ),
    (BALANCER, {"type": "ClusterIP", "loadBalancerClass": "a"}, [("spec.loadBalancerClass", BALANCERS)] * 2),
    (
        BALANCER | {"externalTrafficPolicy": "Local", "healthCheckNodePort": 30000},
        {"healthCheckNodePort": 30001},
        [("spec.healthCheckNodePort", "Forbidden: field is immutable")],
    ),
    (
        one() | {"ipFamilyPolicy": "RequireDualStack"},
        {"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4"]},
        [bad("spec.ipFamilyPolicy", '"PreferDualStack"', "must be 'SingleStack' to release the secondary IP family")],
    ),
    (
        one() | {"clusterIP": "10.96.0.9", "ipFamilyPolicy": "RequireDualStack"},
        {"clusterIPs": ["10.96.0.9"], "ipFamilyPolicy": "RequireDualStack"},
        [bad("spec.ipFamilyPolicy", '"RequireDualStack"', "must be 'SingleStack' to release the secondary cluster IP")],
    ),
]


@pytest.mark.parametrize(("before", "patch", "found"), CHANGES)
def test_immutable_fields_are_refused(
    before: dict[str, Any], patch: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    stage = Stage()
    stage.create(before)
    held = stage.claimed()
    with pytest.raises(Invalid) as refusal:
        stage.patch({"spec": patch})
    assert causes(refusal.value) == found
    assert stage.claimed() == held


def test_existing_errors_are_tolerated() -> None:
    stage = Stage()
    service = stage.create(one() | {"externalIPs": ["198.51.100.1"]})
    kept = ["198.051.100.001"]
    old = service | {"spec": service["spec"] | {"externalIPs": kept}}
    ctx = stage.context(old=old)
    assert not stage.strategy.validate(ctx, old)
    assert [error.field for error in stage.strategy.validate(stage.context(), old)] == ["spec.externalIPs[0]"]
