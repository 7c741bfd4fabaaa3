"""kube-controller-manager's metrics of attached volumes.

Source: Kubernetes' `pkg/controller/volume/attachdetach/metrics/metrics.go`.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import Gauge

from ctrlmgr.controllers.collected_gauges import CollectedGauge

VOLUMES_IN_USE: Final = CollectedGauge(
    "storage_count_attachable_volumes_in_use", "Measure number of volumes in use", ("node", "volume_plugin")
)
TOTAL_VOLUMES: Final = CollectedGauge(
    "attachdetach_controller_total_volumes", "Number of volumes in A/D Controller", ("plugin_name", "state")
)
# The Python client library appends `_total` to the names of counters, but Kubernetes' name has no such suffix.
# Therefore the metric of forced detaches is a gauge.
FORCED_DETACHES: Final = Gauge(
    "attach_detach_controller_attachdetach_controller_forced_detaches",
    "Number of times the A/D Controller performed a forced detach",
    ["reason"],
)

DESIRED, ACTUAL = "desired_state_of_world", "actual_state_of_world"
"""The values of the label `state`: volumes that pods need, and volumes that are attached or may be attached."""
TIMEOUT, OUT_OF_SERVICE = "timeout", "out-of-service"
"""The values of the label `reason`."""


def plugin_name(driver: str) -> str:
    """Return the name of a CSI driver in the metrics (`GetFullQualifiedPluginNameForVolume`)."""
    return f"kubernetes.io/csi:{driver}"
