"""Decides whether a pod can be bound to its chosen node: all claims of the pod must be bound to volumes first.

The guarantees are those of kube-scheduler's VolumeBinding (`checkBindings`): while the pod waits, it counts for its
node. The scheduler waits at most until a timeout ends. If a volume cannot be provisioned for the node, the scheduler
decides again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.filters import Volumes

_PLUGIN: Final = 'running PreBind plugin "VolumeBinding": binding volumes: '


class AwaitedVolumes(NamedTuple):
    """The volumes for which a pod waits, after its node was chosen."""

    node: str
    until: float
    """The end of the timeout, on a monotonic clock."""
    provisioned: frozenset[Key] = frozenset()
    """The claims whose volumes are provisioned for the node."""


class Progress(NamedTuple):
    """Whether all claims are bound; or else the problem because of which the scheduler decides again, if any."""

    is_bound: bool = False
    problem: str = ""


def progress(awaited: AwaitedVolumes, volumes: Volumes, labels: Mapping[str, str] | None, now: float) -> Progress:
    """Return the progress of the binding of a pod's volumes.

    `labels` contains the labels of the pod's node; None if the node was deleted.
    """
    if volumes.is_unknown and now < awaited.until:
        return Progress()
    problem = volumes.problem
    if labels is None:
        problem = f'failed to get node "{awaited.node}": node "{awaited.node}" not found'
    elif any(not each.matches(awaited.node, labels) for each in volumes.selectors):
        problem = f'pv node affinity doesn\'t match node "{awaited.node}"'
    for each in volumes.delayed:
        if each.claim in awaited.provisioned and each.selected != awaited.node:
            problem = problem or f'provisioning failed for PVC "{each.claim.name}"'
    if not problem and volumes.delayed and now >= awaited.until:
        problem = "context deadline exceeded"
    return Progress(problem=f"{_PLUGIN}{problem}") if problem else Progress(not volumes.delayed)
