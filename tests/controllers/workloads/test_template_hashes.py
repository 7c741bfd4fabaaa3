"""Hashes of recorded pod templates, of which Kubernetes 1.36.2 computed the hash right after decoding and defaulting.

They went neither through the API server's conversion, which copies `serviceAccountName` to `serviceAccount`, nor
through storage, which writes amounts in their canonical form. So the tests rebuild what Go had in memory.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ctrlmgr.controllers.workloads.go_print import print_value
from ctrlmgr.controllers.workloads.go_quantity import Decimal, GoQuantity, read, rounded_up
from ctrlmgr.controllers.workloads.hashes import fnv1a_32, safe_encoded, template_hash
from ctrlmgr.kinds.core.pod.defaults import default_template
from ctrlmgr.schema.definitions import Definitions

RECORDED = Path(__file__).parents[2] / "recordings" / "template-hashes.json.gz"
_SHARED = Path(__file__).parents[4] / "shared" / "conformance" / "template-hashes.json.gz"
"""400 of them, on machines that have them beside the repository."""
_LISTS = ("limits", "requests", "overhead")
_AMOUNTS = ("sizeLimit", "divisor")
_MILLI = 3


def defaulted(template: dict[str, Any]) -> dict[str, Any]:
    """Return a template as Go has it after defaulting, with its amounts as Go has them."""
    codec = Definitions.builtin().codec("PodTemplate", "v1", "io.k8s.api.core.v1.PodTemplate")
    made: dict[str, Any] = codec.read({"template": template}).fields["template"]
    default_template(made)
    if "serviceAccount" not in template["spec"]:
        made["spec"].pop("serviceAccount", None)
    _restore_amounts(made, template)
    return made


def _restore_amounts(made: Any, written: Any) -> None:
    if isinstance(made, list) and isinstance(written, list):
        for one, other in zip(made, written, strict=True):
            _restore_amounts(one, other)
    if isinstance(made, dict) and isinstance(written, Mapping):
        for field in made.keys() & written.keys():
            if field in _LISTS:
                made[field] = {name: in_thousandths(read(text)) for name, text in written[field].items()}
            elif field in _AMOUNTS:
                made[field] = read(written[field])
            else:
                _restore_amounts(made[field], written[field])


def in_thousandths(amount: GoQuantity) -> GoQuantity:
    """Return what `RoundUp` leaves of an amount in a ResourceList."""
    if amount.decimal is not None:
        return amount._replace(decimal=rounded_up(amount.decimal, _MILLI))
    if amount.scale >= -_MILLI:
        return amount
    return amount._replace(value=rounded_up(Decimal(amount.value, -amount.scale), _MILLI).unscaled, scale=-3, text="")


@pytest.mark.parametrize("path", [RECORDED, _SHARED], ids=["covering", "all"])
def test_templates_have_the_hashes_that_kubernetes_gave_them(path: Path) -> None:
    if not path.exists():
        pytest.skip("these are not on this machine")
    for each in msgspec.json.decode(gzip.decompress(path.read_bytes())):
        printed = print_value("v1.PodTemplateSpec", defaulted(each["template"]))
        assert safe_encoded(str(fnv1a_32(printed.encode()))) == each["hash"], each["template"]


def coredns() -> dict[str, Any]:
    """Return the template of CoreDNS that kubeadm 1.34 installs (`cmd/kubeadm/app/phases/addons/dns`)."""
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


def test_a_template_that_was_stored_has_the_hash_that_clusters_give_it() -> None:
    """`coredns-66bc5c9577` is in every cluster that kubeadm 1.34 makes; PodSpec has gained one field since."""
    template = coredns()
    default_template(template)
    printed = print_value("v1.PodTemplateSpec", template)
    of_1_34 = printed.replace(" SchedulingGroup:(*v1.PodSchedulingGroup)<nil>", "")
    assert safe_encoded(str(fnv1a_32(of_1_34.encode()))) == "66bc5c9577"
    assert template_hash(template, None) == safe_encoded(str(fnv1a_32(printed.encode())))
