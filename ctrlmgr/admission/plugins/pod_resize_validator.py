"""PodResizeValidator: a pod cannot be resized beyond the allocatable resources of its node.

Rules come from Kubernetes' `plugin/pkg/admission/podresize`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.quota.pod_evaluator import requests_of
from ctrlmgr.api.quantity import MILLI, WHOLE, parse
from ctrlmgr.api.resource import NODES, PODS, Key, Resource
from ctrlmgr.api.unstructured import generation_of
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.errors import StatusCause

_OS = "kubernetes.io/os"
_UNITS = {"cpu": MILLI, "memory": WHOLE}


class PodResizeValidator(Plugin):
    """Compares the resources of a resized pod with the resources of its node."""

    name: ClassVar[str] = "PodResizeValidator"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: resizes of pods."""
        return (resource, subresource, operation) == (PODS, "resize", Verb.UPDATE)

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden` if the pod requests more than its node's allocatable resources.

        The plugin accepts a resize if the pod is unchanged or has no node.
        """
        new, old = attributes.fields, attributes.old or {}
        name = (new.get("spec") or {}).get("nodeName")
        if not name or generation_of(new) == generation_of(old):
            return
        found = attributes.view.get(NODES, Key("", name))
        if found is None:
            raise attributes.forbidden(f'node "{name}" not found')
        if (system := found.labels.get(_OS) or "linux") != "linux":
            problem = f'pod resize is only supported on linux nodes, node "{name}" is "{system}"'
            raise attributes.forbidden(problem, StatusCause("UnsupportedPlatform"))
        if problem := _too_much(new, found.to_dict()):
            words = f"node didn't have enough allocatable resources: {problem}"
            raise attributes.forbidden(words, StatusCause("NodeCapacity"))


def _too_much(pod: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    requests = requests_of({"spec": pod.get("spec") or {}})
    problems = []
    for name, unit in _UNITS.items():
        required, there = (-(-parse(each.get(name) or "0") // unit) for each in (requests, allocatable))
        if required > there:
            problems.append(f"{name}, requested: {required}, allocatable: {there}")
    return "; ".join(problems)
