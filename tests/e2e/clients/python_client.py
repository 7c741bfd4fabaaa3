"""Connects the official Python client to a server, and creates objects for the client's tests."""

# The client's own functions are not annotated.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import NotFoundException

from tests.e2e.serving import Server

Api = Any
"""One API class of the official Python client.

The client's generated types accept no manifests and allow None everywhere, so the tests do not use these types.
"""

LABELS = {"app": "web"}


@contextmanager
def connected(server: Server) -> Iterator[client.ApiClient]:
    """Yield a client that reads the server's kubeconfig, and close its connections after the block."""
    api = config.new_client_from_config(str(server.kubeconfig))
    try:
        yield api
    finally:
        api.rest_client.pool_manager.clear()


def is_absent(read: Callable[..., Any], *arguments: str) -> bool:
    """Return whether an object does not exist; raise ApiException if the request fails for another reason."""
    try:
        read(*arguments)
    except NotFoundException:
        return True
    return False


def manifest(api_version: str, kind: str, name: str, **rest: Any) -> dict[str, Any]:
    """Return an object with the label `app=web`."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": LABELS}, **rest}


def pod_spec() -> dict[str, Any]:
    """Return a pod's spec with the required fields."""
    return {"containers": [{"name": "main", "image": "registry.example.com/web:1", "ports": [{"containerPort": 80}]}]}


def service(name: str) -> dict[str, Any]:
    """Return a Service that selects pods with the label `app=web`."""
    return manifest("v1", "Service", name, spec={"selector": LABELS, "ports": [{"name": "http", "port": 80}]})


def pod(name: str) -> dict[str, Any]:
    """Return a Pod."""
    return manifest("v1", "Pod", name, spec=pod_spec())


def config_map(name: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return manifest("v1", "ConfigMap", name, data={"key": "one"})


def deployment(name: str) -> dict[str, Any]:
    """Return a Deployment."""
    template = {"metadata": {"labels": LABELS}, "spec": pod_spec()}
    return manifest("apps/v1", "Deployment", name, spec={"selector": {"matchLabels": LABELS}, "template": template})


def lease(name: str) -> dict[str, Any]:
    """Return a Lease."""
    return manifest("coordination.k8s.io/v1", "Lease", name, spec={"holderIdentity": "one", "leaseDurationSeconds": 15})
