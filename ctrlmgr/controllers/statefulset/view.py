"""The fields of a StatefulSet that its controller reads, and values derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.kinds.label_selectors import selector_of

STATEFUL_SETS: Final = Resource("apps", "statefulsets")
CLAIMS: Final = Resource("", "persistentvolumeclaims")
API_VERSION: Final = "apps/v1"
KIND: Final = "StatefulSet"

_ROLLING: Final = "RollingUpdate"
_DELETE: Final = "Delete"
_RETAIN: Final = "Retain"


class RollingUpdate(msgspec.Struct, frozen=True):
    """The settings of a rolling update; the partition is the lowest ordinal that is updated to the new revision."""

    partition: int = 0


class UpdateStrategy(msgspec.Struct, frozen=True, rename="camel"):
    """The strategy for updating pods to a new revision."""

    type: str = _ROLLING
    rolling_update: RollingUpdate | None = None


class RetentionPolicy(msgspec.Struct, frozen=True, rename="camel"):
    """The retention policies of the StatefulSet's claims; each policy is `Retain` or `Delete`."""

    when_deleted: str = _RETAIN
    when_scaled: str = _RETAIN

    @property
    def deletes_with_set(self) -> bool:
        """Return whether claims are deleted together with the StatefulSet."""
        return self.when_deleted == _DELETE

    @property
    def deletes_with_pod(self) -> bool:
        """Return whether claims are deleted when their pod is scaled away."""
        return self.when_scaled == _DELETE


class Ordinals(msgspec.Struct, frozen=True):
    """The settings of ordinals: the lowest ordinal of the pods."""

    start: int = 0


class StatefulSetSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a StatefulSet."""

    replicas: int | None = None
    selector: dict[str, Any] = msgspec.field(default_factory=dict)
    template: dict[str, Any] = msgspec.field(default_factory=dict)
    volume_claim_templates: list[dict[str, Any]] | None = None
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: UpdateStrategy = UpdateStrategy()
    revision_history_limit: int | None = None
    min_ready_seconds: int = 0
    persistent_volume_claim_retention_policy: RetentionPolicy = RetentionPolicy()
    ordinals: Ordinals = Ordinals()


class StatefulSetStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a StatefulSet."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None


class StatefulSet(msgspec.Struct, frozen=True, dict=True):
    """A StatefulSet; the class needs a `__dict__` for cached properties."""

    spec: StatefulSetSpec = msgspec.field(default_factory=StatefulSetSpec)
    status: StatefulSetStatus = StatefulSetStatus()

    @property
    def replicas(self) -> int:
        """The desired number of pods; 1 if the field is not set."""
        return 1 if self.spec.replicas is None else self.spec.replicas

    @property
    def ordinals(self) -> range:
        """The ordinals of the desired pods."""
        start = self.spec.ordinals.start
        return range(start, start + self.replicas)

    @property
    def template(self) -> Mapping[str, Any]:
        """The pod template of the StatefulSet."""
        return self.spec.template

    @property
    def claim_templates(self) -> Sequence[Mapping[str, Any]]:
        """The templates of the claims that each pod gets."""
        return self.spec.volume_claim_templates or ()

    @property
    def retention(self) -> RetentionPolicy:
        """The retention policies of the StatefulSet's claims."""
        return self.spec.persistent_volume_claim_retention_policy

    @property
    def is_ordered(self) -> bool:
        """Return whether pods wait for each other."""
        return self.spec.pod_management_policy != "Parallel"

    @property
    def is_rolling(self) -> bool:
        """Return whether the controller replaces pods of older revisions; this is False for the strategy OnDelete."""
        return self.spec.update_strategy.type == _ROLLING

    @property
    def partition(self) -> int | None:
        """The number of pods with the lowest ordinals that keep their revision; None if the field is not set."""
        rolling = self.spec.update_strategy.rolling_update
        return None if rolling is None else rolling.partition

    @cached_property
    def selector(self) -> LabelSelector | None:
        """The pod selector; None if the selector is not valid."""
        return selector_of(self.spec.selector)
