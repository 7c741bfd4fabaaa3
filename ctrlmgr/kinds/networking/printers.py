"""The `kubectl get` columns of networking.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.rows import aged, text
from ctrlmgr.engine.tables.table_printer import NONE, Fields, age, joined, printer, selector_text


def _ingress(fields: Fields, ages: Ages) -> list[Any]:
    hosts = [rule["host"] for rule in at(fields, "spec", "rules") or () if rule.get("host")]
    balancer = at(fields, "status", "loadBalancer", "ingress") or ()
    shown = hosts if len(hosts) <= 3 else [*hosts[:3], f" + {len(hosts) - 3} more..."]
    return [
        at(fields, "spec", "ingressClassName") or NONE,
        joined(shown, "*"),
        joined((each.get("ip") or each.get("hostname", "") for each in balancer), ""),
        "80, 443" if at(fields, "spec", "tls") else "80",
        age(fields, ages),
    ]


def _parameters(fields: Fields) -> str:
    parameters = at(fields, "spec", "parameters")
    if not parameters:
        return NONE
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
    return f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"


def _parent(fields: Fields) -> str:
    reference = at(fields, "spec", "parentRef") or {}
    parts = [reference.get(name, "") for name in ("group", "resource", "namespace", "name")]
    resource = f"{parts[1]}.{parts[0]}" if parts[0] else parts[1]
    return "/".join(part for part in (resource, parts[2], parts[3]) if part)


INGRESS = printer("Class|Hosts|Address|Ports|Age", _ingress)
INGRESS_CLASS = printer("Controller|Parameters|Age", aged(text("spec", "controller"), _parameters))
NETWORK_POLICY = printer("Pod-Selector|Age", aged(lambda fields: selector_text(at(fields, "spec", "podSelector"))))
IP_ADDRESS = printer("ParentRef|Age", aged(_parent))
SERVICE_CIDR = printer("CIDRs|Age", aged(lambda fields: ",".join(at(fields, "spec", "cidrs") or ())))
