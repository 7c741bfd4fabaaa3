"""The `kubectl get` columns of apiregistration.k8s.io (kube-aggregator `pkg/registry/apiservice/etcd`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.table_printer import Fields, age, printer


def _api_service(fields: Fields, ages: Ages) -> list[Any]:
    service = at(fields, "spec", "service")
    available = [each for each in at(fields, "status", "conditions") or () if each.get("type") == "Available"]
    text = f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"
    status = available[0].get("status", "Unknown") if available else "Unknown"
    if status != "True" and available:
        status = f"{status} ({available[0].get('reason', '')})"
    return [text, status, age(fields, ages)]


API_SERVICE = printer("Service|Available|Age", _api_service)
