"""Typed views of a HorizontalPodAutoscaler (autoscaling/v2) and a Scale, with the fields that the controller reads.

Guarantees: fields that these types do not declare stay unchanged in the object's body. The views read a null list as an
empty list.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ctrlmgr.api.resource import Resource

AUTOSCALERS: Final = Resource("autoscaling", "horizontalpodautoscalers")


class Policy(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type autoscaling/v2 HPAScalingPolicy."""

    type: str = ""
    value: int = 0
    period_seconds: int = 0


class Rules(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type autoscaling/v2 HPAScalingRules."""

    stabilization_window_seconds: int | None = None
    select_policy: str = "Max"
    policies: list[Policy] | None = None
    tolerance: str | None = None


class Behavior(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type autoscaling/v2 HorizontalPodAutoscalerBehavior."""

    scale_up: Rules = Rules()
    scale_down: Rules = Rules()


class Reference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type autoscaling/v2 CrossVersionObjectReference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class Target(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type autoscaling/v2 MetricTarget."""

    type: str = ""
    value: str | None = None
    average_value: str | None = None
    average_utilization: int | None = None


class Identifier(msgspec.Struct, frozen=True, gc=False):
    """The API type autoscaling/v2 MetricIdentifier."""

    name: str = ""
    selector: dict[str, Any] | None = None


class Source(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A metric source of autoscaling/v2.

    One class represents all five types of metric sources, because the types share the names of their fields.
    """

    name: str = ""
    container: str = ""
    metric: Identifier = Identifier()
    described_object: Reference = Reference()
    target: Target = Target()


class Metric(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type autoscaling/v2 MetricSpec."""

    type: str = ""
    resource: Source | None = None
    container_resource: Source | None = None
    pods: Source | None = None
    object: Source | None = None
    external: Source | None = None


class AutoscalerSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type autoscaling/v2 HorizontalPodAutoscalerSpec."""

    scale_target_ref: Reference = Reference()
    min_replicas: int | None = None
    max_replicas: int = 0
    metrics: list[Metric] | None = None
    behavior: Behavior | None = None


class AutoscalerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type autoscaling/v2 HorizontalPodAutoscalerStatus."""

    observed_generation: int | None = None
    last_scale_time: str | None = None
    current_replicas: int = 0
    desired_replicas: int = 0
    current_metrics: list[dict[str, Any]] | None = None
    conditions: list[dict[str, Any]] | None = None


class Autoscaler(msgspec.Struct, frozen=True, gc=False):
    """The fields of an autoscaling/v2 HorizontalPodAutoscaler that the controller reads."""

    spec: AutoscalerSpec = AutoscalerSpec()
    status: AutoscalerStatus = AutoscalerStatus()


class _ScaleSpec(msgspec.Struct, frozen=True, gc=False):
    replicas: int = 0


class _ScaleStatus(msgspec.Struct, frozen=True, gc=False):
    replicas: int = 0
    selector: str = ""


class Scale(msgspec.Struct, frozen=True, gc=False):
    """The fields of an autoscaling/v1 Scale that the controller reads."""

    spec: _ScaleSpec = _ScaleSpec()
    status: _ScaleStatus = _ScaleStatus()
