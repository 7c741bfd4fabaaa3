"""What is read of a ReplicaSet or a ReplicationController, to keep their pods and to roll them out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.selectors.labels import LabelSelector
from ctrlmgr.kinds.label_selectors import selector_of

REPLICA_SETS: Final = Resource("apps", "replicasets")
REPLICATION_CONTROLLERS: Final = Resource("", "replicationcontrollers")


class ReplicaSetSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of either; a ReplicationController's `selector` is a map of labels."""

    replicas: int | None = None
    min_ready_seconds: int = 0
    selector: dict[str, Any] | None = None
    template: dict[str, Any] | None = None


class ReplicaSetStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of either."""

    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    conditions: list[dict[str, Any]] | None = None


class ReplicaSet(msgspec.Struct, frozen=True, dict=True):
    """One of either; `dict` is where the compiled selector is kept."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()

    @property
    def replicas(self) -> int:
        """How many pods there shall be; 1 where it does not say."""
        return 1 if self.spec.replicas is None else self.spec.replicas

    @property
    def template(self) -> Mapping[str, Any]:
        """What pods are made of."""
        return self.spec.template or {}

    @cached_property
    def selector(self) -> LabelSelector | None:
        """Which pods are its own; None if that is not valid."""
        return selector_of(self.spec.selector or {})

    @cached_property
    def map_selector(self) -> LabelSelector | None:
        """The same for a ReplicationController."""
        return selector_of({"matchLabels": self.spec.selector or {}})


def selects(replica_set: Object, pod: Object) -> bool:
    """Say whether a ReplicaSet selects a pod; an empty selector selects nothing here."""
    selector = replica_set.view(ReplicaSet).selector
    return selector is not None and not selector.is_empty and selector.matches(pod.labels)


def controller_selects(controller: Object, pod: Object) -> bool:
    """Say the same of a ReplicationController."""
    selector = controller.view(ReplicaSet).map_selector
    return selector is not None and not selector.is_empty and selector.matches(pod.labels)
