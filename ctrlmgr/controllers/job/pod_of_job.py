"""Builds the pods of a Job.

Source: Kubernetes' `pkg/controller/job/job_controller.go` (`manageJob`) and `indexed_job_utils.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.controllers.job.indexes import (
    FAILURES,
    IGNORED_FAILURES,
    INDEX,
    failure_count,
    ignored_failure_count,
)
from ctrlmgr.controllers.job.job_policies import judge
from ctrlmgr.controllers.job.job_snapshot import JobSnapshot
from ctrlmgr.controllers.job.view import TRACKING, JobPod
from ctrlmgr.controllers.workloads.controller_ref_manager import Owner
from ctrlmgr.controllers.workloads.pod_control import pod_from_template

INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX: Final = 58
"""The maximum length of the prefix of a name. After the prefix there is room for five generated characters
(`names.MaxGeneratedNameLength`).
"""


def desired_pod(template: Mapping[str, Any], owner: Owner, snapshot: JobSnapshot, index: int | None) -> dict[str, Any]:
    """Return a pod from a Job's template; the pod of an Indexed Job also gets its index."""
    tracked = _with_metadata(template, finalizers=_tracked((template.get("metadata") or {}).get("finalizers")))
    if index is None:
        return pod_from_template(tracked, owner)
    name = owner.object.name
    labelled = _with_metadata(tracked, labels={INDEX: str(index)}, annotations=_annotations(snapshot, index))
    pod = pod_from_template(labelled, owner, generateName=name_prefix(name, index))
    pod["spec"] = {**_with_index_variable(pod["spec"]), "hostname": f"{name}-{index}"}
    return pod


def name_prefix(job: str, index: int) -> str:
    """Return the prefix of the generated names of an index's pods; a long name of the Job is truncated."""
    ending = f"-{index}-"
    return job[: _LONGEST_PREFIX - len(ending)] + ending


def _tracked(finalizers: list[str] | None) -> list[str]:
    given = list(finalizers or ())
    return given if TRACKING in given else [*given, TRACKING]


def _with_metadata(template: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a template with the given metadata fields; fields that are maps are merged into the template's fields."""
    metadata = dict(template.get("metadata") or {})
    for field, value in fields.items():
        metadata[field] = {**(metadata.get(field) or {}), **value} if isinstance(value, dict) else value
    return {**template, "metadata": metadata}


def _annotations(snapshot: JobSnapshot, index: int) -> dict[str, str]:
    """Return annotations that contain the index.

    If failures per index are limited, the annotations also contain the index's failure count.
    """
    annotations = {INDEX: str(index)}
    if snapshot.failed_indexes is None:
        return annotations
    counted, ignored = _failures(snapshot, snapshot.delayed.get(index))
    annotations[FAILURES] = str(counted)
    if ignored:
        annotations[IGNORED_FAILURES] = str(ignored)
    return annotations


def _failures(snapshot: JobSnapshot, replaced: JobPod | None) -> tuple[int, int]:
    """Return the counted and the ignored failures of an index, including the failure of the pod `replaced`."""
    if replaced is None:
        return 0, 0
    counted, ignored = failure_count(replaced), ignored_failure_count(replaced)
    if judge(snapshot.spec.pod_failure_policy, replaced).counts:
        return counted + 1, ignored
    return counted, ignored + 1


def _with_index_variable(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod's spec in which each container has the index as an environment variable.

    A container that sets this variable itself is not changed.
    """
    spec_copy = dict(spec)
    for field in ("initContainers", "containers"):
        if spec.get(field):
            spec_copy[field] = [_with_index(container) for container in spec[field]]
    return spec_copy


def _with_index(container: Mapping[str, Any]) -> Mapping[str, Any]:
    given = container.get("env") or []
    if any(each.get("name") == INDEX_VARIABLE for each in given):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*given, {"name": INDEX_VARIABLE, "valueFrom": source}]}
