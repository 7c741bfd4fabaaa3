"""The fields of a Deployment that its controller reads, and values derived from them.

Source: Kubernetes' `pkg/controller/deployment/util/deployment_util.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.workloads.int_or_percent import Fenceposts, RollingUpdate, fenceposts
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.kinds.label_selectors import selector_of

DEPLOYMENTS: Final = Resource("apps", "deployments")

_NO_LIMIT: Final = 2**31 - 1
_ROLLING: Final = "RollingUpdate"
_RECREATE: Final = "Recreate"


class Strategy(msgspec.Struct, frozen=True, rename="camel"):
    """The strategy for replacing old pods with new ones."""

    type: str = _ROLLING
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a Deployment's spec that the controller reads."""

    replicas: int | None = None
    selector: dict[str, Any] = msgspec.field(default_factory=dict)
    template: dict[str, Any] = msgspec.field(default_factory=dict)
    strategy: Strategy = Strategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    paused: bool = False
    progress_deadline_seconds: int | None = None


class DeploymentStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a Deployment's status that the controller reads or writes."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    collision_count: int | None = None
    conditions: list[dict[str, Any]] | None = None


class Deployment(msgspec.Struct, frozen=True, dict=True):
    """A Deployment; the class needs a `__dict__` for cached properties."""

    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)
    status: DeploymentStatus = msgspec.field(default_factory=DeploymentStatus)

    @property
    def replicas(self) -> int:
        """The desired number of pods; 1 if the field is not set."""
        return 1 if self.spec.replicas is None else self.spec.replicas

    @property
    def template(self) -> Mapping[str, Any]:
        """The pod template of the Deployment."""
        return self.spec.template

    @cached_property
    def selector(self) -> LabelSelector | None:
        """The selector of the Deployment's ReplicaSets; None if the selector is not valid."""
        return selector_of(self.spec.selector)

    @property
    def is_rolling(self) -> bool:
        """Return whether old pods are replaced gradually (strategy RollingUpdate)."""
        return self.spec.strategy.type == _ROLLING

    @property
    def recreates(self) -> bool:
        """Return whether all old pods are deleted before new pods are created (strategy Recreate)."""
        return self.spec.strategy.type == _RECREATE

    @property
    def surge(self) -> int:
        """The maximum number of pods above the desired number during a rollout."""
        return self._fenceposts.surge if self.is_rolling else 0

    @property
    def unavailable(self) -> int:
        """The maximum number of unavailable pods during a rollout."""
        if not self.is_rolling or not self.replicas:
            return 0
        return min(self._fenceposts.unavailable, self.replicas)

    @property
    def surge_alone(self) -> int:
        """The maximum surge, computed independently of the allowed number of unavailable pods."""
        rolling = self.spec.strategy.rolling_update or RollingUpdate()
        return fenceposts(rolling.max_surge, 0, self.replicas).surge

    @property
    def deadline(self) -> int | None:
        """The progress deadline in seconds; None if there is no deadline."""
        seconds = self.spec.progress_deadline_seconds
        return None if seconds == _NO_LIMIT else seconds

    @property
    def history_limit(self) -> int | None:
        """The maximum number of old ReplicaSets that are kept; None means that all old ReplicaSets are kept."""
        limit = self.spec.revision_history_limit
        return None if limit == _NO_LIMIT else limit

    @cached_property
    def _fenceposts(self) -> Fenceposts:
        rolling = self.spec.strategy.rolling_update or RollingUpdate()
        return fenceposts(rolling.max_surge, rolling.max_unavailable, self.replicas)
