"""What the DaemonSet controller reads of a DaemonSet, and what follows from it.

Guarantees, Kubernetes' (`pkg/controller/daemon/util/daemonset_util.go`):
- A pod of a DaemonSet tolerates what is wrong with its node: it is not ready or reachable, short of disk, memory or
  process ids, unschedulable, and, on the host's network, without a network.
- How many pods may be unavailable, or come in addition, during an update are numbers, or shares of the nodes rounded
  up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.workloads.scaling import RollingUpdate, scaled
from ctrlmgr.engine.selectors.labels import LabelSelector
from ctrlmgr.kinds.label_selectors import selector_of
from ctrlmgr.scheduling.fit import FitSpec

DAEMON_SETS: Final = Resource("apps", "daemonsets")
API_VERSION: Final = "apps/v1"
KIND: Final = "DaemonSet"
GENERATION: Final = "deprecated.daemonset.template.generation"
"""The annotation that counts how often the template has changed."""

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
    """How pods come to a new template."""

    type: str = _ROLLING
    rolling_update: RollingUpdate | None = None


class DaemonSetSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec."""

    selector: dict[str, Any] = msgspec.field(default_factory=dict)
    template: dict[str, Any] = msgspec.field(default_factory=dict)
    update_strategy: UpdateStrategy = UpdateStrategy()
    revision_history_limit: int | None = None
    min_ready_seconds: int = 0


class DaemonSetStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status."""

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
    """A DaemonSet; `dict` is where what is derived is kept."""

    spec: DaemonSetSpec = msgspec.field(default_factory=DaemonSetSpec)
    status: DaemonSetStatus = DaemonSetStatus()

    @property
    def template(self) -> Mapping[str, Any]:
        """What pods are made of."""
        return self.spec.template

    @cached_property
    def selector(self) -> LabelSelector | None:
        """Which pods are its own; None if that is not valid."""
        return selector_of(self.spec.selector)

    @cached_property
    def pod_spec(self) -> dict[str, Any]:
        """The spec of its pods, with all that they tolerate."""
        spec = dict(self.template.get("spec") or {})
        return {**spec, "tolerations": enduring(spec)}

    @cached_property
    def fit_spec(self) -> FitSpec:
        """What of that decides about nodes."""
        return msgspec.convert(self.pod_spec, FitSpec)

    @property
    def is_rolling(self) -> bool:
        """Whether pods are brought to a new template, rather than left to those that delete them."""
        return self.spec.update_strategy.type == _ROLLING

    def max_surge(self, nodes: int) -> int:
        """Return how many nodes of so many may have a new pod besides the old one."""
        rolling = self.spec.update_strategy.rolling_update
        return scaled(rolling.max_surge, nodes, round_up=True) if self.is_rolling and rolling is not None else 0

    def max_unavailable(self, nodes: int) -> int:
        """Return how many nodes of so many may be without a pod; 1 where an update could not go on otherwise."""
        rolling = self.spec.update_strategy.rolling_update
        if not self.is_rolling or rolling is None:
            return 0
        wanted = scaled(rolling.max_unavailable, nodes, round_up=True)
        return wanted if wanted or self.max_surge(nodes) else 1

    @property
    def surges(self) -> bool:
        """Whether a node may have two pods for a while."""
        return self.max_surge(1) > 0


def enduring(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tolerations of a pod's spec and those that every pod of a DaemonSet has."""
    found = [dict(each) for each in spec.get("tolerations") or ()]
    for name, effect in (*_ENDURED, *((_WITHOUT_NETWORK,) if spec.get("hostNetwork") else ())):
        wanted = {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        same = [number for number, each in enumerate(found) if _says_the_same(each, wanted)]
        for number in same:
            found[number] = wanted
        if not same:
            found.append(wanted)
    return found


def _says_the_same(toleration: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Compare but for the time for which it is tolerated (`Toleration.MatchToleration`)."""
    return all((toleration.get(key) or "") == wanted.get(key, "") for key in ("key", "operator", "effect", "value"))


def selects(daemon_set: Object, obj: Object) -> bool:
    """Say whether a DaemonSet selects a pod or a revision."""
    selector = daemon_set.view(DaemonSet).selector
    return selector is not None and not selector.is_empty and selector.matches(obj.labels)


def template_generation(daemon_set: Object) -> int | None:
    """Return how often the template has changed, None where the annotation is not a number."""
    text = daemon_set.annotations.get(GENERATION, "")
    return int(text) if text.isascii() and text.removeprefix("-").isdecimal() else None


def revision_limit(daemon_set: Object) -> int:
    """Return how many old revisions are kept."""
    limit = daemon_set.view(DaemonSet).spec.revision_history_limit
    return 10 if limit is None else limit


Pods = Mapping[str, Sequence[Object]]
"""The pods of a DaemonSet by the node that each is for."""
