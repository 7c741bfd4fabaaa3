"""Registers extension API servers through the API."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from tests.server.aggregating.extension import Extension
from tests.server.site import Site

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


def register(site: Site, version: str, ext: Extension, ca: bytes, *, available: bool = True, **more: Any) -> str:
    """Create the APIService of an API version, and set its condition Available."""
    group = "ext.example"
    spec = {
        "group": group,
        "version": version,
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "service": {"name": "ext", "namespace": "default", "port": ext.port},
        **({"caBundle": b64encode(ca).decode()} if ca else {}),
        **more,
    }
    name = f"{version}.{group}"
    created = site.ask(SERVICES, "POST", {"metadata": {"name": name}, "spec": spec})
    assert created.status == 201, created.body
    if available:
        condition = {"type": "Available", "status": "True", "reason": "Passed", "lastTransitionTime": None}
        patch = {"status": {"conditions": [condition]}}
        headers = {"Content-Type": "application/merge-patch+json"}
        changed = site.ask(f"{SERVICES}/{name}/status", "PATCH", patch, headers)
        assert changed.status == 200, changed.body
    return f"/apis/{group}/{version}/things"
