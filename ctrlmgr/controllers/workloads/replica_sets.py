"""The fields of a ReplicaSet or a ReplicationController that controllers read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.kinds.label_selectors import selector_of

REPLICA_SETS: Final = Resource("apps", "replicasets")
REPLICATION_CONTROLLERS: Final = Resource("", "replicationcontrollers")


class ReplicaSetSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a ReplicaSet or ReplicationController.

    The `selector` of a ReplicationController is a map of labels.
    """

    replicas: int | None = None
    min_ready_seconds: int = 0
    selector: dict[str, Any] | None = None
    template: dict[str, Any] | None = None


class ReplicaSetStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a ReplicaSet or ReplicationController."""

    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    conditions: list[dict[str, Any]] | None = None


class ReplicaSet(msgspec.Struct, frozen=True, dict=True):
    """A ReplicaSet or ReplicationController; the class needs a `__dict__` for cached properties."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()

    @property
    def replicas(self) -> int:
        """The desired number of pods; 1 if the field is not set."""
        return 1 if self.spec.replicas is None else self.spec.replicas

    @property
    def template(self) -> Mapping[str, Any]:
        """The pod template of the ReplicaSet or ReplicationController."""
        return self.spec.template or {}

    @cached_property
    def selector(self) -> LabelSelector | None:
        """The pod selector of a ReplicaSet; None if the selector is not valid."""
        return selector_of(self.spec.selector or {})

    @cached_property
    def map_selector(self) -> LabelSelector | None:
        """The pod selector of a ReplicationController."""
        return selector_of({"matchLabels": self.spec.selector or {}})


def selects(replica_set: Object, pod: Object) -> bool:
    """Return whether a ReplicaSet selects a pod.

    Unlike in other kinds, an empty selector selects no pods.
    """
    selector = replica_set.view(ReplicaSet).selector
    return selector is not None and not selector.is_empty and selector.matches(pod.labels)


def controller_selects(controller: Object, pod: Object) -> bool:
    """Return whether a ReplicationController selects a pod."""
    selector = controller.view(ReplicaSet).map_selector
    return selector is not None and not selector.is_empty and selector.matches(pod.labels)
