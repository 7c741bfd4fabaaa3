from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ctrlmgr.controllers.workloads.go_print import print_value
from ctrlmgr.controllers.workloads.hashes import template_hash
from ctrlmgr.kinds.core.pod.defaults import default_template
from tests.controllers.workloads.recorded_hashes import printed_hash, recorded_hash

RECORDED = Path(__file__).parents[2] / "recordings" / "template-hashes.json.gz"
_SHARED = Path(__file__).parents[4] / "shared" / "conformance" / "template-hashes.json.gz"
"""A file with 400 pod templates, which exists on machines with recordings beside the repository."""


@pytest.mark.parametrize("path", [path for path in (RECORDED, _SHARED) if path.exists()], ids=lambda path: path.name)
def test_templates_have_the_hashes_of_kubernetes(path: Path) -> None:
    for each in msgspec.json.decode(gzip.decompress(path.read_bytes())):
        assert recorded_hash(each["template"]) == each["hash"], each["template"]


def coredns() -> dict[str, Any]:
    """Return the pod template of CoreDNS that kubeadm 1.34 installs (`cmd/kubeadm/app/phases/addons/dns`)."""
    ports = (("dns", 53, "UDP"), ("dns-tcp", 53, "TCP"), ("metrics", 9153, "TCP"))
    probes = (("liveness-probe", 8080, "TCP"), ("readiness-probe", 8181, "TCP"))
    term = {
        "labelSelector": {"matchExpressions": [{"key": "k8s-app", "operator": "In", "values": ["kube-dns"]}]},
        "topologyKey": "kubernetes.io/hostname",
    }
    container = {
        "name": "coredns",
        "image": "registry.k8s.io/coredns/coredns:v1.12.1",
        "resources": {"limits": {"memory": "170Mi"}, "requests": {"cpu": "100m", "memory": "70Mi"}},
        "args": ["-conf", "/etc/coredns/Corefile"],
        "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/coredns", "readOnly": True}],
        "ports": [{"name": name, "containerPort": port, "protocol": proto} for name, port, proto in (*ports, *probes)],
        "livenessProbe": {
            "httpGet": {"path": "/health", "port": "liveness-probe"},
            "initialDelaySeconds": 60,
            "timeoutSeconds": 5,
            "failureThreshold": 5,
        },
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "readiness-probe"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    files = {"name": "coredns", "items": [{"key": "Corefile", "path": "Corefile"}]}
    spec = {
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": "coredns",
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
            }
        },
        "tolerations": [
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
        ],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "containers": [container],
        "dnsPolicy": "Default",
        "volumes": [{"name": "config-volume", "configMap": files}],
    }
    return {"metadata": {"labels": {"k8s-app": "kube-dns"}}, "spec": spec}


def test_a_stored_template_has_the_hash_of_a_real_cluster() -> None:
    """The ReplicaSet `coredns-66bc5c9577` exists in every cluster that kubeadm 1.34 creates; PodSpec has gained one
    field since then.
    """
    template = coredns()
    default_template(template)
    printed = print_value("v1.PodTemplateSpec", template)
    of_1_34 = printed.replace(" SchedulingGroup:(*v1.PodSchedulingGroup)<nil>", "")
    assert printed_hash(of_1_34) == "66bc5c9577"
    assert template_hash(template, None) == printed_hash(printed)
