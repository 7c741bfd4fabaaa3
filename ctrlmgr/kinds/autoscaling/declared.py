"""The declarations of the kinds of `autoscaling`, and of Scale, which is a subresource of other kinds."""

from __future__ import annotations

from ctrlmgr.kinds.autoscaling import printers
from ctrlmgr.kinds.autoscaling.autoscaler_conversion import to_v1, to_v2
from ctrlmgr.kinds.autoscaling.horizontal_pod_autoscaler import HorizontalPodAutoscalerStrategy
from ctrlmgr.kinds.kind_declaration import Declaration, StoredAs

KINDS = (
    Declaration(
        "autoscaling/v1",
        "HorizontalPodAutoscaler",
        stored_as=StoredAs("autoscaling/v2", "HorizontalPodAutoscaler", to_v2, to_v1),
    ),
    Declaration(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        strategy=HorizontalPodAutoscalerStrategy(),
        printer=printers.HORIZONTAL_POD_AUTOSCALER,
    ),
    Declaration("autoscaling/v1", "Scale", printer=printers.SCALE),
)
