"""Provides pods in a harness: the controllers that run pods on simulated nodes, and Deployments that create pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.framework.typed_kinds import Untyped

NODE_CONTROLLERS: Final = (
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "kube-scheduler",
    "node-ipam-controller",
    "node-lifecycle-controller",
    "replicaset-controller",
    "serviceaccount-controller",
    "simulated-nodes-controller",
    "statefulset-controller",
    "taint-eviction-controller",
)
"""The built-in controllers that run if the harness has simulated nodes."""
_NOT_READY: Final = "node.kubernetes.io/not-ready"
"""The taint of a new node until the node lifecycle controller has read that the node is ready."""


def options_of(descriptor: ControllerDescriptor[Any], nodes: str) -> Any:
    """Return the options of a built-in controller, which depend on whether there are simulated nodes."""
    options: Mapping[str, Mapping[str, Any]] = {
        "kube-scheduler": {"simulated_seed": 1},
        "node-ipam-controller": {"allocate_node_cidrs": True},
        "simulated-nodes-controller": {"nodes": nodes},
    }
    return descriptor.options(**(options.get(descriptor.name, {}) if nodes else {}))


def new_deployment(name: str, image: str, replicas: int, namespace: str) -> Mapping[str, Any]:
    """Return a Deployment with one container; its pods have the label `app` with the Deployment's name."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def is_ready(obj: Untyped | None) -> bool:
    """Return whether a node is ready, or whether all pods of a Deployment are ready."""
    if obj is None:
        return False
    status, spec = obj.fields.get("status") or {}, obj.fields.get("spec") or {}
    if "replicas" in spec:
        return bool(status.get("readyReplicas", 0) == spec["replicas"] == status.get("updatedReplicas", 0))
    is_said = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ())
    return is_said and not any(each["key"] == _NOT_READY for each in spec.get("taints") or ())
