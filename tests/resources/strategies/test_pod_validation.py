"""Which pods are refused, and in which words: the wire corpus' cases first, then what it does not reach."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.resources.strategies.pod import PodStrategy
from tests.resources.strategies.stage import Stage, merged

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
KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
PORTS = "spec.containers[0].ports"
Causes = list[tuple[str, str]]


@pytest.fixture(scope="module")
def stage() -> Stage:
    return Stage("v1/pods", PodStrategy())


def a_pod(spec: dict[str, Any] | None = None, container: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the corpus' pod with some fields changed."""
    usual = {"name": "c", "image": "example.invalid/c:1"}
    return {"spec": merged({"nodeName": "wire-node", "containers": [merged(usual, container or {})]}, spec or {})}


RECORDED_CONTAINERS: list[tuple[dict[str, Any], Causes]] = [
    ({"name": ""}, [("spec.containers[0].name", "Required value")]),
    ({"name": "Bad_"}, [("spec.containers[0].name", f'Invalid value: "Bad_": {LABEL}')]),
    ({"image": ""}, [("spec.containers[0].image", "Required value")]),
    ({"ports": [{"containerPort": 0}]}, [(f"{PORTS}[0].containerPort", "Required value")]),
    (
        {"ports": [{"containerPort": 80, "protocol": "x"}]},
        [(f"{PORTS}[0].protocol", 'Unsupported value: "x": supported values: "SCTP", "TCP", "UDP"')],
    ),
    (
        {"ports": [{"containerPort": 1, "name": "TOO_BAD"}]},
        [
            (
                f"{PORTS}[0].name",
                'Invalid value: "TOO_BAD": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
            ),
            (f"{PORTS}[0].name", 'Invalid value: "TOO_BAD": must contain at least one letter (a-z)'),
        ],
    ),
    (
        {"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]},
        [(f"{PORTS}[1].name", 'Duplicate value: "a"')],
    ),
    (
        {"imagePullPolicy": "x"},
        [
            (
                "spec.containers[0].imagePullPolicy",
                'Unsupported value: "x": supported values: "Always", "IfNotPresent", "Never"',
            )
        ],
    ),
    (
        {"env": [{"name": "A", "value": "x", "valueFrom": {}}]},
        [
            (
                "spec.containers[0].env[0].valueFrom",
                'Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, '
                "`secretKeyRef` or `fileKeyRef`",
            )
        ],
    ),
    (
        {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}},
        [
            (
                "spec.containers[0].resources.requests",
                'Invalid value: "2": must be less than or equal to cpu limit of 1',
            )
        ],
    ),
]

RECORDED_SPECS: list[tuple[dict[str, Any], Causes]] = [
    ({"containers": []}, [("spec.containers", "Required value")]),
    (
        {"restartPolicy": "x"},
        [("spec.restartPolicy", 'Unsupported value: "x": supported values: "Always", "OnFailure", "Never"')],
    ),
    (
        {"dnsPolicy": "x"},
        [
            (
                "spec.dnsPolicy",
                'Unsupported value: "x": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"',
            )
        ],
    ),
    ({"hostname": "Bad_Host"}, [("spec.hostname", f'Invalid value: "Bad_Host": {LABEL}')]),
    ({"terminationGracePeriodSeconds": -1}, []),
    ({"nodeName": "Bad_Node"}, [("spec.nodeName", f'Invalid value: "Bad_Node": {SUBDOMAIN}')]),
    ({"nodeSelector": {"bad!": "x"}}, [("spec.nodeSelector", f'Invalid value: "bad!": {KEY}')]),
    (
        {
            "containers": [{"image": "i", "name": "c", "ports": [{"containerPort": 80, "hostPort": 81}]}],
            "hostNetwork": True,
        },
        [(f"{PORTS}[0].hostPort", "Invalid value: 81: must match `containerPort` when `hostNetwork` is true")],
    ),
    (
        {"activeDeadlineSeconds": 0},
        [("spec.activeDeadlineSeconds", "Invalid value: 0: must be between 1 and 2147483647, inclusive")],
    ),
]


@pytest.mark.parametrize(("container", "causes"), RECORDED_CONTAINERS)
def test_containers_as_recorded(stage: Stage, container: dict[str, Any], causes: Causes) -> None:
    assert stage.refusal(a_pod(container=container)) == causes


@pytest.mark.parametrize(("spec", "causes"), RECORDED_SPECS)
def test_specs_as_recorded(stage: Stage, spec: dict[str, Any], causes: Causes) -> None:
    assert stage.refusal(a_pod(spec)) == causes


def test_a_negative_grace_period_is_one_second(stage: Stage) -> None:
    made = stage.create(a_pod({"terminationGracePeriodSeconds": -1}))
    assert made["spec"]["terminationGracePeriodSeconds"] == 1
