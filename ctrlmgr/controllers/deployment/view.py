"""What the deployment controller reads of a Deployment, and what follows from it.

Rules come from Kubernetes' `pkg/controller/deployment/util/deployment_util.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.workloads.scaling import Fenceposts, RollingUpdate, fenceposts
from ctrlmgr.engine.selectors.labels import LabelSelector
from ctrlmgr.kinds.label_selectors import selector_of

DEPLOYMENTS: Final = Resource("apps", "deployments")

_NO_LIMIT: Final = 2**31 - 1
_ROLLING: Final = "RollingUpdate"
_RECREATE: Final = "Recreate"


class Strategy(msgspec.Struct, frozen=True, rename="camel"):
    """How old pods give way to new ones."""

    type: str = _ROLLING
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec."""

    replicas: int | None = None
    selector: dict[str, Any] = msgspec.field(default_factory=dict)
    template: dict[str, Any] = msgspec.field(default_factory=dict)
    strategy: Strategy = Strategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    paused: bool = False
    progress_deadline_seconds: int | None = None


class DeploymentStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    collision_count: int | None = None
    conditions: list[dict[str, Any]] | None = None


class Deployment(msgspec.Struct, frozen=True, dict=True):
    """A Deployment; `dict` is where the compiled selector is kept."""

    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)
    status: DeploymentStatus = msgspec.field(default_factory=DeploymentStatus)

    @property
    def replicas(self) -> int:
        """How many pods there shall be; 1 where it does not say."""
        return 1 if self.spec.replicas is None else self.spec.replicas

    @property
    def template(self) -> Mapping[str, Any]:
        """What pods are made of."""
        return self.spec.template

    @cached_property
    def selector(self) -> LabelSelector | None:
        """Which ReplicaSets are its own; None if that is not valid."""
        return selector_of(self.spec.selector)

    @property
    def is_rolling(self) -> bool:
        """Whether old pods give way a few at a time."""
        return self.spec.strategy.type == _ROLLING

    @property
    def recreates(self) -> bool:
        """Whether all old pods go before the first new one comes."""
        return self.spec.strategy.type == _RECREATE

    @property
    def surge(self) -> int:
        """How many more pods than wanted there may be."""
        return self._fenceposts.surge if self.is_rolling else 0

    @property
    def unavailable(self) -> int:
        """How many pods fewer than wanted may be available."""
        if not self.is_rolling or not self.replicas:
            return 0
        return min(self._fenceposts.unavailable, self.replicas)

    @property
    def surge_alone(self) -> int:
        """How many more pods a new ReplicaSet may bring, whatever may be unavailable."""
        rolling = self.spec.strategy.rolling_update or RollingUpdate()
        return fenceposts(rolling.max_surge, 0, self.replicas).surge

    @property
    def deadline(self) -> int | None:
        """Seconds within which there must be progress; None for any."""
        seconds = self.spec.progress_deadline_seconds
        return None if seconds == _NO_LIMIT else seconds

    @property
    def history_limit(self) -> int | None:
        """How many old ReplicaSets are kept; None for all."""
        limit = self.spec.revision_history_limit
        return None if limit == _NO_LIMIT else limit

    @cached_property
    def _fenceposts(self) -> Fenceposts:
        rolling = self.spec.strategy.rolling_update or RollingUpdate()
        return fenceposts(rolling.max_surge, rolling.max_unavailable, self.replicas)
