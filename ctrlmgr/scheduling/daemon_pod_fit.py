"""Decides whether a DaemonSet's pod fits on a node, without considering resources and other pods.

Guarantees: the results equal those of the DaemonSet controller's `NodeShouldRunDaemonPod` (`pkg/controller/daemon`). A
pod should run on a node if its node name, selectors and tolerations allow this. A pod may stay on a node if it
tolerates the node's NoExecute taints.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ctrlmgr.scheduling.node_selection import NodeAffinity, selects
from ctrlmgr.scheduling.taints import NO_EXECUTE, Taint, Toleration, first_untolerated


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    labels: dict[str, str] | None = None


class _NodeSpec(msgspec.Struct, frozen=True, gc=False):
    taints: list[Taint] | None = None


class FitNode(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 Node that this module uses."""

    metadata: _Metadata = _Metadata()
    spec: _NodeSpec = _NodeSpec()


class _Affinity(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_affinity: NodeAffinity | None = None


class FitSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 PodSpec that this module uses."""

    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: _Affinity | None = None
    tolerations: list[Toleration] | None = None


class Fit(NamedTuple):
    """Whether a pod of a DaemonSet should run on a node, and whether an existing pod may continue to run there."""

    should_run: bool
    may_continue: bool


def fit(spec: FitSpec, node: FitNode) -> Fit:
    """Return the fit of a node for pods with this spec.

    The spec must contain the default tolerations of DaemonSet pods.
    """
    name, labels = node.metadata.name, node.metadata.labels or {}
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if spec.node_name not in ("", name) or not selects(name, labels, spec.node_selector, affinity):
        return Fit(False, False)
    taints, tolerations = node.spec.taints or (), spec.tolerations or ()
    if first_untolerated(taints, tolerations) is None:
        return Fit(True, True)
    return Fit(False, first_untolerated(taints, tolerations, (NO_EXECUTE,)) is None)
