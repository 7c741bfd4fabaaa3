"""The fields of a DaemonSet that its controller reads, and values derived from them.

Guarantees, as in Kubernetes (`pkg/controller/daemon/util/daemonset_util.go`):
- A DaemonSet's pod tolerates a node that is not ready, unreachable, unschedulable, or short of disk, memory or process
  ids. A pod that uses the host's network also tolerates a node without a network.
- The maximum of unavailable or additional pods during an update is a number, or a percentage of the nodes. A percentage
  is rounded up to a whole number of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.workloads.int_or_percent import RollingUpdate, scaled
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.kinds.label_selectors import selector_of
from ctrlmgr.scheduling.daemon_pod_fit import FitSpec

DAEMON_SETS: Final = Resource("apps", "daemonsets")
API_VERSION: Final = "apps/v1"
KIND: Final = "DaemonSet"
GENERATION: Final = "deprecated.daemonset.template.generation"
"""The name of the annotation that contains the generation of the template."""

_ROLLING: Final = "RollingUpdate"
_ENDURED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_WITHOUT_NETWORK: Final = ("network-unavailable", "NoSchedule")


class UpdateStrategy(msgspec.Struct, frozen=True, rename="camel"):
    """The strategy for replacing pods after a template change."""

    type: str = _ROLLING
    rolling_update: RollingUpdate | None = None


class DaemonSetSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a DaemonSet."""

    selector: dict[str, Any] = msgspec.field(default_factory=dict)
    template: dict[str, Any] = msgspec.field(default_factory=dict)
    update_strategy: UpdateStrategy = UpdateStrategy()
    revision_history_limit: int | None = None
    min_ready_seconds: int = 0


class DaemonSetStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a DaemonSet."""

    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    collision_count: int | None = None


class DaemonSet(msgspec.Struct, frozen=True, dict=True):
    """A DaemonSet; the class needs a `__dict__` for cached properties."""

    spec: DaemonSetSpec = msgspec.field(default_factory=DaemonSetSpec)
    status: DaemonSetStatus = DaemonSetStatus()

    @property
    def template(self) -> Mapping[str, Any]:
        """The pod template of the DaemonSet."""
        return self.spec.template

    @cached_property
    def selector(self) -> LabelSelector | None:
        """The pod selector; None if the selector is not valid."""
        return selector_of(self.spec.selector)

    @cached_property
    def pod_spec(self) -> dict[str, Any]:
        """The spec of the DaemonSet's pods, including the default tolerations."""
        spec = dict(self.template.get("spec") or {})
        return {**spec, "tolerations": enduring(spec)}

    @cached_property
    def fit_spec(self) -> FitSpec:
        """The fields of the pod spec that decide whether a node fits the pod."""
        return msgspec.convert(self.pod_spec, FitSpec)

    @property
    def is_rolling(self) -> bool:
        """Return whether the controller replaces pods after a template change.

        A controller that does not replace pods waits until users delete the pods.
        """
        return self.spec.update_strategy.type == _ROLLING

    def max_surge(self, nodes: int) -> int:
        """Return the number of nodes, out of `nodes`, that may have a new pod in addition to the old pod."""
        rolling = self.spec.update_strategy.rolling_update
        return scaled(rolling.max_surge, nodes, round_up=True) if self.is_rolling and rolling is not None else 0

    def max_unavailable(self, nodes: int) -> int:
        """Return the number of nodes, out of `nodes`, that may have no available pod during an update.

        If there is no surge, the number is at least 1, so that updates can make progress.
        """
        rolling = self.spec.update_strategy.rolling_update
        if not self.is_rolling or rolling is None:
            return 0
        desired = scaled(rolling.max_unavailable, nodes, round_up=True)
        return desired if desired or self.max_surge(nodes) else 1

    @property
    def surges(self) -> bool:
        """Return whether a node may temporarily have two pods during an update."""
        return self.max_surge(1) > 0


def enduring(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tolerations in a pod's spec, and the tolerations that every DaemonSet pod has."""
    found = [dict(each) for each in spec.get("tolerations") or ()]
    for name, effect in (*_ENDURED, *((_WITHOUT_NETWORK,) if spec.get("hostNetwork") else ())):
        desired = {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        same = [number for number, each in enumerate(found) if _says_the_same(each, desired)]
        for number in same:
            found[number] = desired
        if not same:
            found.append(desired)
    return found


def _says_the_same(toleration: Mapping[str, Any], desired: Mapping[str, Any]) -> bool:
    """Return whether two tolerations are equal except for `tolerationSeconds` (`Toleration.MatchToleration`)."""
    return all((toleration.get(key) or "") == desired.get(key, "") for key in ("key", "operator", "effect", "value"))


def selects(daemon_set: Object, obj: Object) -> bool:
    """Return whether a DaemonSet selects a pod or a revision."""
    selector = daemon_set.view(DaemonSet).selector
    return selector is not None and not selector.is_empty and selector.matches(obj.labels)


def template_generation(daemon_set: Object) -> int | None:
    """Return the generation of the template; None if the annotation is not a number."""
    text = daemon_set.annotations.get(GENERATION, "")
    return int(text) if text.isascii() and text.removeprefix("-").isdecimal() else None


def revision_limit(daemon_set: Object) -> int:
    """Return the maximum number of old revisions that are kept."""
    limit = daemon_set.view(DaemonSet).spec.revision_history_limit
    return 10 if limit is None else limit


Pods = Mapping[str, Sequence[Object]]
"""The pods of a DaemonSet, by the name of their node."""
